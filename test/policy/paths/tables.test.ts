import assert from "node:assert/strict";
import test from "node:test";
import { foldPath } from "../../../src/core/file-names.ts";
import { MAX_DEPTH, secretAt, startupInHome, startupOfSystem } from "../../../src/policy/paths/path-place.ts";
import { SECRETS } from "../../../src/policy/paths/secret-paths.generated.ts";
import { HOME_STARTUP, SYSTEM_STARTUP } from "../../../src/policy/paths/startup-paths.generated.ts";

for (const [name, table, found] of [
  ["home", HOME_STARTUP, startupInHome],
  ["system", SYSTEM_STARTUP, startupOfSystem],
] as const) {
  const rows = Object.entries(table).flatMap(([why, paths]) => paths.map((path) => [path, why] as const));

  test(`every row of the ${name} start-up table is folded, unique, not too deep, and matches itself and paths below`, () => {
    const paths = rows.map(([path]) => path);
    assert.deepEqual(paths.map(foldPath), paths);
    assert.equal(new Set(paths).size, paths.length);
    assert.ok(paths.every((path) => path.split("/").length <= MAX_DEPTH));
    assert.deepEqual(
      rows.map(([path]) => [path, found(path), found(`${path}/x/y/z/1/2/3`), found(`${path}x`)?.length ?? 0]),
      rows.map(([path, why]) => [path, why, why, 0]),
    );
  });
}

test("every row of the secrets table is folded, unique, and matches wherever it applies", () => {
  const rows = Object.entries(SECRETS).flatMap(([why, paths]) => paths.map((path) => ({ why, path })));
  const paths = rows.map(({ path }) => path);
  assert.deepEqual(
    paths.map((path) => foldPath(path.replace("*", "x")).replace(/\/$/, "")),
    paths.map((path) => path.replace("*", "x").replace(/\/$/, "")),
  );
  assert.equal(new Set(paths).size, paths.length);
  for (const { path } of rows) {
    const plain = path.replace("*", "x").replace(/\/$/, "");
    assert.notEqual(secretAt(`/${plain}`), null, path);
    assert.notEqual(secretAt(`/a/b/${plain}`), null, path);
    assert.equal(path.endsWith("/") && secretAt(`/a/${plain}/b`) === null, false, path);
  }
});

test("a folder named like a secret file does not make its contents secret", () => {
  assert.deepEqual(
    [secretAt("/w/.env/bin/activate"), secretAt("/w/x.key/a"), secretAt("/w/xrun/secrets/a")],
    [null, null, null],
  );
});
