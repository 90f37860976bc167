import assert from "node:assert/strict";
import test from "node:test";
import { arrange } from "../../../src/boxes/workspace/protected-mounts.ts";
import { refusalOf } from "../../fixtures/refusal.ts";

test("parents come before children, paths inside another are left out, and ancestors are pinned once", () => {
  assert.deepEqual(arrange("/w", ["/w/a/b/.git", "/w/.git", "/w/.git/x", "/w/a/b/c/.envrc", "/w/.gitx"]), {
    readOnly: ["/w/.git", "/w/.gitx", "/w/a/b/.git", "/w/a/b/c/.envrc"],
    pinned: ["/w/a", "/w/a/b", "/w/a/b/c"],
    warnings: [],
  });
});

test("with too many paths, the smallest folder that saves enough becomes read-only as a whole, with a warning", () => {
  const many = Array.from({ length: 10 }, (_, index) => `/w/packages/p${index}/.git`);
  const few = ["/w/.git", "/w/x/y/.git", "/w/x/z/.git"];
  const { readOnly, pinned, warnings } = arrange("/w", [...many, ...few], 12);
  assert.deepEqual(readOnly, ["/w/.git", "/w/packages", "/w/x/y/.git", "/w/x/z/.git"]);
  assert.deepEqual(pinned, ["/w/x", "/w/x/y", "/w/x/z"]);
  assert.match(warnings.join(), /^\/w\/packages is read-only as a whole/);
});

test("too many sibling folders are refused", async () => {
  const many = Array.from({ length: 300 }, (_, index) => `/w/p${index}/.git`);
  assert.equal((await refusalOf(() => arrange("/w", many)))[0], 6);
});
