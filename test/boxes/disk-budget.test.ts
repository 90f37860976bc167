import assert from "node:assert/strict";
import test from "node:test";
import { overBudget } from "../../src/boxes/disk-budget.ts";

const BUDGET = { growth: 100, floor: 50, inodes: 10 };
const START = { bytes: 1000, inodes: 1000 };

const CASES: Readonly<Record<string, readonly [now: typeof START, over: RegExp | undefined]>> = {
  "nothing happens": [START, undefined],
  "the budget is not quite used": [{ bytes: 900, inodes: 1000 }, undefined],
  "the budget is used up": [{ bytes: 899, inodes: 1000 }, /disk budget/],
  "the inodes run out": [{ bytes: 1000, inodes: 9 }, /inodes/],
};

for (const [name, [now, over]] of Object.entries(CASES))
  test(`the disk is watched: ${name}`, () => {
    const said = overBudget(START, now, BUDGET);
    if (over === undefined) assert.equal(said, undefined);
    else assert.match(said ?? "", over);
  });

test("a full disk of the host is blamed on the run only if the run filled it", () => {
  assert.equal(overBudget({ bytes: 40, inodes: 0 }, { bytes: 30, inodes: 0 }, BUDGET), undefined);
  assert.match(overBudget({ bytes: 90, inodes: 0 }, { bytes: 30, inodes: 0 }, BUDGET) ?? "", /nearly full/);
});
