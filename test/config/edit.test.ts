import assert from "node:assert/strict";
import { mkdir, readdir, readlink, stat, symlink } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { parseConfigDocument } from "../../src/config/load-config.ts";
import {
  addGrants,
  addServer,
  removeServer,
  setSetting,
  setSettings,
  settingPath,
} from "../../src/config/config-edit.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch } from "../fixtures/scratch.ts";

const FILE = "harness/config.json";

const EDITS: Readonly<
  Record<string, readonly [before: string | undefined, key: string, text: string, after: string]>
> = {
  "into a file that is not there yet": [undefined, "mode", "read-only", '{\n  "mode": "read-only"\n}\n'],
  "over an older value, keeping comments": [
    '// mine\n{\n  "pids": 64, // few\n  /* a model */ "chat_model": "a",\n}\n',
    "chat_model",
    "b",
    '// mine\n{\n  "pids": 64, // few\n  /* a model */ "chat_model": "b",\n}\n',
  ],
  "over a value that was bad": ['{"memory": "lots"}', "memory", "1g", '{"memory": "1g"}'],
  "under the name that the file uses": ['{"max_steps": 3}', "max_turns", "4", '{"max_steps": 4}'],
  "under an alias": ["{}\n", "max_steps", "4", '{\n  "max_turns": 4\n}\n'],
  "one level down": [
    '{\n  "search": {\n    "store": "auto"\n  }\n}\n',
    "search.store",
    "qdrant",
    '{\n  "search": {\n    "store": "qdrant"\n  }\n}\n',
  ],
  "one level down in a missing object": [
    "{}",
    "search.store",
    "qdrant",
    '{\n  "search": {\n    "store": "qdrant"\n  }\n}',
  ],
  "after a byte order mark": ['\uFEFF{"pids": 64}', "pids", "65", '\uFEFF{"pids": 65}'],
  "as null": ['{"image": "mine"}', "image", "null", '{"image": null}'],
};

for (const [name, [before, key, text, after]] of Object.entries(EDITS))
  test(`a setting is written ${name}`, async () => {
    await using place = await scratch(before === undefined ? {} : { [FILE]: before });
    await setSetting(place.at(FILE), key, text);
    assert.equal(await place.read(FILE), after);
    assert.deepEqual(await readdir(path.dirname(place.at(FILE))), ["config.json"]);
  });

test("several settings are written in one replacement, or none of them", async () => {
  await using place = await scratch({ [FILE]: '{"max_steps": 3}' });
  const file = place.at(FILE);
  const { ino } = await stat(file);
  const [, told] = await refusalOf(() =>
    setSettings(file, [
      ["provider", "ollama"],
      ["pids", "many"],
    ]),
  );
  assert.match(told, /pids/);
  assert.deepEqual([await place.read(FILE), (await stat(file)).ino], ['{"max_steps": 3}', ino]);
  await setSettings(file, [
    ["provider", "ollama"],
    ["max_turns", "4"],
    ["base_url", "null"],
  ]);
  assert.deepEqual(JSON.parse(await place.read(FILE)), { max_steps: 4, provider: "ollama", base_url: null });
});

const VALUES: readonly (readonly [key: string, text: string, value: unknown])[] = [
  ["chat_model", "007", "007"],
  ["chat_model", "true", "true"],
  ["memory", "256m", "256m"],
  ["timeout", "90", "90"],
  ["pids", "64", 64],
  ["cpus", "1.5", 1.5],
  ["stream", "false", false],
  ["allow_domains", "a.org,b.org", ["a.org", "b.org"]],
  ["allow_domains", '["a.org"]', ["a.org"]],
  ["prices", '[{"model":"m","input":1,"output":2}]', [{ model: "m", input: 1, output: 2 }]],
];

for (const [key, text, value] of VALUES)
  test(`${key} ${text} is written as ${JSON.stringify(value)}`, async () => {
    await using place = await scratch();
    await setSetting(place.at(FILE), key, text);
    assert.deepEqual(JSON.parse(await place.read(FILE)), { [key]: value });
  });

/** Below the line of the last key, whatever stands there. */
const INSERTIONS: Readonly<Record<string, string>> = {
  '{"mode": "read-only"}': '{"mode": "read-only", "pids": 64}',
  '{"mode": "read-only",}': '{"mode": "read-only", "pids": 64,}',
  '{\n\t"mode": "read-only"\n}': '{\n\t"mode": "read-only",\n\t"pids": 64\n}',
  '{\n  "mode": "read-only" // a, b\n}\n': '{\n  "mode": "read-only", // a, b\n  "pids": 64\n}\n',
  '{\n  "mode": "read-only", // a\n}\n': '{\n  "mode": "read-only", // a\n  "pids": 64,\n}\n',
  '{\n  "mode": "read-only" /* a */ , // b\n}\n':
    '{\n  "mode": "read-only" /* a */ , // b\n  "pids": 64,\n}\n',
  '{\n  "mode": "read-only"\n  // the end\n}\n': '{\n  "mode": "read-only",\n  "pids": 64\n  // the end\n}\n',
  '{\r\n  "mode": "read-only"\r\n}\r\n': '{\r\n  "mode": "read-only",\r\n  "pids": 64\r\n}\r\n',
};

