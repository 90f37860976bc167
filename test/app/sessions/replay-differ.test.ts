import assert from "node:assert/strict";
import test from "node:test";
import { withoutNames } from "../../../src/app/sessions/conversation-replay.ts";
import { firstDifference } from "../../../src/app/sessions/replay-run.ts";

test("outputs that differ only in time and advice are equal", () => {
  const then = "a\n[advice: use less memory]\n[exit 1, 1.2 s]";
  assert.equal(firstDifference(then, "a\n[exit 1, 90 ms]"), undefined);
  assert.equal(
    firstDifference("[timed out after 1.0 s: ended]", "[timed out after 3.1 s: ended]"),
    undefined,
  );
});

test("the first line that differs or is missing is named", () => {
  assert.deepEqual(firstDifference("a\nb\nc", "a\nx\ny"), { line: 2, then: "b", now: "x" });
  assert.deepEqual(firstDifference("a", "a\nb"), { line: 2, then: undefined, now: "b" });
  assert.deepEqual(firstDifference("a\nb", "a"), { line: 2, then: "b", now: undefined });
  assert.deepEqual(firstDifference("[exit 1, 1.2 s]", "[exit 2, 1.2 s]"), {
    line: 1,
    then: "[exit 1, …]",
    now: "[exit 2, …]",
  });
});

test("a different cause is a difference, whatever the time", () => {
  assert.notEqual(firstDifference("[exit 1, 1.2 s, memory: x]", "[exit 1, 1.2 s, disk: x]"), undefined);
});

test("the id of a stored output is ignored, and texts of any length are read in one pass", () => {
  assert.equal(
    withoutNames("[3,000 lines; show_full with id 1ngb0r has all]"),
    "[3,000 lines; show_full with id … has all]",
  );
  const long = "show_full ".repeat(200_000);
  assert.equal(withoutNames(long), long);
});
