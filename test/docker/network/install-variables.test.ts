import assert from "node:assert/strict";
import test from "node:test";
import { installVariables } from "../../../src/docker/network/install-variables.ts";

const NOW = Date.parse("2026-03-10T12:00:00Z");
const DAY = 24 * 60 * 60_000;
const RULES = { install_scripts: [], min_release_age: 0 };
const variables = (presets: readonly string[], more: Partial<Parameters<typeof installVariables>[1]> = {}) =>
  installVariables(new Set(presets), { ...RULES, ...more }, NOW);

test("without a preset nothing is set", () => {
  assert.deepEqual(variables([]), {});
  assert.deepEqual(variables(["example.org", "git"], { min_release_age: DAY }), {});
});

test("with npm's registries the scripts of packages are off, in every manager of its packages", () => {
  assert.deepEqual(variables(["npm"]), {
    npm_config_ignore_scripts: "true",
    YARN_IGNORE_SCRIPTS: "true",
    YARN_ENABLE_SCRIPTS: "false",
    YARN_ENABLE_IMMUTABLE_INSTALLS: "true",
  });
});

test("pip takes what is built already, unless packages may run code of theirs", () => {
  assert.deepEqual(variables(["pip"]), { PIP_ONLY_BINARY: ":all:" });
  assert.deepEqual(variables(["pip"], { install_scripts: ["x"] }), { PIP_PREFER_BINARY: "1" });
});

test("a least age is told to those that can be told", () => {
  assert.deepEqual(variables(["pip", "cargo"], { min_release_age: 3 * DAY }), {
    PIP_ONLY_BINARY: ":all:",
    UV_EXCLUDE_NEWER: "2026-03-07T12:00:00.000Z",
    PIP_UPLOADED_PRIOR_TO: "2026-03-07T12:00:00.000Z",
  });
  const npm = variables(["npm"], { min_release_age: 3 * DAY });
  assert.equal(npm["npm_config_before"], "2026-03-07T12:00:00.000Z");
  assert.equal(npm["npm_config_minimum_release_age"], String(3 * 24 * 60));
  assert.equal(npm["YARN_NPM_MINIMAL_AGE_GATE"], String(3 * 24 * 60));
});
