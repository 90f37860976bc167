import assert from "node:assert/strict";
import test from "node:test";
import { emptyHouse, lint, type Planted } from "./plant.ts";

/** Every folder of src/, with one file that may be imported. */
const FOLDERS =
  "core platform boxes policy tools models docker kubernetes s3 search sessions extensions render telemetry agent config app cli".split(
    " ",
  );

const layer = (why: string): readonly string[] => [`house(layers): ${why}`];
const allowed: readonly string[] = [];

const sibling = layer("policy (level 1) may not import docker (level 1)");
const use = (source: string): string =>
  `import { thing } from "${source}";\nexport const used = thing + 1;\n`;
const useAll = (source: string): string =>
  `import * as all from "${source}";\nexport const used = Object.keys(all);\n`;

/** Each form of import; forbidden from a sibling folder, allowed from a lower one. */
const FORMS: Readonly<Record<string, (source: string) => string>> = {
  "a static import": use,
  "a type-only import": (source) =>
    `import type { Thing } from "${source}";\nexport type Mine = Thing | undefined;\n`,
  "a side-effect import": (source) => `import "${source}";\n`,
  "a dynamic import": (source) => `export const load = (): Promise<unknown> => import("${source}");\n`,
  "a dynamic import of a template text": (source) =>
    `export const load = (): Promise<unknown> => import(\`${source}\`);\n`,
  "a re-export": (source) => `export { thing } from "${source}";\n`,
  "a type re-export": (source) => `export type { Thing } from "${source}";\n`,
  "a re-export of everything": (source) => `export * from "${source}";\n`,
  "a named re-export of everything": (source) => `export * as all from "${source}";\n`,
  "an import type": (source) => `export type Mine = import("${source}").Thing | undefined;\n`,
  "a type query": (source) => `export type Mine = typeof import("${source}");\n`,
};

const forms = Object.entries(FORMS).flatMap(([name, text], index): readonly Planted[] => [
  {
    name: `${name} of a sibling folder`,
    file: `src/policy/form-${index}.ts`,
    text: text("../docker/thing.ts"),
    red: sibling,
  },
  {
    name: `${name} of a lower folder`,
    file: `src/policy/form-${index}-twin.ts`,
    text: text("../core/thing.ts"),
    red: allowed,
  },
]);

const onlyTypes = (folder: string, other: string): string =>
  `${folder} may import only types of ${other}; app constructs what it needs of it`;

/** The forms that import only types, which the terminal may use of adapters. */
const TYPES: ReadonlySet<string> = new Set([
  "a type-only import",
  "a type re-export",
  "an import type",
  "a type query",
]);

const values = Object.entries(FORMS).map(([name, text], index): Planted => ({
  name: `${name} of an adapter in cli`,
  file: `src/cli/form-${index}.ts`,
  text: text("../docker/thing.ts"),
  red: TYPES.has(name) ? allowed : layer(onlyTypes("cli", "docker")),
}));

const mixed: readonly Planted[] = [
  {
    name: "a type beside a value of an adapter in cli",
    file: "src/cli/mixed.ts",
    text: 'import { type Thing, thing } from "../docker/thing.ts";\nexport const used: Thing["a"] = thing;\n',
    red: layer(onlyTypes("cli", "docker")),
  },
  {
    name: "types alone, each named so, of an adapter in cli",
    file: "src/cli/mixed-twin.ts",
    text: 'import { type Thing } from "../docker/thing.ts";\nexport type Mine = Thing | undefined;\n',
    red: allowed,
  },
];

/** From which folder, what is imported, and why not; undefined where it is allowed. */
type Rule = readonly [folder: string, source: string, why: string | undefined];

