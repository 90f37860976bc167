import assert from "node:assert/strict";
import test from "node:test";
import {
  ageNote,
  installVariables,
  managersWithoutAge,
  toolVariables,
  withoutAge,
  yarnAge,
} from "../../../src/docker/environments/tool-variables.ts";
import { recipeSchema } from "../../../src/docker/environments/recipe.ts";

const NOW = Date.parse("2026-03-10T12:00:00Z");
const DAY = 24 * 60 * 60_000;
const RULES = { install_scripts: [], min_release_age: 0 };
const variables = (presets: readonly string[], more: Partial<Parameters<typeof installVariables>[1]> = {}) =>
  installVariables(new Set(presets), { ...RULES, ...more }, NOW);

test("without a preset nothing is set", () => {
  assert.deepEqual(variables([]), {});
  assert.deepEqual(variables(["example.org", "git"], { min_release_age: DAY }), {});
});

test("with npm's registries package scripts are off in every manager", () => {
  assert.deepEqual(variables(["npm"]), {
    npm_config_ignore_scripts: "true",
    pnpm_config_ignore_scripts: "true",
    YARN_IGNORE_SCRIPTS: "true",
    YARN_ENABLE_SCRIPTS: "false",
    YARN_ENABLE_IMMUTABLE_INSTALLS: "true",
  });
});

test("pip uses prebuilt packages unless packages may run code", () => {
  assert.deepEqual(variables(["pip"]), { PIP_ONLY_BINARY: ":all:" });
  assert.deepEqual(variables(["pip"], { install_scripts: ["x"] }), { PIP_PREFER_BINARY: "1" });
});

test("a minimum age is passed to the managers that support it", () => {
  assert.deepEqual(variables(["pip", "cargo"], { min_release_age: 3 * DAY }), {
    PIP_ONLY_BINARY: ":all:",
    UV_EXCLUDE_NEWER: "2026-03-07T12:00:00.000Z",
    PIP_UPLOADED_PRIOR_TO: "2026-03-07T12:00:00.000Z",
    POETRY_SOLVER_MIN_RELEASE_AGE: "3",
  });
  const npm = variables(["npm"], { min_release_age: 3 * DAY });
  assert.equal(npm["npm_config_before"], "2026-03-07T12:00:00.000Z");
  assert.equal(npm["npm_config_minimum_release_age"], String(3 * 24 * 60));
  assert.equal(npm["pnpm_config_minimum_release_age"], String(3 * 24 * 60));
  const half = variables(["pip"], { min_release_age: DAY / 2 });
  assert.equal(half["POETRY_SOLVER_MIN_RELEASE_AGE"], "1");
});

test("yarn gets a minimum age only from the version that supports it", () => {
  const gate = { YARN_NPM_MINIMAL_AGE_GATE: String(24 * 60) };
  for (const version of ["4", "4.10.0", "4.18.1", "5.0.0"])
    assert.deepEqual(yarnAge(version, DAY), gate, version);
  for (const version of [null, "1.22.22", "2", "3.8.7", "4.9.2"])
    assert.deepEqual(yarnAge(version, DAY), {}, String(version));
  assert.deepEqual(yarnAge("4", 0), {});
  assert.equal(variables(["npm"], { min_release_age: DAY })["YARN_NPM_MINIMAL_AGE_GATE"], undefined);
});

test("managers without a minimum age are listed by name and version", () => {
  assert.deepEqual(managersWithoutAge({}), []);
  assert.deepEqual(managersWithoutAge({ pnpm: null, yarn: "4", uv: null, poetry: "2.4.0" }), []);
  assert.deepEqual(managersWithoutAge({ pnpm: "10.15.1", yarn: null, poetry: "1.8.5" }), [
    "pnpm 10.15.1",
    "yarn 1",
    "poetry 1.8.5",
  ]);
  assert.deepEqual(withoutAge(["npm", "pip", "cargo", "git"]), ["cargo"]);
  assert.equal(ageNote([]), undefined);
  assert.match(ageNote(["cargo", "yarn 1"]) ?? "", /has no effect on cargo, yarn 1:/);
});

test("managers that take no age in any version are listed by name", () => {
  assert.deepEqual(managersWithoutAge({ bun: "1.2.0", pdm: null, uv: null }), ["bun", "pdm"]);
});

const found = (...folders: readonly string[]) =>
  toolVariables(recipeSchema.parse({ toolchains: { python: null }, folders }), {
    workspace: "/w",
    granted: false,
    minAge: 0,
  });

test("the Python of a .venv is found first: that of the top, or else of the only one", () => {
  assert.equal(found("api/.venv", "web/node_modules")["VIRTUAL_ENV"], "/w/api/.venv");
  assert.equal(found("api/.venv", ".venv")["VIRTUAL_ENV"], "/w/.venv");
  assert.equal(found("a/.venv", "b/.venv")["VIRTUAL_ENV"], undefined);
  assert.equal(found("a/.venv")["PIP_NO_BUILD_ISOLATION"], "0", "a build uses what is installed");
});
