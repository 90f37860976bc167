import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace } from "../../../src/render/tty/live-lines.ts";

function after(...marks: readonly (readonly [done: number, at: number])[]): number | null {
  const pace = new Pace();
  for (const [done, at] of marks) pace.take(done, at);
  return pace.perSecond;
}

test("no estimate is given before two intervals have the same pace", () => {
  assert.equal(after(), null);
  assert.equal(after([1, 60_000]), null, "the first file includes the start of the box");
  assert.equal(after([1, 0], [2, 40]), null);
  assert.equal(after([1, 0], [101, 2000]), null);
  assert.equal(after([1, 0], [2, 2000], [2002, 4000]), null, "the first interval includes loading the model");
  assert.equal(after([0, 0], [0, 2000], [0, 4000]), null);
});

test("work done before the first measurement is not counted", () => {
  assert.equal(after([90_000, 0], [90_020, 2000], [90_040, 4000]), 10);
});

test("after a change of pace an estimate is given once the pace is steady again", () => {
  const marks = [
    [0, 0],
    [20, 2000],
    [40, 4000],
    [1040, 6000],
  ] as const;
  assert.equal(after(...marks), null);
  assert.equal(after(...marks, [2040, 8000]), 500);
});
