// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { applyPatch } from "diff";
import { groupChanges, hunksOf, splitLines } from "../../../src/core/text/line-diff.ts";
import { lineChanges, mergeLines } from "../../../src/sessions/checkpoints/checkpoint-diff.ts";
import { fc, part } from "../../fixtures/property.ts";

const lines = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 14 });
const MANY = 10_000;

test("the changes turn the old lines into the new ones, and are minimal", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const changes = lineChanges(before, after, MANY);
      assert.deepEqual(madeOf(before, after, changes), after);
      const touched = changes.reduce((all, one) => all + one.to - one.from + one.newTo - one.newFrom, 0);
      assert.equal(touched, before.length + after.length - 2 * longestCommon(before, after));
    }),
    { numRuns: part(2000) },
  );
});

test("under any limit the changes still give the new lines", () => {
  fc.assert(
    fc.property(lines, lines, fc.nat(6), (before, after, most) => {
      assert.deepEqual(madeOf(before, after, lineChanges(before, after, most)), after);
    }),
  );
});

type Changes = ReturnType<typeof lineChanges>;

function madeOf(before: readonly string[], after: readonly string[], changes: Changes): readonly string[] {
  const made = before.slice();
  for (const { from, to, newFrom, newTo } of changes.toReversed())
    made.splice(from, to - from, ...after.slice(newFrom, newTo));
  return made;
}

function longestCommon(a: readonly string[], b: readonly string[]): number {
  let row = b.map(() => 0);
  for (const one of a) {
    const next: number[] = [];
    for (const [j, other] of b.entries())
      next.push(one === other ? (row[j - 1] ?? 0) + 1 : Math.max(row[j] ?? 0, next[j - 1] ?? 0));
    row = next;
  }
  return row.at(-1) ?? 0;
}

const text = fc
  .array(fc.constantFrom("a", "b", "c\r", "", "\u2028", "-", "\\ No newline"), { maxLength: 30 })
  .chain((all) => fc.constantFrom(all.join("\n"), all.map((line) => `${line}\n`).join("")));

for (const around of [0, 2, 3])
  test(`hunks with ${around} lines around each change can be applied by another program`, () => {
    fc.assert(
      fc.property(text, text, (from, to) => {
        const [before, after] = [splitLines(from), splitLines(to)];
        const hunks = hunksOf(lineChanges(before, after, MANY), { before, after }, around);
        const body = hunks.flatMap((hunk) => [
          `@@ -${hunk.from.join(",")} +${hunk.to.join(",")} @@`,
          ...hunk.lines,
        ]);
        assert.equal(applyPatch(from, ["--- a", "+++ b", ...body, ""].join("\n")), to);
      }),
    );
  });

const change = (from: number, to: number) => ({ from, to, newFrom: from, newTo: to });

test("changes close enough together form one group", () => {
  const [a, b, c] = [change(0, 1), change(4, 4), change(8, 9)];
  assert.deepEqual(groupChanges([a, b, c], 3), [[a, b], [c]]);
  assert.deepEqual(groupChanges([], 3), []);
});

/*
 * Texts made to keep a diff busy. Nothing here is timed: without a bound these do not end.
 */

const numbered = (word: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${word} ${at}\n`);

for (const [what, before, after] of [
  ["different lines", numbered("old", 100_000), numbered("new", 100_000)],
  ["the same lines in reverse order", numbered("a", 100_000), numbered("a", 100_000).toReversed()],
  [
    "repeated lines",
    Array.from({ length: 100_000 }, (_, at) => `${at % 2}\n`),
    Array.from({ length: 100_000 }, (_, at) => `${(at + 1) % 3}\n`),
  ],
] as const)
  test(`100,000 lines and ${what} are one change, and cannot be merged`, () => {
    assert.equal(lineChanges(before, after, 2000).length, 1);
    const other = ["mine\n", ...before.slice(1)].join("");
    assert.equal(mergeLines(before.join(""), after.join(""), other), undefined);
  });

test("lines of a megabyte that differ only at their ends are compared once each", () => {
  const long = "x".repeat(2 ** 20);
  const [before, after] = ["o", "n"].map((word) =>
    Array.from({ length: 4 }, (_, at) => `${long}${word}${at}\n`),
  );
  assert.deepEqual(lineChanges(before ?? [], after ?? [], 2000), [{ from: 0, to: 4, newFrom: 0, newTo: 4 }]);
});

test("as many changes as the limit are still listed one by one", () => {
  const before = numbered("line", 100);
  const after = before.flatMap((line, at) => (at % 10 === 0 ? [] : [line]));
  assert.equal(lineChanges(before, after, 10).length, 10);
  assert.equal(lineChanges(before, after, 9).length, 1);
});
