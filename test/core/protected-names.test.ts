import assert from "node:assert/strict";
import test from "node:test";
import { fold, foldPath, PROTECTED, protectedName } from "../../src/core/file-names.ts";

for (const name of [
  ".git",
  ".GIT",
  ".Git",
  ".g\u200cit",
  ".git.",
  ".git ",
  "git~1",
  ".git::$INDEX_ALLOCATION",
  ".ｇit",
  ".gıt",
])
  test(`${JSON.stringify(name)} is taken for .git`, () => {
    assert.equal(protectedName(name, false)?.name, ".git");
  });

for (const [name, atTop, is] of [
  [".VSCode", false, true],
  [".vſcode", false, true],
  ["my.code-workspace", false, true],
  [".aider.chat.history.md", false, true],
  [".bashrc", true, true],
  [".bashrc", false, false],
  [".harnessignore", true, true],
  [".harnessignore", false, false],
  [".gitignore", true, false],
  [".gitattributes", true, false],
  ["git", true, false],
  [".github", true, false],
  ["mise.toml.bak", true, false],
  ["CLAUDE.md", true, false],
] as const)
  test(`${name} ${atTop ? "at the top" : "below"} is ${is ? "" : "not "}protected`, () => {
    assert.equal(protectedName(name, atTop) !== undefined, is);
  });

test("every row is in the spelling that names are compared in, once, with its reason", () => {
  const names = PROTECTED.map(({ name }) => name);
  assert.deepEqual(names.map(fold), names);
  assert.equal(new Set(names).size, names.length);
  assert.ok(PROTECTED.every(({ why }) => why.length > 10));
});

test("a path is folded name by name", () => {
  for (const path of [
    "a/B.ts",
    "/.GIT./x",
    "a. /git~1",
    "x:y/.git::$INDEX_ALLOCATION",
    "/Ä/.g\u200cit",
    "a b/c.d",
    "/",
    "",
  ])
    assert.equal(foldPath(path), path.split("/").map(fold).join("/"), path);
});
