import assert from "node:assert/strict";
import test from "node:test";
import { boundedDiff, compactDiff } from "../../src/tools/text-edit.ts";

test("a compact diff has two lines of context around each change, and counts added and removed lines", () => {
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

test("a long diff and a long line are each cut with a count", () => {
  const { lines } = compactDiff("", "x\n".repeat(100));
  assert.equal(boundedDiff(lines).split("\n").length, 61);
  assert.match(boundedDiff(lines), /\n\[and 41 more lines of this diff\]$/);
  assert.match(compactDiff("", `${"y".repeat(5000)}\n`).lines.join("\n"), /\+y+\[… 47\d\d more\]$/);
});

const many = (word: string): string => Array.from({ length: 3000 }, (_, at) => `${word} ${at}\n`).join("");

test("texts that differ in too many lines become one change between their common lines", () => {
  const diff = compactDiff(`same\n${many("old")}end\n`, `same\n${many("new")}end\n`);
  assert.deepEqual([diff.added, diff.removed, diff.lines[0]], [3000, 3000, "@@ -1,3002 +1,3002 @@"]);
  assert.deepEqual([diff.lines[1], diff.lines[2], diff.lines.at(-1)], [" same", "-old 0", " end"]);
});
