import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import type { Box, ExecRequest } from "../../../src/core/ports.ts";
import {
  installedSince,
  listPackages,
  packagesIn,
} from "../../../src/docker/environments/installed-packages.ts";
import { scratch } from "../../fixtures/scratch.ts";

const named = (output: string): readonly string[] =>
  packagesIn(output).map(({ ecosystem, name, version }) => `${ecosystem} ${name} ${version}`);

const list = (place: string, content: string): string =>
  `F${place}\n${content
    .split("\n")
    .map((line) => `|${line}`)
    .join("\n")}\n`;

test("packages and versions come from each manager's own list, or from file names", () => {
  const output = [
    list(
      "/w/node_modules/.package-lock.json",
      JSON.stringify({
        packages: {
          "node_modules/lodash": { version: "4.17.21" },
          "node_modules/a/node_modules/@s/b": { version: "2.0.0-rc.1" },
          "node_modules/alias": { name: "real", version: "1.0.0" },
          "node_modules/own": { link: true, resolved: "packages/own" },
          "packages/own": { version: "9.9.9" },
        },
      }),
    ),
    list(
      "/w/node_modules/.yarn-integrity",
      JSON.stringify({
        lockfileEntries: { "@babel/core@^7.1.0": "https://r.example/@babel/core/-/core-7.26.0.tgz#x" },
      }),
    ),
    list(
      "/w/node_modules/.yarn-state.yml",
      '"@scope/a@npm:1.2.3":\n  locations:\n    - "node_modules/@scope/a"\n\n"b@virtual:0af#npm:2.0.0":\n  locations:\n',
    ),
    list("/w/vendor/composer/installed.json", '{"packages":[{"name":"psr/log","version":"3.0.2"}]}'),
    list("/usr/local/share/harness/packages", "libc6-dev:amd64\t2.36-9+deb12u10\nlld\t1:14.0-55.7~deb12u1"),
    "P/w/node_modules/.pnpm/@babel+core@7.26.0_supports-color@8.1.1",
    "P/w/node_modules/.pnpm/mocha@10.8.2",
    "P/var/cache/harness/bun/@types/node@20.1.0@@@1",
    "P/w/.venv/lib/python3.11/site-packages/typing_extensions-4.12.2.dist-info",
    "P/var/cache/harness/cargo/registry/cache/index.example-6f17/serde_derive-1.0.210-alpha+x.crate",
    "P/var/cache/harness/cargo/registry/cache/index.example-6f17/winapi-x86_64-0.4.0.crate",
    "P/var/cache/harness/go/mod/cache/download/github.com/!burnt!sushi/toml/@v/v1.4.0.zip",
    "P/var/cache/harness/m2/org/junit/jupiter/junit-jupiter/5.10.2/junit-jupiter-5.10.2.jar",
    "P/home/box/.m2/repository/junit/junit/4.13/junit-4.13.jar",
    "P/var/cache/harness/gradle/caches/modules-2/files-2.1/com.google/guava/33.0/ab12/guava-33.0.jar",
    "P/w/vendor/bundle/ruby/3.1.0/specifications/nokogiri-1.16.0-x86_64-linux.gemspec",
    "",
  ].join("\n");
  assert.deepEqual(named(output), [
    "apt libc6-dev 2.36-9+deb12u10",
    "apt lld 1:14.0-55.7~deb12u1",
    "bundler nokogiri 1.16.0",
    "cargo serde_derive 1.0.210-alpha+x",
    "cargo winapi-x86_64 0.4.0",
    "composer psr/log 3.0.2",
    "go github.com/BurntSushi/toml v1.4.0",
    "maven com.google:guava 33.0",
    "maven junit:junit 4.13",
    "maven org.junit.jupiter:junit-jupiter 5.10.2",
    "npm @babel/core 7.26.0",
    "npm @s/b 2.0.0-rc.1",
    "npm @scope/a 1.2.3",
    "npm @types/node 20.1.0",
    "npm b 2.0.0",
    "npm lodash 4.17.21",
    "npm mocha 10.8.2",
    "npm real 1.0.0",
    "pip typing-extensions 4.12.2",
  ]);
});

test("a hostile tree yields no packages, or only harmless words", () => {
  for (const content of ["", "null", "[]", '{"packages":7}', '{"packages":{"node_modules/x":null}}', "{"])
    assert.deepEqual(named(list("/w/node_modules/.package-lock.json", content)), []);
  assert.deepEqual(named(list("/w/vendor/composer/installed.json", '{"packages":[null,7,{"name":1}]}')), []);
  const odd = {
    packages: { "node_modules/\u001b[2J": { version: "1" }, "node_modules/x": { version: "1\n2" } },
  };
  assert.deepEqual(named(list("/w/node_modules/.package-lock.json", JSON.stringify(odd))), []);
  assert.deepEqual(named("|lines of no list\nPP\nQ\n"), []);
});

test("packages new in the later of two lists are named, and all are counted", () => {
  const [a, b] = [1, 2].map((each) => ({ ecosystem: "npm", name: "x", version: `${each}` }));
  assert.ok(a !== undefined && b !== undefined);
  assert.deepEqual(installedSince([a], { packages: [a, b], programs: [], whole: true }), {
    total: 2,
    new: 1,
    packages: [b],
  });
  assert.equal(installedSince([], { packages: [a], programs: [], whole: false }).incomplete, true);
});

/** Runs words here, as a box would. */
const here = (workspace: string): Box =>
  ({
    workspace,
    exec: ({ words: [program = "", ...rest] }: ExecRequest) => {
      const head = execFileSync(program, rest);
      return Promise.resolve({ exit_code: 0, timed_out: false, stdout: { head, lost: 0 } });
    },
  }) as unknown as Box;

test("the search of a tree finds every list, enters no package, and follows no link out", async () => {
  await using place = await scratch();
  const lock = JSON.stringify({ packages: { "node_modules/a": { version: "1.0.0" } } });
  await place.write("w/node_modules/.package-lock.json", lock);
  // A package may hold what looks like a list: it says nothing of what is installed.
  await place.write("w/node_modules/a/node_modules/.package-lock.json", lock.replace("1.0.0", "6.6.6"));
  await place.write("w/sub folder/.venv/lib/python3/site-packages/idna-3.7.dist-info/METADATA", "");
  await place.write("w/target/debug/registry/cache/i/never-1.0.0.crate", "");
  await place.write("w/.git/node_modules/.package-lock.json", lock.replace("1.0.0", "7.7.7"));
  await place.write("w/.cargo/registry/cache/i/itoa-1.0.11.crate", "");
  await place.write("w/node_modules/.bin/tool", "");
  const folder = place.at("w");
  const listed = await listPackages(here(folder), [folder], AbortSignal.timeout(20_000));
  assert.deepEqual(listed, {
    packages: [
      { ecosystem: "cargo", name: "itoa", version: "1.0.11" },
      { ecosystem: "npm", name: "a", version: "1.0.0" },
      { ecosystem: "pip", name: "idna", version: "3.7" },
    ],
    programs: [`${folder}/node_modules/.bin/tool`],
    whole: true,
  });
});
