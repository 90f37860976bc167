import assert from "node:assert/strict";
import test from "node:test";
import { deceives, skeletonOf } from "../../src/core/file-names.ts";

for (const [name, why] of [
  ["\u0441onfig.json", /looks like "config\.json", with U\+0441/],
  ["te\u202Etxt.sj", /invisible characters: U\+202E/],
  ["a\u200Db", /U\+200D/],
  ["\uFF43onfig", /"config"/],
  ["pay\u2010pal", /U\+2010/],
  ["\u0440\u0430\u0443", /"pay"/],
] as const)
  test(`a name that is taken for another is told: ${JSON.stringify(name)}`, () => {
    assert.match(deceives(name) ?? "", why);
  });

test("names as they are written in any language deceive nobody", () => {
  for (const name of [
    "config.json",
    "a-b_c.d",
    "r\u00E9sum\u00E9.md",
    "\u043F\u0440\u0438\u043C\u0435\u0440.md",
    "\u65E5\u672C\u8A9E",
    ".harness/skills/a b/SKILL.md",
  ])
    assert.equal(deceives(name), undefined, name);
});

test("names that look the same have one skeleton, others have not", () => {
  for (const name of [".Harness", ".h\u0430rness", ".har\u200Bness", ".\uFF48arness"])
    assert.equal(skeletonOf(name), ".harness");
  assert.notEqual(skeletonOf(".harmess"), ".harness");
});
