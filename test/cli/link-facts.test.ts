import assert from "node:assert/strict";
import { mkdir, realpath, symlink } from "node:fs/promises";
import test from "node:test";
import { linkFacts } from "../../src/app/project/policy-context.ts";
import { scratch } from "../fixtures/scratch.ts";

test("a path is resolved as the kernel would, also if its target does not exist yet", async () => {
  await using place = await scratch({ "w/src/a.ts": "", "other/deep/b.ts": "" });
  const root = await realpath(place.path);
  await mkdir(place.at("w/.git"));
  for (const [name, target] of [
    ["w/hooks", ".git"],
    ["w/out", place.at("other/deep")],
    ["w/dangling", "../gone/x"],
    ["w/again", "dangling"],
    ["w/circle", "circle"],
    ["link", "w"],
  ] as const)
    await symlink(target, place.at(name));
  for (const [given, wanted] of [
    ["w/src/a.ts", "w/src/a.ts"],
    ["w/src/new/b.ts", "w/src/new/b.ts"],
    ["w/hooks/pre-commit", "w/.git/pre-commit"],
    ["w/out/b.ts", "other/deep/b.ts"],
    ["w/out/../x", "other/x"],
    ["w/out/new/../../../x", "x"],
    ["w/dangling", "gone/x"],
    ["w/again/y", "gone/x/y"],
    ["link/hooks/x", "w/.git/x"],
    ["link//./src", "w/src"],
  ] as const)
    assert.equal(linkFacts(`${place.path}/${given}`), `${root}/${wanted}`, given);
  assert.equal(linkFacts(place.at("w/circle/x")), null);
});

test("an impossible file name is not an error", () => {
  assert.equal(linkFacts("/a\u0000b"), "/a\u0000b");
  assert.equal(typeof linkFacts(`/${"x".repeat(5000)}`), "string");
});