const LEVEL_RULES: readonly Rule[] = [
  ["core", "../agent/thing.ts", "core (level 0) may not import agent (level 2)"],
  ["core", "../tools/thing.ts", "core (level 0) may not import tools (level 1)"],
  ["core", "./thing.ts", undefined],
  ["core", "../platform/thing.ts", "core (level 0) may not import platform (level 0)"],
  ["platform", "../core/thing.ts", "platform (level 0) may not import core (level 0)"],
  ["sessions", "../platform/thing.ts", undefined],
  [
    "tools",
    "../platform/thing.ts",
    "src/platform may be imported only by boxes, docker, kubernetes, models, search, sessions, extensions, telemetry, vet, config, app",
  ],
  ["render", "../sessions/thing.ts", "render (level 1) may not import sessions (level 1)"],
  ["search", "../agent/thing.ts", "search (level 1) may not import agent (level 2)"],
  ["search", "./thing.ts", undefined],
  ["agent", "../policy/thing.ts", undefined],
  ["agent", "../config/thing.ts", "agent (level 2) may not import config (level 2)"],
  ["config", "../cli/thing.ts", "config (level 2) may not import cli (level 4)"],
  ["app", "../cli/thing.ts", "app (level 3) may not import cli (level 4)"],
  ["cli", "../app/thing.ts", undefined],
  ["config", "../core/thing.ts", undefined],
  ...["agent", "policy", "docker", "models", "search", "sessions", "tools"].map((folder): Rule => [
    "cli",
    `../${folder}/thing.ts`,
    onlyTypes("cli", folder),
  ]),
  [
    "cli",
    "../platform/thing.ts",
    "src/platform may be imported only by boxes, docker, kubernetes, models, search, sessions, extensions, telemetry, vet, config, app",
  ],
  ["cli", "../render/thing.ts", undefined],
  ["cli", "../config/thing.ts", undefined],
  ["cli", "../core/thing.ts", undefined],
  ["cli", "../docker/../docker/thing.ts", onlyTypes("cli", "docker")],
  ["app", "../docker/thing.ts", undefined],
  ["app", "../sessions/thing.ts", undefined],
  ["agent", "../sessions/thing.ts", onlyTypes("agent", "sessions")],
  ["agent", "../models/thing.ts", undefined],
  ["config", "../docker/thing.ts", onlyTypes("config", "docker")],
  ["config", "../policy/thing.ts", undefined],
  ["policy", "../core/../docker/thing.ts", "policy (level 1) may not import docker (level 1)"],
  ["models", "../../test/thing.ts", "src/ imports only from src/, found test/thing.ts"],
  ["cli", "../../sandbox/thing.ts", "src/ imports only from src/, found sandbox/thing.ts"],
  ["cli", "../../bench/thing.ts", "src/ imports only from src/, found bench/thing.ts"],
  ["cli", "../../../outside.ts", "src/ imports only from src/, found ../outside.ts"],
  ["tools", "../plugins/thing.ts", "no level for tools or plugins"],
];

const FS_OWNERS =
  "platform, boxes, models, docker, kubernetes, search, sessions, extensions, telemetry, config, app, cli";

const PACKAGE_RULES: readonly Rule[] = [
  ["models", "dockerode", "dockerode may be imported only by docker"],
  ["cli", "dockerode", "dockerode may be imported only by docker"],
  ["docker", "dockerode", undefined],
  ["sessions", "tar-fs", "tar-fs may be imported only by docker"],
  ["agent", "@oclif/core", "@oclif/core may be imported only by cli"],
  ["agent", "@oclif/core/lib/index.js", "@oclif/core may be imported only by cli"],
  ["cli", "@oclif/core", undefined],
  ["cli", "jsonc-parser", "jsonc-parser may be imported only by config, extensions, docker, vet"],
  ["core", "zod", undefined],
  ["core", "zod/v4", undefined],
  ["cli", "left-pad", "left-pad is not in the table of packages in test/house/house.js"],
  ["cli", "@left/pad/inner", "@left/pad is not in the table of packages in test/house/house.js"],
  ["cli", "fs", "fs is not in the table of packages in test/house/house.js"],
  ["cli", "/etc/hosts", " is not in the table of packages in test/house/house.js"],
  ["tools", "node:fs", "tools is pure and imports no node: module"],
  ["core", "node:path", "core is pure and imports no node: module"],
  ["policy", "node:crypto", "policy is pure and imports no node: module"],
  ["agent", "node:timers/promises", "agent is pure and imports no node: module"],
  ["config", "node:path", undefined],
  ["render", "node:fs", `node:fs may be imported only by ${FS_OWNERS}`],
  ["render", "node:fs/promises", `node:fs/promises may be imported only by ${FS_OWNERS}`],
  ["render", "node:util", undefined],
  [
    "search",
    "node:child_process",
    "node:child_process may be imported only by platform, docker, models, extensions, app, cli",
  ],
  ["docker", "node:child_process", undefined],
  ["cli", "node:net", "node:net may be imported only by docker"],
  ["docker", "node:sqlite", "node:sqlite may be imported only by platform, sessions, search"],
  ["sessions", "node:sqlite", undefined],
];

