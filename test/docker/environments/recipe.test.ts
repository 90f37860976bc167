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

const taking = (stage: number, path = "/opt/a"): object => ({
  run: "true",
  from: { stage, paths: [path], to: "/opt/" },
});

test("a recipe is validated strictly, with the position of errors", () => {
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
    [{ stages: [{ image: "a" }], system: [taking(1)] }, /system: .*earlier stages/],
    [{ stages: [{ image: "a", system: [taking(0)] }] }, /stages\.0: .*earlier stages/],
    [{ stages: [{ image: "a" }], system: [taking(0, "/../etc")] }, /from\.paths\.0/],
    [{ stages: [{ image: "a" }], system: [taking(0, "/")] }, /from\.paths\.0/],
    [{ stages: [{ image: "a" }], system: [taking(0, "/*")] }, /from\.paths\.0/],
    [{ stages: [{ image: "a" }], system: [taking(0, "/a/[b")] }, /from\.paths\.0: .*pattern/],
    [{ services: [{ name: "db", start: "postgres" }] }, /services\.0\.health/],
  ];
  for (const [value, said] of cases) assert.match(JSON.stringify(readRecipe(value)), said);
  assert.deepEqual(recipe({}), EMPTY_RECIPE);
  assert.equal(recipe({ packages: ["libpq-dev"], toolchains: { go: "1.22" } }).toolchains.go, "1.22");
});

test("the environment key depends on base, recipe and files, and the system layer's key only on its own parts", () => {
  const bases = { base: "sha256:a", stages: [] };
  const files = [
    { path: "a", hash: "1" },
    { path: "b", hash: "2" },
  ];
  const own = recipe({ packages: ["a1"], setup: [{ run: "make" }] });
  const key = environmentKey({ ...bases, recipe: own, files });
  assert.equal(environmentKey({ ...bases, recipe: own, files: files.toReversed() }), key);
  assert.notEqual(environmentKey({ ...bases, base: "sha256:b", recipe: own, files }), key);
  assert.notEqual(environmentKey({ ...bases, recipe: { ...own, setup: [] }, files }), key);
  assert.notEqual(environmentKey({ ...bases, recipe: own, files: files.slice(1) }), key);
  const other = recipe({ packages: ["a1"], setup: [{ run: "other" }], env: { A: "1" }, folders: ["x"] });
  assert.equal(systemKey(bases, own), systemKey(bases, other));
  assert.notEqual(systemKey(bases, own), systemKey(bases, recipe({ packages: ["a2"] })));
  const served = recipe({
    packages: ["a1"],
    services: [{ name: "db", packages: ["postgresql"], start: "a", health: "b" }],
  });
  assert.notEqual(systemKey(bases, own), systemKey(bases, served));
});

const of = (read: Recipe, stages: readonly string[], owner = ""): string =>
  systemKey({ base: "sha256:a", stages }, read, owner);

test("the key of a layer with stages depends on their images and lines, and one with files is private to its owner", () => {
  const staged = (image: string, lines: readonly object[] = [{ run: "make" }]): Recipe =>
    recipe({ stages: [{ image, system: lines }], system: [taking(0)] });
  const key = of(staged("one"), ["sha256:1"]);
  assert.equal(of(staged("other name"), ["sha256:1"]), key, "an image is identified by its content");
  assert.equal(of(staged("one"), ["sha256:1"], "me"), key);
  const file = { path: "a", to: "/a", sha256: "0".repeat(64), mode: "644" };
  const filed = staged("one", [{ run: "make", files: [file] }]);
  const others = [
    of(staged("one"), ["sha256:2"]),
    of(staged("one", [{ run: "make other" }]), ["sha256:1"]),
    of(recipe({ stages: [{ image: "one", system: [{ run: "make" }] }], system: [taking(0, "/opt/b")] }), [
      "sha256:1",
    ]),
    of(filed, ["sha256:1"]),
    of(filed, ["sha256:1"], "me"),
  ];
  assert.equal(new Set([key, ...others]).size, 6);
  const files = [] as const;
  const whole = (read: Recipe, stages: readonly string[]): string =>
    environmentKey({ base: "sha256:a", stages, recipe: read, files });
  assert.notEqual(whole(staged("one"), ["sha256:1"]), whole(staged("one"), ["sha256:2"]));
});
