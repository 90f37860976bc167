import assert from "node:assert/strict";
import test from "node:test";
import { MAX_RULES_LENGTH, type IgnoreList, NestedIgnore } from "../../../src/policy/paths/ignore-rules.ts";
const list = (folder: string, ...rows: readonly string[]) => ({
  folder,
  text: rows.join("\n"),
  strict: false,
});

const nested = (lists: readonly IgnoreList[]): ((path: string, isFolder: boolean) => boolean) => {
  let made = NestedIgnore.none();
  for (const each of lists) made = made.below(each);
  return (path, isFolder) => made.leavesOut(path, isFolder);
};

test("rules apply from their folder down, and the deepest list takes precedence", () => {
  const ignored = nested([
    list("", "*.log", "/top.ts", "made/"),
    list("a", "!keep.log", "/top.ts"),
    list("a/b*c", "*.ts", "sub/x"),
  ]);
  const hidden = [
    "x.log",
    "a/x.log",
    "top.ts",
    "a/top.ts",
    "a/b*c/f.ts",
    "a/b*c/d/f.ts",
    "a/b*c/sub/x",
    "a/b*c/sub/x/y",
  ];
  const shown = ["a/keep.log", "b/top.ts", "a/c/top.ts", "a/bxc/f.ts", "a/b*c/d/sub/x", "made"];
  for (const path of hidden) assert.equal(ignored(path, false), true, path);
  for (const path of shown) assert.equal(ignored(path, false), false, path);
  assert.equal(ignored("made", true), true);
  assert.equal(ignored("keep.log", false), true, "it lies above the list that shows it again");
});

test("without lists nothing is ignored", () => {
  assert.equal(nested([])("a", false), false);
});

test("a list that is too long hides its whole folder if strict, or applies as far as it was read", () => {
  const text = `first\n${"x\n".repeat(40_000)}last\n`;
  const hides = nested([{ folder: "a", text, strict: true }]);
  assert.deepEqual(
    ["a/b", "b"].map((path) => hides(path, false)),
    [true, false],
  );
  const cut = nested([{ folder: "", text, strict: false }]);
  assert.deepEqual(
    ["first", "last", "b"].map((path) => cut(path, false)),
    [true, false, false],
  );
});

test("a list is read once, however many lists are below it", () => {
  const read: string[] = [];
  const counted = (folder: string): IgnoreList => ({
    folder,
    get text() {
      read.push(folder);
      return "x";
    },
    strict: false,
  });
  const top = NestedIgnore.none().below(counted(""));
  const times = read.length;
  const below = Array.from({ length: 50 }, (_, at) => top.below(list(`n${at}`, "!x")));
  assert.deepEqual(
    below.map((each, at) => [each.leavesOut(`n${at}/x`, false), each.leavesOut("x", false)]),
    below.map(() => [false, true]),
  );
  assert.equal(read.length, times);
});

test("letter case matters, except in a list that is there to hide", () => {
  const asWritten = nested([{ folder: "", text: "build\n/Dist/\n", strict: false }]);
  const strict = nested([{ folder: "", text: "build\n/Dist/\n", strict: true }]);
  const paths = ["build/a", "Build/a", "Dist/a", "dist/a"];
  assert.deepEqual(
    paths.map((path) => asWritten(path, false)),
    [true, false, true, false],
  );
  assert.deepEqual(
    paths.map((path) => strict(path, false)),
    [true, true, true, true],
  );
});

test("a list applies to its own folder, not to one whose name begins alike", () => {
  const ignored = nested([list("foo", "*.log")]);
  assert.deepEqual([ignored("foo/x.log", false), ignored("foobar/x.log", false)], [true, false]);
});

test("the row at which a long list is cut off is ignored", () => {
  const rows = "*.log\n".padEnd(MAX_RULES_LENGTH - 4, "#") + "\nlib";
  const ignored = nested([{ folder: "", text: `${rows}-of-others\n`, strict: false }]);
  assert.equal(rows.length, MAX_RULES_LENGTH);
  assert.deepEqual([ignored("x.log", false), ignored("lib", true)], [true, false]);
});