const planted = (
  rules: readonly Rule[],
  kind: string,
  text: (source: string) => string,
): readonly Planted[] =>
  rules.map(([folder, source, why], index) => ({
    name: `src/${folder}/ imports ${source}`,
    file: `src/${folder}/${kind}-${index}.ts`,
    text: text(source),
    red: why === undefined ? allowed : layer(why),
  }));

const SANDBOX: readonly Planted[] = [
  {
    name: "sandbox/ imports src/",
    file: "sandbox/reach.ts",
    text: use("../src/core/thing.ts"),
    red: layer("sandbox/ imports only from sandbox/"),
  },
  {
    name: "sandbox/ imports a package",
    file: "sandbox/packaged.ts",
    text: useAll("zod"),
    red: layer("sandbox/ imports no package, found zod"),
  },
  {
    name: "sandbox/ imports node: and its own files",
    file: "sandbox/own.ts",
    text: `import * as net from "node:net";\nimport { thing } from "./thing.ts";\nexport const used = [net, thing];\n`,
    red: allowed,
  },
];

/** Ways to files, processes, sockets and other modules that no folder but their owner may have. */
const WAYS_OUT = ["cluster", "dgram", "dns", "http2", "inspector", "module", "worker_threads"];
const waysOut = WAYS_OUT.map((name) => ({
  name,
  file: `src/render/way-${name}.ts`,
  text: useAll(`node:${name}`),
}));

const CASES: readonly Planted[] = [
  ...forms,
  ...values,
  ...mixed,
  ...planted(LEVEL_RULES, "level", use),
  ...planted(PACKAGE_RULES, "package", useAll),
  ...SANDBOX,
];

await using place = await emptyHouse();
for (const folder of FOLDERS.map((name) => `src/${name}`).concat("sandbox"))
  await place.write(
    `${folder}/thing.ts`,
    "export const thing = 1;\nexport interface Thing {\n  readonly a: 1;\n}\n",
  );
for (const { file, text } of [...CASES, ...waysOut]) await place.write(file, text);
const found = await lint(place);

const layersOf = (file: string): readonly string[] =>
  (found.get(file) ?? allowed).filter((finding) => finding.startsWith("house(layers)"));

test("the linter ran over the planted tree and found something", () => {
  assert.ok(found.size > 20, `${found.size} files with findings`);
});

for (const { name, file, red } of CASES)
  test(`${name}: ${red.length === 0 ? "green" : "red"}`, () => {
    assert.deepEqual(layersOf(file), red);
  });

test("no other built-in module leads around the table to files, processes, sockets or loaders", () => {
  const open = waysOut.filter(({ file }) => layersOf(file).length === 0);
  assert.deepEqual(
    open.map(({ name }) => name),
    [],
  );
});

for (const folder of FOLDERS)
  test(`src/${folder}/ has no finding for imports that it does not have`, () => {
    assert.deepEqual(found.get(`src/${folder}/thing.ts`) ?? allowed, allowed);
  });
