import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod } from "node:fs/promises";
import test from "node:test";
import { recipeSchema } from "../../../src/docker/environments/recipe.ts";
import {
  systemRegistries,
  systemSteps,
  VERSIONS_SCRIPT,
  versionsGot,
} from "../../../src/docker/environments/system-steps.ts";
import { stepFailed } from "../../../src/docker/environments/system-layer.ts";
import { toolVariables } from "../../../src/docker/environments/tool-variables.ts";
import { scratch } from "../../fixtures/scratch.ts";

const wishes = (recipe: object) => ({
  recipe: recipeSchema.parse(recipe),
  goProxy: "https://modules.example.org,direct",
  arch: "amd64",
});

test("a recipe that the sandbox image satisfies has no system layer and needs no network for one", () => {
  const plain = wishes({
    toolchains: { node: null, python: null },
    registries: ["npm"],
    setup: [{ run: "npm ci" }],
  });
  assert.deepEqual(systemSteps(plain), []);
  assert.deepEqual(systemRegistries(plain), []);
});

test("each toolchain comes from its own source, and only those registries are opened", () => {
  const all = wishes({
    packages: ["libpq-dev"],
    toolchains: { node: "20", go: "1.22", rust: "1.75", java: "17" },
    managers: { pnpm: "9.1.0", uv: null },
    services: [{ name: "db", packages: ["redis-server"], start: "redis-server", health: "redis-cli ping" }],
  });
  const steps = systemSteps(all);
  const titles = steps.map(({ title }) => title).join("\n");
  assert.match(
    titles,
    /libpq-dev redis-server rustc-web\|rustc cargo-web\|cargo lld openjdk-17-jdk-headless\|default-jdk-headless/,
  );
  assert.match(titles, /rust's linker\nnode 20\ngo 1\.22\npnpm@9\.1\.0\nuv/);
  assert.deepEqual(systemRegistries(all).toSorted(), ["apt", "go", "npm", "pip"]);
  for (const { script } of steps) assert.equal(spawnSync("sh", ["-n", "-c", script]).status, 0, script);
});

test("bun and deno come as npm packages of this machine's kind, and pip's managers from its index", () => {
  for (const [arch, bun] of [
    ["amd64", "@oven/bun-linux-x64-baseline@1.2.0"],
    ["arm64", "@oven/bun-linux-aarch64@1.2.0"],
  ] as const) {
    const all = { ...wishes({ managers: { bun: "1.2.0", deno: null, pdm: null, pipenv: "2024" } }), arch };
    const steps = systemSteps(all);
    const scripts = steps.map(({ script }) => script).join("\n");
    assert.ok(scripts.includes(bun));
    assert.match(scripts, /no-cache-dir pdm 'hishel<2'\n[^]*pipenv==2024\n[^]*@deno\/linux-\w+-glibc@latest/);
    assert.deepEqual(systemRegistries(all).toSorted(), ["apt", "npm", "pip"]);
    for (const { script } of steps) assert.equal(spawnSync("sh", ["-n", "-c", script]).status, 0, script);
  }
});

test("the versions obtained are reported next to those requested", () => {
  const { recipe } = wishes({
    toolchains: { node: "20", python: "3.9", go: "1.22", rust: null, ruby: "3.1" },
  });
  const said =
    "node: v20.11.1\npython3: Python 3.11.2\ngo: go version go1.22.9 linux/amd64\nrustc: rustc 1.80.0 (x)\n";
  assert.deepEqual(versionsGot(recipe, said), [
    "node 20.11.1",
    "python 3.11.2, but 3.9 is wanted",
    "go 1.22.9",
    "rust 1.80.0",
    "ruby: none could be installed",
  ]);
});

test("tools are told to stay offline only if nothing is granted", () => {
  const { recipe } = wishes({
    toolchains: { node: null, python: null, rust: null, go: null, java: null },
    folders: [".venv"],
    env: { OWN: "1" },
  });
  const offline = toolVariables(recipe, { workspace: "/w", granted: false, minAge: 0 });
  const wanted = {
    npm_config_offline: "true",
    PIP_NO_INDEX: "1",
    CARGO_NET_OFFLINE: "true",
    GOPROXY: "off",
    OWN: "1",
  };
  assert.partialDeepStrictEqual(offline, wanted);
  assert.match(offline["PATH"] ?? "", /^\/w\/\.venv\/bin:\/usr\/local\/lib\/harness\/bin:/);
  const granted = toolVariables(recipe, { workspace: "/w", granted: true, minAge: 0 });
  for (const name of Object.keys(wanted).slice(0, -1)) assert.equal(granted[name], undefined, name);
  assert.equal(granted["CARGO_HOME"], offline["CARGO_HOME"]);
  assert.deepEqual(toolVariables(recipeSchema.parse({}), { workspace: "/w", granted: false, minAge: 0 }), {});
});

test("composer and bundler keep what they install, and composer is told to stay offline", () => {
  const { recipe } = wishes({ toolchains: { php: null, ruby: null } });
  const offline = toolVariables(recipe, { workspace: "/w", granted: false, minAge: 0 });
  assert.partialDeepStrictEqual(offline, {
    COMPOSER_HOME: "/var/cache/harness/composer",
    COMPOSER_DISABLE_NETWORK: "1",
    BUNDLE_PATH: "vendor/bundle",
  });
  const granted = toolVariables(recipe, { workspace: "/w", granted: true, minAge: 0 });
  assert.equal(granted["COMPOSER_DISABLE_NETWORK"], undefined);
  const onImage = (folder: string): object =>
    toolVariables(wishes({ image: "own", folders: [folder] }).recipe, {
      workspace: "/w",
      granted: true,
      minAge: 0,
    });
  assert.deepEqual(Object.keys(onImage("app/vendor")), ["COMPOSER_HOME", "COMPOSER_CACHE_DIR"]);
  assert.deepEqual(Object.keys(onImage("vendor/bundle")), ["BUNDLE_PATH", "BUNDLE_APP_CONFIG"]);
  assert.deepEqual(onImage("vendors"), {});
});

test("pnpm's store is in the cache under both of its settings, and a recent yarn gets the minimum age", () => {
  const where = { workspace: "/w", granted: true, minAge: 60 * 60_000 };
  const variables = toolVariables(wishes({ managers: { pnpm: null, yarn: "4" } }).recipe, where);
  const store = variables["npm_config_store_dir"];
  assert.equal(store, "/var/cache/harness/pnpm");
  assert.equal(variables["pnpm_config_store_dir"], store);
  assert.equal(variables["YARN_NPM_MINIMAL_AGE_GATE"], "60");
  const old = wishes({ managers: { yarn: "3" } }).recipe;
  assert.equal(toolVariables(old, where)["YARN_NPM_MINIMAL_AGE_GATE"], undefined);
});

test("java's remark about its environment is not taken for its version", async () => {
  await using place = await scratch({
    "bin/java":
      '#!/bin/sh\n[ -z "$JAVA_TOOL_OPTIONS" ] || echo "Picked up: 127.0.0.1" >&2\necho \'openjdk version "17.0.9"\' >&2\n',
  });
  await chmod(place.at("bin/java"), 0o755);
  const env = { PATH: `${place.at("bin")}:/usr/bin:/bin`, JAVA_TOOL_OPTIONS: "-Dhttp.proxyHost=127.0.0.1" };
  const { stdout } = spawnSync("sh", ["-c", VERSIONS_SCRIPT], { env, encoding: "utf8" });
  assert.match(stdout, /^java: openjdk version "17\.0\.9"$/m);
});

const remedyOf = (output: string, refused = ""): string =>
  stepFailed({ title: "npm ci", output, reason: "exit code 1", refused }).remedy;

test("a failure shows what npm says is wrong, not its empty lines and the help below", () => {
  const help = Array.from({ length: 12 }, (_each, at) => `npm error   --option-${at}`);
  const output = [
    "npm error code EUSAGE",
    "npm error",
    "npm error `npm ci` can only install packages in sync.",
    "npm error",
    "npm error Missing: left-pad@1.3.0 from lock file",
    "npm error",
    ...help,
    "npm error 404",
    "npm error A complete log of this run can be found in: /var/cache/x.log",
  ].join("\n");
  const { message } = stepFailed({ title: "npm ci", output, reason: "exit code 1" });
  assert.match(message, /\n {4}npm error Missing: left-pad@1\.3\.0 from lock file\n/);
  assert.doesNotMatch(message, /npm error\s*\n|404|complete log/);
});

test("a step that fails because of a refused host names the flag that grants it, but only if the proxy said so", () => {
  const refused =
    "refused: a.example: the host a.example is not granted; --allow-domain a.example would grant it";
  assert.match(remedyOf("no", refused), /harness env build --allow-domain a\.example, which continues/);
  assert.doesNotMatch(remedyOf(refused), /--allow-domain/, "a tool's own words grant nothing");
  assert.match(remedyOf("ENOSPC: no space left", refused), /^free some space/);
  const ended = { title: "npm ci", output: "", reason: "the run's disk budget is used up" };
  assert.match(stepFailed(ended).remedy, /^free some space/);
});

test("a step whose registry has no preset names the hosts that the project's files name", () => {
  const failed = { title: "composer install", output: "no", reason: "exit code 1", named: ["a.example"] };
  assert.match(stepFailed(failed).remedy, /reach a\.example: harness env build --allow-domain a\.example,/);
});

test("what a hostile build asked for is not proposed: addresses, and methods that write", () => {
  const asked = ["169.254.169.254", "10.0.0.1:8080", "[::1]:443", "a.example:POST", "b.example:8443"];
  const refused = asked.map((each) => `refused: x: not granted; --allow-domain ${each} would grant it\n`);
  assert.match(remedyOf("no", refused.join("")), /--allow-domain b\.example:8443, which/);
  assert.doesNotMatch(remedyOf("no", refused.slice(0, 4).join("")), /--allow-domain/);
});
