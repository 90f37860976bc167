import assert from "node:assert/strict";
import test from "node:test";
import { boundedDiff, compactDiff } from "../../../src/tools/edits/text-edit.ts";
import { lineChanges } from "../../../src/core/line-diff.ts";
import { fc } from "../../fixtures/property.ts";

const lines = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 14 });

test("changes made to the old lines give the new ones, and are as few as can be", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const made = before.slice();
      const changes = lineChanges(before, after);
      for (const { from, to, newFrom, newTo } of changes.toReversed())
        made.splice(from, to - from, ...after.slice(newFrom, newTo));
      assert.deepEqual(made, after);
      const touched = changes.reduce((all, one) => all + one.to - one.from + one.newTo - one.newFrom, 0);
      assert.equal(touched, before.length + after.length - 2 * longestCommon(before, after));
    }),
    { numRuns: 2000 },
  );
});

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

test("texts that have next to nothing in common are one change", () => {
  const before = Array.from({ length: 3000 }, (_, at) => `old ${at}`);
  const after = Array.from({ length: 3000 }, (_, at) => `new ${at}`);
  const changes = lineChanges(["same", ...before], ["same", ...after]);
  assert.deepEqual(changes, [{ from: 1, to: 3001, newFrom: 1, newTo: 3001 }]);
});

test("a compact diff has two lines around each change, and counts what was added and removed", () => {
  const before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n";
  const { added, removed, lines } = compactDiff(
    before,
    before.replace("3\n", "three\nand\n").replace("11\n", "11"),
  );
  assert.deepEqual([added, removed], [3, 2]);
  assert.deepEqual(lines.join("\n").split("\n"), [
    "@@ -1,5 +1,6 @@",
    ..." 1| 2|-3|+three|+and| 4| 5".split("|"),
    "@@ -9,3 +10,3 @@",
    ..." 9| 10|-11|+11|\\ No newline at end of file".split("|"),
  ]);
  assert.deepEqual(compactDiff("", "a\n").lines, ["@@ -0,0 +1 @@", "+a"]);
  assert.deepEqual(compactDiff(before, before).lines, []);
});

test("a long diff is cut with a count, a long line with its own", () => {
  const { lines } = compactDiff("", "x\n".repeat(100));
  assert.equal(boundedDiff(lines).split("\n").length, 61);
  assert.match(boundedDiff(lines), /\n\[and 41 more lines of this diff\]$/);
  assert.match(compactDiff("", `${"y".repeat(5000)}\n`).lines.join("\n"), /\+y+\[… 47\d\d more\]$/);
});
