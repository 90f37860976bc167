import assert from "node:assert/strict";
import test from "node:test";
import { globPattern } from "../../src/tools/search-tools.ts";

const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["*.ts", ["a.ts", "src/deep/a.ts"], ["a.tsx", "a.ts/b"]],
  ["src/*.ts", ["src/a.ts"], ["src/b/a.ts", "x/src/a.ts"]],
  ["src/**/*.ts", ["src/a.ts", "src/b/c/a.ts"], ["a.ts", "src/a.js"]],
  ["**/test/**", ["test/a", "x/test/y/z"], ["tests/a"]],
  ["./src/", ["src/a", "src/b/c"], ["lib/a"]],
  ["/a.ts", ["a.ts"], ["b.ts"]],
  ["*.{js,ts{,x}}", ["a.js", "a.ts", "a.tsx"], ["a.jsx"]],
  ["a{b}c", ["a{b}c"], ["abc"]],
  ["file?.[ch]", ["file1.c", "fileä.h"], ["file12.c", "file1.o"]],
  ["[!a-c]x", ["dx"], ["ax", "bx"]],
  ["[]]x", ["]x"], ["x"]],
  ["\\*x", ["*x"], ["ax"]],
  ["a.b", ["a.b"], ["axb"]],
  [".env*", [".env", ".env.local"], ["x.env"]],
  ["*a*b*", ["ab", "xaxbx"], ["ba"]],
  ["[x", ["[x"], ["x"]],
];

for (const [pattern, fitting, others] of CASES)
  test(`${pattern} fits what it should and nothing else`, () => {
    const fits = globPattern(pattern);
    assert.deepEqual([fitting.filter(fits), others.filter(fits)], [fitting, []]);
  });

test("a pattern of many stars is answered at once", () => {
  assert.equal(globPattern(`${"*a".repeat(60)}b`)("a".repeat(4000)), false);
  assert.equal(globPattern(`${"**/a/".repeat(60)}b`)("a/".repeat(2000)), false);
  assert.equal(globPattern("{a,b}".repeat(40))("a".repeat(40)), false);
});
