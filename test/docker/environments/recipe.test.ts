import assert from "node:assert/strict";
import test from "node:test";
import {
  EMPTY_RECIPE,
  environmentKey,
  readRecipe,
  type Recipe,
  systemKey,
} from "../../../src/docker/environments/recipe.ts";

const recipe = (parts: object): Recipe => {
  const read = readRecipe(parts);
  assert.ok(!Array.isArray(read), JSON.stringify(read));
  return read as Recipe;
};

test("a recipe is strict, and says where it is wrong", () => {
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ package: ["a"] }, /package/],
    [{ packages: ["Not A Package"] }, /packages\.0: .*libpq-dev/],
    [{ packages: ["-oDir::Cache=/"] }, /packages\.0/],
    [{ folders: ["../outside"] }, /folders\.0: .*below the workspace/],
    [{ folders: ["/etc"] }, /folders\.0/],
    [{ folders: ["."] }, /folders\.0/],
    [{ setup: [{ run: "ls", folder: "a/../.." }] }, /setup\.0\.folder/],
    [{ env: { LD_PRELOAD: "x" } }, /decides what programs load/],
    [{ env: { PATH: "x" } }, /decides what programs load/],
    [{ toolchains: { node: "20; id" } }, /toolchains\.node: .*version/],
    [{ registries: ["https://x/"] }, /registries\.0/],
    [{ services: [{ name: "db", start: "postgres" }] }, /services\.0\.health/],
  ];
  for (const [value, said] of cases) assert.match(JSON.stringify(readRecipe(value)), said);
  assert.deepEqual(recipe({}), EMPTY_RECIPE);
  assert.equal(recipe({ packages: ["libpq-dev"], toolchains: { go: "1.22" } }).toolchains.go, "1.22");
});

test("the key goes by base, recipe and files; the system layer's by what it is made of alone", () => {
  const base = "sha256:a";
  const files = [
    { path: "a", hash: "1" },
    { path: "b", hash: "2" },
  ];
  const own = recipe({ packages: ["a1"], setup: [{ run: "make" }] });
  const key = environmentKey({ base, recipe: own, files });
  assert.equal(environmentKey({ base, recipe: own, files: files.toReversed() }), key);
  assert.notEqual(environmentKey({ base: "sha256:b", recipe: own, files }), key);
  assert.notEqual(environmentKey({ base, recipe: { ...own, setup: [] }, files }), key);
  assert.notEqual(environmentKey({ base, recipe: own, files: files.slice(1) }), key);
  const other = recipe({ packages: ["a1"], setup: [{ run: "other" }], env: { A: "1" }, folders: ["x"] });
  assert.equal(systemKey(base, own), systemKey(base, other));
  assert.notEqual(systemKey(base, own), systemKey(base, recipe({ packages: ["a2"] })));
  const served = recipe({
    packages: ["a1"],
    services: [{ name: "db", packages: ["postgresql"], start: "a", health: "b" }],
  });
  assert.notEqual(systemKey(base, own), systemKey(base, served));
});
