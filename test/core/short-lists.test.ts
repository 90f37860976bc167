import assert from "node:assert/strict";
import test from "node:test";
import { clipped, counted, firstLines, firstOf } from "../../src/core/wording.ts";

const NAMES = ["a", "b", "c"];

test("one is counted in the singular, all else in the plural", () => {
  assert.deepEqual(
    [0, 1, 2].map((count) => counted(count, "file")),
    ["0 files", "1 file", "2 files"],
  );
  assert.equal(counted(2, "process", "processes"), "2 processes");
});

test("of many the first are told, and how many more there are", () => {
  assert.equal(firstOf(NAMES, 3), "a, b, c");
  assert.equal(
    firstOf(NAMES, 2, (name) => `<${name}>`),
    "<a>, <b> and 1 more",
  );
  assert.equal(firstOf([], 2), "");
  assert.deepEqual(firstLines(NAMES, 1), ["a", "and 2 more"]);
  assert.deepEqual(firstLines(NAMES, 3), NAMES);
});

test("a text is cut with a mark, and only where it is longer", () => {
  assert.deepEqual(
    ["abc", "abcd", ""].map((text) => clipped(text, 3)),
    ["abc", "abc…", ""],
  );
});
