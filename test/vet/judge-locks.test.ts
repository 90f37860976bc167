import assert from "node:assert/strict";
import test from "node:test";
import { nearName } from "../../src/vet/known-names.ts";
import { lookedAt, type Planted, type RuleCases, wrongCases } from "../fixtures/looked-at-tree.ts";

const at = (name: string, host = "gitlab.com", file = name): object => ({
  version: "1.0.0",
  resolved: `https://${host}/${name}/-/${file.replace(/^.*\//, "")}-1.0.0.tgz`,
  integrity: "sha512-x",
});
const npm = (packages: Record<string, object>, root: object = {}): Record<string, Planted> => ({
  "package-lock.json": JSON.stringify({
    lockfileVersion: 3,
    packages: {
      "": root,
      "node_modules/ms": at("ms"),
      "node_modules/chalk": at("chalk"),
      ...Object.fromEntries(Object.entries(packages).map(([name, each]) => [`node_modules/${name}`, each])),
    },
  }),
});
const old = (dependencies: Record<string, object>): Record<string, Planted> => ({
  "package-lock.json": JSON.stringify({
    lockfileVersion: 1,
    dependencies: { ms: at("ms"), a: { ...at("a-long-name"), requires: {}, dependencies } },
  }),
});
const yarn = (name: string, resolved: string): Record<string, Planted> => ({
  "yarn.lock": `# yarn lockfile v1\n\nms@^2.0.0, ms@2:\n  version "2.1.3"\n  resolved "https://gitlab.com/ms/-/ms-2.1.3.tgz#0123456789012345678901234567890123456789"\n  integrity sha512-x\n\n"${name}@^1":\n  version "1.0.0"\n  resolved "${resolved}"\n  integrity sha512-y\n`,
});
const pnpm = (key: string, resolution: string): Record<string, Planted> => ({
  "pnpm-lock.yaml": `lockfileVersion: '9.0'\n\npackages:\n\n  ms@2.1.3:\n    resolution: {integrity: sha512-x}\n\n  ${key}:\n    resolution: ${resolution}\n\nsnapshots:\n`,
});
const cargo = (name: string, source: string, checksum = "abc"): Record<string, Planted> => ({
  "Cargo.lock": `version = 3\n\n[[package]]\nname = "serde"\nversion = "1.0.0"\nsource = "registry+https://github.com/rust-lang/index"\nchecksum = "a"\n\n[[package]]\nname = "syn"\nversion = "1.0.0"\nsource = "registry+https://github.com/rust-lang/index"\nchecksum = "b"\n\n[[package]]\nname = "${name}"\nversion = "1.0.0"\nsource = "${source}"\n${checksum === "" ? "" : `checksum = "${checksum}"\n`}`,
});
const CRATES = "registry+https://github.com/rust-lang/index";

