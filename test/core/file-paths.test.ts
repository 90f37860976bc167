import assert from "node:assert/strict";
import test from "node:test";
import { asSeenFrom, below, folderBefore, isInside, lastName, namesFrom } from "../../src/core/file-names.ts";

test("a path is its folder and its last name", () => {
  for (const path of ["/a/b.ts", "b.ts", "a/", "/"]) assert.equal(folderBefore(path) + lastName(path), path);
  assert.deepEqual([folderBefore("/a/b.ts"), lastName("/a/b.ts")], ["/a/", "b.ts"]);
});

test("a folder holds itself and what is below it, not what only begins like it", () => {
  assert.deepEqual(
    ["/a", "/a/b", "/ab", "/"].map((path) => isInside("/a", path)),
    [true, true, false, false],
  );
  assert.deepEqual(
    ["/", "/a", "a"].map((path) => isInside("/", path)),
    [true, true, false],
  );
  assert.deepEqual([below("/a", "/a/b/c"), below("/", "/a"), below("/a", "/a")], ["b/c", "a", ""]);
});

test("from a folder what lies in it is called by its rest, all else as it is", () => {
  assert.deepEqual(
    ["/w/a", "/w", "/wa", "a"].map((path) => asSeenFrom("/w", path)),
    ["a", "/w", "/wa", "a"],
  );
});

test("a path is followed from a folder, and not above the first of its names", () => {
  assert.deepEqual(namesFrom(["a", "b"], "./../c//d"), ["a", "c", "d"]);
  assert.deepEqual(namesFrom(["a"], ".."), []);
  assert.equal(namesFrom(["a"], "../../b"), undefined);
});
