import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../../fixtures/property.ts";
import { isIgnored, MAX_RULES_LENGTH, readIgnore } from "../../../src/policy/paths/ignore-rules.ts";

/** Rules, the paths that they hide, and paths that they do not. A path that ends in a slash is a folder, any other a file. */
const CASES: readonly (readonly [rules: string, hidden: string, shown: string])[] = [
  ["a.txt", "a.txt x/a.txt a.txt/b", "b.txt a.txt.bak xa.txt"],
  ["/a.txt", "a.txt a.txt/b", "x/a.txt"],
  ["x/a", "x/a x/a/b", "y/x/a a"],
  ["build/", "build/ build/x y/build/z", "build y/build"],
  ["*.log", "a.log .log x/b.log", "a.log.txt log"],
  ["a?c", "abc aéc a😀c", "ac abbc"],
  ["/x/*", "x/a x/a/b", "x/ y"],
  ["x/*/y", "x/a/y", "x/y x/a/b/y"],
  ["**/a/b", "a/b x/a/b x/y/a/b", "a/x/b"],
  ["a/**", "a/b a/b/c", "a/ x/a/b"],
  ["a/**/b", "a/b a/x/b a/x/y/b", "a/x b"],
  ["**", "a a/b", ""],
  ["a\0b\nc", "a c", "b ab"],
  ["a/**/", "a/b/ a/b/c", "a/b"],
  ["# a\n\\#b\n\n   \nc", "#b c", "a b"],
  ["\\!a", "!a", "a"],
  ["*.env\n!ok.env", "a.env", "ok.env x/ok.env"],
  ["secret/\n!secret/open", "secret/ secret/open", "secret"],
  ["/secret/*\n!/secret/open", "secret/a", "secret/open"],
  ["!a\na", "a", ""],
  ["a  \nb\\ \nc\\\\ ", "a", "a%20 c"],
  ["[ab]x", "ax bx", "cx x"],
  ["[!ab]x", "cx", "ax bx"],
  ["[^ab]x", "cx", "ax"],
  ["[a-c]x", "bx", "dx"],
  ["[z-a]x", "", "zx ax bx"],
  ["[]a]x", "]x ax", "bx"],
  ["[a-]x", "-x ax", "bx"],
  ["[\\]]x", "]x", "\\x"],
  ["[[:digit:]]x", "1x", "ax :x"],
  ["[[:nothing:]]x", "", "nx ax"],
  ["[ab", "", "a [ab"],
  ["a\\", "", "a a\\"],
  ["a\\*b", "a*b", "axb"],
  ["x[/]y", "", "x/y x"],
  ["a.txt\r\nb.txt\r\n", "a.txt b.txt", "c"],
  ["\ufeffa", "a", "b"],
  ["Secret", "secret SECRET", "secrets"],
  ["*\n!Keep", "keep", "Keep"],
];

const words = (text: string): readonly string[] => text.split(" ").filter((word) => word !== "");

for (const [text, hidden, shown] of CASES)
  test(`${JSON.stringify(text)} hides ${hidden || "nothing"}, and not ${shown || "nothing"}`, () => {
    const rules = readIgnore(text);
    const hides = (word: string): boolean => isIgnored(rules, word, word.endsWith("/"));
    assert.deepEqual(words(hidden).filter(hides), words(hidden));
    assert.deepEqual(words(shown).filter(hides), []);
  });

test("an escaped trailing blank is part of the pattern", () => {
  const rules = readIgnore("b\\ \nc\\\\ ");
  const hidden = ["b ", "b", "c\\", "c\\ "].filter((path) => isIgnored(rules, path, false));
  assert.deepEqual(hidden, ["b ", "c\\"]);
});

test("a path that may be a folder is hidden if it would be hidden as one", () => {
  assert.equal(isIgnored(readIgnore("build/"), "build"), true);
  assert.equal(isIgnored(readIgnore("build\n!build/"), "build"), true);
});

test("the workspace itself is never hidden", () => {
  assert.deepEqual(
    ["", ".", "./", "/"].map((path) => isIgnored(readIgnore("*\n**"), path)),
    [false, false, false, false],
  );
});

test("rules that are too long to read hide everything", () => {
  const rules = readIgnore(`# ${"x".repeat(MAX_RULES_LENGTH)}`);
  assert.equal(isIgnored(rules, "a"), true);
  assert.equal(isIgnored(readIgnore(`# ${"x".repeat(MAX_RULES_LENGTH - 2)}`), "a"), false);
});

test("any rules and any path give an answer", () => {
  const atoms = fc.constantFrom(
    "*",
    "**",
    "/",
    "?",
    "[",
    "]",
    "!",
    "\\",
    "a",
    "[a-z]",
    "[[:alpha:]]",
    "\n",
    " ",
    "#",
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(atoms).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, text, (rules, path) => {
      assert.equal(typeof isIgnored(readIgnore(rules), path), "boolean");
    }),
  );
});

test("rules designed to be slow are still answered", () => {
  const hostile: readonly (readonly [string, string])[] = [
    [`${"*a".repeat(500)}b`, "a".repeat(4096)],
    [`${"**/a/".repeat(500)}b`, "a/".repeat(2000)],
    ["[".repeat(60_000), "a"],
    [`${"**/".repeat(20_000)}x`, "a/b/c"],
    ["*".repeat(60_000), "a".repeat(4096)],
  ];
  assert.deepEqual(
    hostile.map(([rules, path]) => isIgnored(readIgnore(rules), path)),
    [false, false, false, false, true],
  );
});