const CASES: RuleCases = {
  "lock.host": {
    is: [
      npm({ left: at("left", "npm.evil.example") }),
      npm({ left: { version: "1.0.0", resolved: "https://198.51.100.7/left.tgz", integrity: "x" } }),
      old({ b: at("b", "npm.evil.example") }),
      yarn("left-pad", "https://npm.evil.example/left-pad/-/left-pad-1.0.0.tgz"),
      pnpm("left-pad@1.0.0", "{integrity: sha512-x, tarball: https://198.51.100.7/l.tgz}"),
      cargo("left", "registry+https://crates.evil.example/index"),
      {
        "composer.lock": JSON.stringify({
          packages: [
            { name: "a/b", version: "1", dist: { url: "https://api.github.com/a", reference: "x" } },
            { name: "a/d", version: "1", dist: { url: "https://api.github.com/d", reference: "x" } },
            { name: "a/c", version: "1", dist: { url: "https://evil.example/c.zip", reference: "y" } },
          ],
        }),
      },
      {
        "Gemfile.lock":
          "GEM\n  remote: https://gems.example/\n  specs:\n    rack (3.0)\n\nGEM\n  remote: https://198.51.100.7/\n  specs:\n    left (1.0)\n",
      },
      {
        "uv.lock":
          '[[package]]\nname = "a"\nversion = "1"\nsource = { registry = "https://pypi.example/simple" }\n[[package]]\nname = "b"\nversion = "1"\nsource = { url = "https://198.51.100.7/b.whl" }\n',
      },
    ],
    not: [
      npm({}),
      yarn("left-pad", "https://gitlab.com/left-pad/-/left-pad-1.0.0.tgz#abc"),
      cargo("left", CRATES),
      pnpm("left-pad@1.0.0", "{integrity: sha512-y}"),
    ],
  },
  "lock.insecure": {
    is: [
      npm({ left: { ...at("left"), resolved: "http://gitlab.com/left/-/left-1.0.0.tgz" } }),
      yarn("left", "git://github.com/x/left.git#abc"),
    ],
    not: [npm({})],
  },
  "lock.elsewhere": {
    is: [
      npm({ left: { version: "1.0.0", resolved: "git+ssh://git@github.com/x/left.git#abc" } }),
      cargo("left", "git+https://github.com/x/left#abc", ""),
      { "requirements.txt": "a @ git+https://github.com/x/a.git" },
    ],
    not: [npm({})],
  },
  "lock.integrity": {
    is: [
      npm({ left: { version: "1.0.0", resolved: "https://gitlab.com/left/-/left-1.0.0.tgz" } }),
      cargo("left", CRATES, ""),
      { "requirements.txt": "a==1 --hash=sha256:x\nb==1 \\\n    --hash=sha256:y\nc==1\n" },
    ],
    not: [
      npm({ left: { version: "1.0.0", optional: true } }),
      npm({ left: { version: "1.0.0", resolved: "git+https://github.com/x/left.git#abc" } }),
      { "requirements.txt": "a==1\nb==2\n" },
    ],
  },
  "lock.name": {
    is: [
      npm({ "left-pad": at("evil") }),
      npm({ "@a/b": at("@a/c") }),
      npm({ "left-pad": { ...at("left-pad"), version: "1.3.0" } }),
      yarn("left-pad", "https://gitlab.com/evil/-/evil-1.0.0.tgz"),
    ],
    not: [
      npm({ "@a/b": at("@a/b") }),
      npm({ left: { ...at("other"), name: "other" } }),
      yarn("@babel/core", "https://gitlab.com/@babel%2fcore/-/core-1.0.0.tgz"),
    ],
  },
  "lock.alias": {
    is: [npm({ left: { ...at("other"), name: "other" } })],
    not: [npm({ other: at("other") })],
  },
  "lock.extra": {
    is: [{ ...npm({}, { dependencies: { evil: "1" } }), "package.json": "{}" }],
    not: [{ ...npm({}, { dependencies: { ms: "1" } }), "package.json": '{"dependencies":{"ms":"1"}}' }],
  },
  "lock.unfit": {
    is: [{ ...npm({}, { dependencies: { ms: "1" } }), "package.json": '{"dependencies":{"ms":"2"}}' }],
    not: [{ ...npm({}, {}), "package.json": "{}" }],
  },
  "deps.near-name": {
    is: [
      npm({ lodahs: at("lodahs") }),
      { "package.json": '{"dependencies":{"crossenv":"1"}}' },
      { "requirements.txt": "reqeusts==2.0" },
      cargo("tokoi", CRATES),
      { "go.mod": "module x\nrequire github.com/strechr/testify v1.0.0\n" },
      { Gemfile: "gem 'railss'" },
      { "composer.json": '{"require":{"symfony/consle":"^6"}}' },
    ],
    not: [
      npm({ lodash: at("lodash"), preact: at("preact") }),
      { "requirements.txt": "requests==2.0\nPyYAML\npython_dateutil" },
      cargo("serde_json", CRATES),
    ],
  },
  "deps.internal": {
    is: [
      { "package.json": '{"dependencies":{"@acme-internal/log":"1"}}' },
      npm({ "@corp/log": at("@corp/log") }),
      { "requirements.txt": "acme-billing-internal==1.0" },
    ],
    not: [
      { "package.json": '{"dependencies":{"@acme-internal/log":"workspace:*","internal-slot":"1"}}' },
      npm({ "corporate-ui": at("corporate-ui") }),
      { "go.mod": "module x\nrequire example.org/x/acme-internal v1.0.0\n" },
    ],
  },
  "deps.look-alike": {
    is: [{ "package.json": '{"dependencies":{"l\u043edash":"1"}}' }],
    not: [{ "package.json": '{"dependencies":{"lodash":"1"}}' }],
  },
};

