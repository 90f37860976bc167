import assert from "node:assert/strict";
import test from "node:test";
import {
  asSeenFrom,
  pathBelow,
  whyDeceptive,
  foldName,
  folderBefore,
  foldPath,
  isInside,
  lastName,
  namesFrom,
  PROTECTED,
  protectedIn,
  protectedName,
  skeletonOf,
} from "../../src/core/file-names.ts";

test("a path consists of its folder and its last name", () => {
  for (const path of ["/a/b.ts", "b.ts", "a/", "/"]) assert.equal(folderBefore(path) + lastName(path), path);
  assert.deepEqual([folderBefore("/a/b.ts"), lastName("/a/b.ts")], ["/a/", "b.ts"]);
});

test("a folder contains itself and what is below it, not names with the same beginning", () => {
  assert.deepEqual(
    ["/a", "/a/b", "/ab", "/"].map((path) => isInside("/a", path)),
    [true, true, false, false],
  );
  assert.deepEqual(
    ["/", "/a", "a"].map((path) => isInside("/", path)),
    [true, true, false],
  );
  assert.deepEqual(
    [pathBelow("/a", "/a/b/c"), pathBelow("/", "/a"), pathBelow("/a", "/a")],
    ["b/c", "a", ""],
  );
});

test("a path inside a folder is shown relative to it, and any other unchanged", () => {
  assert.deepEqual(
    ["/w/a", "/w", "/wa", "a"].map((path) => asSeenFrom("/w", path)),
    ["a", "/w", "/wa", "a"],
  );
});

test("a path is resolved from a folder, and never above the first of its names", () => {
  assert.deepEqual(namesFrom(["a", "b"], "./../c//d"), ["a", "c", "d"]);
  assert.deepEqual(namesFrom(["a"], ".."), []);
  assert.equal(namesFrom(["a"], "../../b"), undefined);
});

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
  test(`${JSON.stringify(name)} is treated as .git`, () => {
    assert.equal(protectedName(name, false)?.name, ".git");
  });

for (const [name, atTop, is] of [
  [".VSCode", false, true],
  [".vſcode", false, true],
  ["my.code-workspace", false, true],
  [".nvim.lua", false, true],
  [".exrc", false, true],
  [".helix", false, true],
  [".dir-locals.el", false, true],
  [".sl", false, true],
  [".pi", false, true],
  [".vibe", false, true],
  [".clinerules", false, true],
  [".theia", false, true],
  [".vimrc", true, false],
  ["init.el", true, false],
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

for (const [path, is] of [
  [".github/hooks/a.json", true],
  ["sub/.GitHub/HOOKS", true],
  [".config/mise/conf.d/a.toml", true],
  ["mise/config.toml", true],
  [".github/workflows/hooks", false],
  [".github", false],
  ["hooks", false],
  ["src/hooks/a.ts", false],
  ["config.toml", false],
  ["mise/tasks.md", false],
  [".config/fish/config.fish", false],
] as const)
  test(`${path} is ${is ? "" : "not "}protected as a path`, () => {
    assert.equal(protectedIn(path.split("/")) !== undefined, is);
  });

test("every protected name is listed once, in the form used for comparison, with its reason", () => {
  const names = PROTECTED.map(({ name }) => name);
  assert.deepEqual(names.map(foldPath), names);
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
    assert.equal(foldPath(path), path.split("/").map(foldName).join("/"), path);
});

for (const [name, why] of [
  ["\u0441onfig.json", /looks like "config\.json", with U\+0441/],
  ["te\u202Etxt.sj", /invisible characters: U\+202E/],
  ["a\u200Db", /U\+200D/],
  ["\uFF43onfig", /"config"/],
  ["pay\u2010pal", /U\+2010/],
  ["\u0440\u0430\u0443", /"pay"/],
] as const)
  test(`a deceptive name is reported: ${JSON.stringify(name)}`, () => {
    assert.match(whyDeceptive(name) ?? "", why);
  });

test("ordinary names in any language are not deceptive", () => {
  for (const name of [
    "config.json",
    "a-b_c.d",
    "r\u00E9sum\u00E9.md",
    "\u043F\u0440\u0438\u043C\u0435\u0440.md",
    "\u65E5\u672C\u8A9E",
    ".harness/skills/a b/SKILL.md",
  ])
    assert.equal(whyDeceptive(name), undefined, name);
});

test("names that look the same have the same skeleton, others do not", () => {
  for (const name of [".Harness", ".h\u0430rness", ".har\u200Bness", ".\uFF48arness"])
    assert.equal(skeletonOf(name), ".harness");
  assert.notEqual(skeletonOf(".harmess"), ".harness");
});