for (const [before, after] of Object.entries(INSERTIONS))
  test(`a new key is added after the last one: ${JSON.stringify(before)}`, async () => {
    await using place = await scratch({ [FILE]: before });
    await setSetting(place.at(FILE), "pids", "64");
    assert.equal(await place.read(FILE), after);
  });

test("a comment after another key's value stays on that key's line", async () => {
  await using place = await scratch({ [FILE]: '{\n  "mode": "read-only" // until the audit\n}\n' });
  await setSetting(place.at(FILE), "pids", "64");
  const line = (await place.read(FILE)).split("\n").find((text) => text.includes("until the audit"));
  assert.match(line ?? "", /"mode": "read-only"/);
});

const GOOD = '{\n  // kept\n  "pids": 64\n}\n';

/** Where the message starts with `FILE`, the file's own path stands there. */
const REFUSED: Readonly<
  Record<string, readonly [before: string, key: string, text: string, message: string]>
> = {
  "an unknown key": [GOOD, "chat_modle", "m", "chat_modle: unknown key; did you mean chat_model?"],
  "a value out of range": [GOOD, "pids", "1", "pids: expected a whole number from 16 to 4000000, found 1"],
  "a value of the wrong kind": [GOOD, "stream", "perhaps", 'stream: expected true or false, found "perhaps"'],
  "an invalid part of search": [
    GOOD,
    "search.store",
    "mine",
    'search.store: expected one of auto, qdrant, embedded, found "mine"',
  ],
  "a valid value for a broken file": [
    '{"pids": 64,,}',
    "pids",
    "65",
    "FILE:1:13: property name expected; expected a JSON object",
  ],
  "a valid value for a file that is a list": [
    "[]",
    "pids",
    "65",
    "FILE: expected a JSON object, found array",
  ],
  "a key that occurs twice": ['{"pids": 64, "pids": 65}', "pids", "66", "FILE:1:14: pids: duplicate key"],
};

for (const [name, [before, key, text, message]] of Object.entries(REFUSED))
  test(`${name} is refused and the file stays unchanged`, async () => {
    await using place = await scratch({ [FILE]: before });
    const [exit, said] = await refusalOf(() => setSetting(place.at(FILE), key, text));
    const once = said.replace(place.at(FILE), "FILE").replace(/^(\S+: )\1/, "$1");
    assert.deepEqual([exit, once], [2, message]);
    assert.equal(await place.read(FILE), before);
    assert.deepEqual(await readdir(path.dirname(place.at(FILE))), ["config.json"]);
  });

const NEIGHBOURS: Readonly<Record<string, string>> = {
  '{"memroy": "1g"}': "FILE:1:12: memroy: unknown key; did you mean memory?",
  '{"mode": "yolo"}':
    'FILE:1:10: mode: expected one of read-only, workspace-write, danger-full-access, found "yolo"',
};

for (const [before, message] of Object.entries(NEIGHBOURS)) {
  test(`a valid value next to ${before} is refused and the file stays unchanged`, async () => {
    await using place = await scratch({ [FILE]: before });
    const [exit, said] = await refusalOf(() => setSetting(place.at(FILE), "pids", "65"));
    assert.deepEqual([exit, said.split(": ")[1]], [2, message.split(": ")[1]]);
    assert.equal(await place.read(FILE), before);
  });

  test(`an error next to a new value is reported with its position on disk: ${before}`, async () => {
    await using place = await scratch({ [FILE]: before });
    const [, said] = await refusalOf(() => setSetting(place.at(FILE), "pids", "65"));
    assert.equal(said.replace(place.at(FILE), "FILE"), message);
  });
}

for (const key of ["__proto__", "constructor", "toString", "search.__proto__", "search.url.x", "", "."])
  test(`${JSON.stringify(key)} is not a setting`, async () => {
    const [exit, message] = await refusalOf(() => settingPath(key));
    assert.deepEqual([exit, message.startsWith(`${key}: unknown key; `)], [2, true]);
  });

test("a file that cannot be replaced is reported, and nothing is left behind", async () => {
  await using place = await scratch({ harness: "a plain file" });
  const [exit, message] = await refusalOf(() => setSetting(place.at(FILE), "pids", "64"));
  assert.deepEqual([exit, message.startsWith(`${place.at(FILE)}: cannot be written: `)], [2, true]);
  assert.deepEqual(await readdir(place.path), ["harness"]);
});

test("a folder in place of the file is reported and stays", async () => {
  await using place = await scratch();
  await mkdir(place.at(FILE), { recursive: true });
  const [exit, message] = await refusalOf(() => setSetting(place.at(FILE), "pids", "64"));
  assert.deepEqual([exit, message.startsWith(`${place.at(FILE)}: cannot be read: EISDIR`)], [2, true]);
  assert.ok((await stat(place.at(FILE))).isDirectory());
});

