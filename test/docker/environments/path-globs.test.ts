import assert from "node:assert/strict";
import test from "node:test";
import { globOf, ignoredBy, Steps, TooManySteps } from "../../../src/docker/environments/path-globs.ts";

const holds = (pattern: string, path: string, deep = true): boolean =>
  globOf(pattern, deep)?.matches(path, new Steps()) === true;

test("stars stay within a name, two of them go through folders", () => {
  for (const [pattern, path] of [
    ["*.md", "a.md"],
    ["a/*/c", "a/b/c"],
    ["**/c", "c"],
    ["**/c", "a/b/c"],
    ["a/**", "a/b/c"],
    ["a/**/c", "a/c"],
    ["a/**/c", "a/b/b/c"],
    ["?.txt", "a.txt"],
    ["[a-c]x", "bx"],
    ["[^a-c]x", "dx"],
    [String.raw`\*x`, "*x"],
    ["a**b", "a/x/b"],
  ] as const)
    assert.ok(holds(pattern, path), `${pattern} is ${path}`);
  for (const [pattern, path] of [
    ["*.md", "a/b.md"],
    ["a/*/c", "a/b/b/c"],
    ["**/c", "ac"],
    ["a/**/c", "ac"],
    ["?", "/"],
    ["[^a]", "/"],
    ["[a-c]x", "dx"],
    [String.raw`\*x`, "ax"],
  ] as const)
    assert.ok(!holds(pattern, path), `${pattern} is not ${path}`);
  assert.ok(!holds("a**b", "a/x/b", false));
  assert.equal(globOf("[a", true), undefined);
  assert.equal(globOf("a\\", true), undefined);
});

test("of the lines of a .dockerignore the last one that holds counts, for folders all that is below", () => {
  const ignored = ignoredBy("# all\n*\n!src\n src/*.log \n!/src/keep.log\n\n!docs/**/*.md\n");
  const left = (path: string): boolean => ignored(path, new Steps());
  const paths = [
    "a",
    "src",
    "src/x.ts",
    "src/x.log",
    "src/keep.log",
    "src/deep/x.log",
    "docs/a/b.md",
    "docs/b.txt",
  ];
  assert.deepEqual(paths.map(left), [true, false, false, true, false, false, false, true]);
  assert.equal(ignoredBy("node_modules")("node_modules/a/b", new Steps()), true);
  assert.equal(ignoredBy("node_modules")("packages/node_modules/a", new Steps()), false);
});

test("patterns that were made to take for ever are ended", () => {
  const hostile = `${"**a".repeat(150)}b\n`.repeat(400);
  const ignored = ignoredBy(hostile);
  assert.throws(() => {
    const steps = new Steps();
    for (let n = 0; n < 5000; n += 1) ignored("a/".repeat(140), steps);
  }, TooManySteps);
  assert.throws(() => ignoredBy("a\n".repeat(10_000)), TooManySteps);
});