for (const rule of Object.keys(CASES))
  test(`${rule} is found where it applies, and nowhere else`, async () => {
    assert.deepEqual(await wrongCases({ [rule]: CASES[rule] ?? { is: [], not: [] } }), []);
  });

test("lock files of all forms are read", async () => {
  const files: Record<string, Planted> = {
    ...yarn("a", "https://gitlab.com/a/-/a-1.0.0.tgz"),
    ...pnpm("'@s/b@1.0.0'", "{integrity: sha512-b}"),
    ...cargo("left", CRATES),
    "bun.lock":
      '{ "packages": { "@s/c": ["@s/c@1.0.0", "", {}, "sha512-c"], "d/e": ["e@2.0.0", "", {}, "sha512-e"], }, }',
    "poetry.lock": '[[package]]\nname = "f"\nversion = "1"\nfiles = [{file = "f", hash = "sha256:f"}]\n',
    "gradle.lockfile": "# made by Gradle\norg.example:l:1.2=compileClasspath,runtimeClasspath\nempty=\n",
    "Pipfile.lock": '{"default": {"g": {"version": "==1", "hashes": ["sha256:g"]}}}',
    "go.sum": "example.org/h v1.0.0 h1:x=\nexample.org/h v1.0.0/go.mod h1:y=\n",
    "Gemfile.lock":
      "GEM\n  remote: https://gems.example/\n  specs:\n    i (1.0)\n      rack (>= 1)\n\nCHECKSUMS\n  i (1.0) sha256=abc\n",
    "sub/yarn.lock":
      '__metadata:\n  version: 8\n\n"j@npm:^1":\n  version: 1.0.0\n  resolution: "j@npm:1.0.0"\n  checksum: 10c0/j\n\n"k@workspace:.":\n  version: 0\n  resolution: "k@workspace:."\n',
  };
  const { facts } = await lookedAt(files);
  assert.deepEqual(
    facts.locks.map(({ name, version, integrity }) => `${name} ${version} ${integrity}`),
    [
      "ms 2.1.3 sha512-x",
      "a 1.0.0 sha512-y",
      "ms 2.1.3 sha512-x",
      "@s/b 1.0.0 sha512-b",
      "serde 1.0.0 a",
      "syn 1.0.0 b",
      "left 1.0.0 abc",
      "@s/c 1.0.0 sha512-c",
      "e 2.0.0 sha512-e",
      "f 1 sha256:f",
      "org.example:l 1.2 ",
      "g 1 sha256:g",
      "example.org/h v1.0.0 h1:x= go.mod:h1:y=",
      "i 1.0 sha256=abc",
      "j 1.0.0 10c0/j",
    ],
  );
});

test("names differing by a letter, a separator, a scope or a digit are similar, but not by a number or a plural", () => {
  const near: Readonly<Record<string, string>> = {
    expres: "express",
    "types-node": "@types/node",
    "@typse/node": "@types/node",
    axois: "axios",
    discordjs: "discord.js",
  };
  for (const [name, popular] of Object.entries(near)) assert.equal(nearName(name, "npm"), popular, name);
  for (const name of ["express", "base32-js", "chalks", "ours", "@own/lodash", "eslint-scope"])
    assert.equal(nearName(name, "npm"), undefined, name);
  assert.equal(nearName("djang0", "pip"), "django");
  assert.equal(nearName("Python_DateUtil", "pip"), undefined);
});