test("a new file is readable only by its owner", async () => {
  await using place = await scratch();
  await setSetting(place.at(FILE), "pids", "64");
  const modes = await Promise.all([place.at(FILE), place.at("harness")].map((name) => stat(name)));
  assert.deepEqual(
    modes.map(({ mode }) => (mode & 0o777).toString(8)),
    ["600", "700"],
  );
});

test("the file is replaced in one step", async () => {
  await using place = await scratch({ [FILE]: GOOD });
  const before = await stat(place.at(FILE));
  await setSetting(place.at(FILE), "pids", "65");
  assert.notEqual((await stat(place.at(FILE))).ino, before.ino);
});

test("a link to a file elsewhere stays a link, and its target is changed", async () => {
  await using place = await scratch({ "dotfiles/harness.json": GOOD, "harness/other": "" });
  await symlink("../dotfiles/harness.json", place.at(FILE));
  await setSetting(place.at(FILE), "pids", "65");
  assert.equal(await readlink(place.at(FILE)).catch(() => "a plain file"), "../dotfiles/harness.json");
  assert.equal(await place.read("dotfiles/harness.json"), GOOD.replace("64", "65"));
});

test("settings written at the same time by one process leave a complete file", async () => {
  await using place = await scratch({ [FILE]: GOOD });
  const pairs = Array.from({ length: 20 }, (_, index) => String(100 + index));
  await Promise.allSettled(pairs.map((pids) => setSetting(place.at(FILE), "pids", pids)));
  const { value } = parseConfigDocument("f", await place.read(FILE));
  assert.match(JSON.stringify(value), /^\{"pids":1[01]\d\}$/);
  assert.deepEqual(await readdir(path.dirname(place.at(FILE))), ["config.json"]);
});

test("a failed write leaves the file unchanged and no temporary file", async () => {
  await using place = await scratch({ [FILE]: '{"pids": 64}' });
  await symlink("/dev/full", place.at(`${FILE}.${process.pid}.tmp`));
  const [exit, message] = await refusalOf(() => setSetting(place.at(FILE), "pids", "65"));
  assert.deepEqual([exit, await place.read(FILE)], [2, '{"pids": 64}']);
  assert.match(message, /cannot be written: ENOSPC/);
  assert.deepEqual(await readdir(place.at("harness")), ["config.json"]);
});

test("grants are added to existing ones, each once, and comments are kept", async () => {
  await using place = await scratch({ [FILE]: '{\n  // mine\n  "allow_domains": ["a.org"]\n}\n' });
  await addGrants(place.at(FILE), ["npm", "a.org"]);
  await addGrants(place.at(FILE), ["npm"]);
  assert.equal(await place.read(FILE), '{\n  // mine\n  "allow_domains": ["a.org", "npm"]\n}\n');
  await using empty = await scratch();
  await addGrants(empty.at(FILE), ["npm", "pip"]);
  assert.deepEqual(JSON.parse(await empty.read(FILE)), { allow_domains: ["npm", "pip"] });
});

const valueOf = (file: string, text: string): unknown =>
  JSON.parse(JSON.stringify(parseConfigDocument(file, text).value));

test("an MCP server is added next to existing settings, replaced by name, and removed again", async () => {
  await using place = await scratch({ [FILE]: '{\n  // mine\n  "pids": 64\n}\n' });
  const file = place.at(FILE);
  await addServer(file, "a", { command: ["one"] });
  await addServer(file, "b", { url: "https://b.org" });
  await addServer(file, "a", { command: ["two"] });
  const text = await place.read(FILE);
  assert.match(text, /\/\/ mine/);
  assert.deepEqual(valueOf(file, text), {
    pids: 64,
    mcp: { b: { url: "https://b.org" }, a: { command: ["two"] } },
  });
  assert.deepEqual([await removeServer(file, "a"), await removeServer(file, "a")], [true, false]);
  assert.equal(await removeServer(place.at("none.json"), "a"), false);
  const left = await place.read(FILE);
  assert.match(left, /\/\/ mine/);
  assert.deepEqual(valueOf(file, left), { pids: 64, mcp: { b: { url: "https://b.org" } } });
});

test("an invalid MCP server is not written", async () => {
  await using place = await scratch({ [FILE]: '{"pids": 64}' });
  const [exit, message] = await refusalOf(() =>
    addServer(place.at(FILE), "a", { command: "x", url: "https://a.org" }),
  );
  assert.deepEqual([exit, await place.read(FILE)], [2, '{"pids": 64}']);
  assert.match(message, /either a command, or the url/);
  const [, name] = await refusalOf(() => addServer(place.at(FILE), "__proto__", { command: ["x"] }));
  assert.equal(name, "__proto__: mcp.__proto__: __proto__ cannot be used as a name");
  assert.equal(await place.read(FILE), '{"pids": 64}');
});

for (const [key, whole] of [
  ["kubernetes.deadline", "kubernetes"],
  ["web.fetch", "web"],
] as const)
  test(`${key} is reported as part of a setting that is set as a whole`, async () => {
    const refusal = await refusalOf(() => settingPath(key));
    assert.deepEqual(refusal, [2, `${key}: ${whole} is a single setting and can only be set as a whole`]);
  });
