import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import test from "node:test";
import { type Config, envNameOf, loadConfig } from "../../src/config/load-config.ts";
import { DEFAULTS, SETTING_KEYS, type SettingKey } from "../../src/config/settings-schema.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const OLDER = "home/.harness/config.json";
const USER = "xdg/harness/config.json";
const PROJECT = "work/.harness/config.json";

type Given = {
  /** Of the project's file; left out, it is not looked at. */
  readonly trusted?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, readonly [SettingKey, unknown]>>;
};

async function load(place: Scratch, { trusted, env = {}, flags = {} }: Given = {}): Promise<Config> {
  const pairs = Object.entries(flags).map(([flag, [key, value]]) => [flag, { key, value }] as const);
  return loadConfig({
    env: { HOME: place.at("home"), XDG_CONFIG_HOME: place.at("xdg"), ...env },
    project:
      trusted === undefined
        ? undefined
        : { file: place.at(PROJECT), text: await place.read(PROJECT), trusted },
    flags: new Map(pairs),
  });
}

const BY_DEFAULT = Object.fromEntries(SETTING_KEYS.map((key) => [key, "default"]));

test("without settings every value is its default and is labelled as such", async () => {
  await using place = await scratch();
  assert.deepEqual(await load(place), { settings: DEFAULTS, origins: BY_DEFAULT });
});

test("each source takes precedence over those below it, and each value names its source", async () => {
  await using place = await scratch({
    [OLDER]: '{"pids": 101, "memory": "101m", "timeout": 101, "max_turns": 101, "chat_model": "older"}',
    [USER]: '{"pids": 102, "memory": "102m", "timeout": 102, "max_turns": 102}',
    [PROJECT]: '{"pids": 103, "memory": "103m", "timeout": 103}',
  });
  const config = await load(place, {
    trusted: true,
    env: { HARNESS_PIDS: "104", HARNESS_MEMORY: "104m" },
    flags: { "--pids": ["pids", "105"] },
  });
  assert.deepEqual(config, {
    settings: {
      ...DEFAULTS,
      chat_model: "older",
      max_turns: 102,
      timeout: 103_000,
      memory: 104 * 2 ** 20,
      pids: 105,
    },
    origins: {
      ...BY_DEFAULT,
      chat_model: place.at(OLDER),
      max_turns: place.at(USER),
      timeout: place.at(PROJECT),
      memory: "HARNESS_MEMORY",
      pids: "--pids",
    },
    project: { file: place.at(PROJECT), trusted: true, ignored: [] },
  });
});

test("an untrusted project can only tighten settings, and the ignored ones are listed", async () => {
  await using place = await scratch({
    [USER]: '{"pids": 100, "memory": "1g"}',
    [PROJECT]:
      '{"mode": "danger-full-access", "pids": 50, "memory": "2g", "max_steps": 40, "image": "theirs"}',
  });
  const config = await load(place, { trusted: false });
  assert.deepEqual(config, {
    settings: { ...DEFAULTS, pids: 50, memory: 2 ** 30 },
    origins: { ...BY_DEFAULT, memory: place.at(USER), pids: place.at(PROJECT) },
    project: {
      file: place.at(PROJECT),
      trusted: false,
      ignored: [
        { key: "mode", from: "workspace-write", to: "danger-full-access" },
        { key: "image", from: null, to: "theirs" },
        { key: "memory", from: 2 ** 30, to: 2 ** 31 },
      ],
    },
  });
  const trusted = await load(place, { trusted: true });
  assert.deepEqual(
    [trusted.settings.mode, trusted.origins["mode"], trusted.project?.ignored],
    ["danger-full-access", place.at(PROJECT), []],
  );
});

test("a project's tighter setting gives way to the environment and to flags", async () => {
  await using place = await scratch({ [PROJECT]: '{"mode": "read-only", "pids": 50}' });
  const { settings } = await load(place, {
    trusted: false,
    env: { HARNESS_PIDS: "60" },
    flags: { "--mode": ["mode", "danger-full-access"] },
  });
  assert.deepEqual([settings.pids, settings.mode], [60, "danger-full-access"]);
});

test("a broken file of an untrusted project does not end the run, and its problem is reported", async () => {
  for (const text of ["not JSON", '{"mode": 3}', '{"pids": 20, "novel": 1}', `{"a":${"[".repeat(200_000)}`]) {
    await using place = await scratch({ [PROJECT]: text });
    const { project, ...config } = await load(place, { trusted: false });
    assert.deepEqual(config, { settings: DEFAULTS, origins: BY_DEFAULT });
    assert.match(project?.problem ?? "", /config\.json:1:\d+: /);
  }
});

test("lists are replaced as a whole, never merged", async () => {
  await using place = await scratch({ [USER]: '{"allow_domains": ["a.org", "b.org"]}' });
  const { settings } = await load(place, { env: { HARNESS_ALLOW_DOMAINS: " c.org , d.org ," } });
  assert.deepEqual(settings.allow_domains, ["c.org", "d.org"]);
});

test("deny lists of several files are merged: no project removes an entry, trusted or not", async () => {
  for (const trusted of [true, false]) {
    await using place = await scratch({
      [USER]: '{"deny_domains": ["A.org"], "network_upload": "10m"}',
      [PROJECT]: '{"deny_domains": ["*.b.org"], "network_upload": "20m"}',
    });
    const { settings } = await load(place, { trusted, env: { HARNESS_DENY_DOMAINS: "c.org, d.org" } });
    assert.deepEqual(settings.deny_domains, ["a.org", "*.b.org", "c.org", "d.org"]);
    assert.equal(settings.network_upload, (trusted ? 20 : 10) * 2 ** 20, "the twin: a bound is replaced");
  }
});

test("grants are normalised and listed once, however they were written", async () => {
  const written = [
    "npm",
    "A.org:443,8443:get,head",
    { host: "b.org", ports: [443], methods: ["read"], private: true },
    { host: "*.c.org" },
    "a.org:443,8443:GET,HEAD",
  ];
  await using place = await scratch({ [USER]: JSON.stringify({ allow_domains: written }) });
  const expected = ["npm", "a.org:443,8443:GET,HEAD", "b.org:443:read:private", "*.c.org"];
  assert.deepEqual((await load(place)).settings.allow_domains, expected);
  const flags = {
    "--allow-domain": ["allow_domains", ["npm,A.org:443,8443:get,head", "b.org:443:read:private,*.c.org"]],
  } as const;
  assert.deepEqual((await load(place, { flags })).settings.allow_domains, expected);
});

test("null resets a value to be decided at run time", async () => {
  await using place = await scratch({ [USER]: '{"image": "mine", "cpus": 2}' });
  const { settings, origins } = await load(place, { env: { HARNESS_IMAGE: "null", HARNESS_CPUS: "null" } });
  assert.deepEqual([settings.image, settings.cpus], [null, null]);
  assert.deepEqual([origins["image"], origins["cpus"]], ["HARNESS_IMAGE", "HARNESS_CPUS"]);
});

test("the parts of search are merged from files and the environment", async () => {
  await using place = await scratch({ [USER]: '{"search": {"store": "embedded", "shard_number": 3}}' });
  const nodes = ["http://q2:6333", "http://q3:6333"];
  const env = { HARNESS_SEARCH_URL: "http://127.0.0.1:7000", HARNESS_SEARCH_NODES: JSON.stringify(nodes) };
  const { settings } = await load(place, { env });
  const url = "http://127.0.0.1:7000";
  const wanted = { ...DEFAULTS.search, store: "embedded", url, nodes, shard_number: 3 };
  assert.deepEqual(settings.search, wanted);
});

test("invalid search settings are refused with their position", async () => {
  const many = JSON.stringify(Array.from({ length: 17 }, (_, at) => `http://q${at}`));
  for (const [text, says] of [
    [
      '{"search": {"nodes": ["q2:6333"]}}',
      /search\.nodes\S*0\S*: expected an http:\/\/ or https:\/\/ address/,
    ],
    [`{"search": {"nodes": ${many}}}`, /search\.nodes: expected at most 16 addresses/],
    ['{"search": {"nodes": "http://q2"}}', /search\.nodes: expected a list of addresses/],
    ['{"search": {"shard_number": 0}}', /search\.shard_number: expected a whole number/],
    ['{"search": {"replication_factor": "two"}}', /search\.replication_factor: expected a whole number/],
    ['{"capabilities": [{"prefix": "x", "parameters": 7}]}', /parameters: expected a whole number/],
  ] as const) {
    await using place = await scratch({ [USER]: text });
    const [exit, message] = await refusalOf(() => load(place));
    assert.equal(exit, 2);
    assert.match(message, says);
  }
});

test("an empty search object sets nothing, so its values stay defaults", async () => {
  await using place = await scratch({ [USER]: '{"search": {}}' });
  assert.deepEqual(await load(place), { settings: DEFAULTS, origins: BY_DEFAULT });
});

test("with max_steps in one file and max_turns in another, the file of higher precedence wins", async () => {
  await using place = await scratch({ [OLDER]: '{"max_turns": 5}', [USER]: '{"max_steps": 6}' });
  const { settings, origins } = await load(place);
  assert.deepEqual([settings.max_turns, origins["max_turns"]], [6, place.at(USER)]);
});

test("an empty variable counts as unset", async () => {
  await using place = await scratch();
  const { origins } = await load(place, { env: { HARNESS_MODE: "", HARNESS_PIDS: "" } });
  assert.deepEqual(origins, BY_DEFAULT);
});

const VARIABLES: Readonly<Record<string, readonly [key: SettingKey, text: string, value: unknown]>> = {
  HARNESS_CHAT_MODEL: ["chat_model", "007", "007"],
  HARNESS_MODE: ["mode", "read-only", "read-only"],
  HARNESS_TIMEOUT: ["timeout", "90", 90_000],
  HARNESS_CPUS: ["cpus", "1.5", 1.5],
  HARNESS_STREAM: ["stream", "false", false],
  HARNESS_MAX_CONTEXT_TOKENS: ["max_context_tokens", "8192", 8192],
  HARNESS_PRICES: [
    "prices",
    '[{"model": "m", "input": 1, "output": 2}]',
    [{ model: "m", input: 1, output: 2 }],
  ],
};

for (const [variable, [key, text, value]] of Object.entries(VARIABLES))
  test(`${variable}=${text} sets ${key}`, async () => {
    await using place = await scratch();
    assert.equal(envNameOf(key), variable);
    assert.deepEqual(await load(place, { env: { [variable]: text } }), {
      settings: { ...DEFAULTS, [key]: value },
      origins: { ...BY_DEFAULT, [key]: variable },
    });
  });

test("the variable of an alias sets the setting unless the variable of its main name does", async () => {
  await using place = await scratch();
  for (const [own, turns, by] of [
    [{}, 7, "HARNESS_MAX_STEPS"],
    [{ HARNESS_MAX_TURNS: "8" }, 8, "HARNESS_MAX_TURNS"],
  ] as const) {
    const { settings, origins } = await load(place, { env: { HARNESS_MAX_STEPS: "7", ...own } });
    assert.deepEqual([settings.max_turns, origins["max_turns"]], [turns, by]);
  }
});

const SIZE = "expected a size such as 256m or 2g, from 64m to 4t";

const REFUSED: Readonly<Record<string, readonly [Given, message: string]>> = {
  "a variable that is not a size": [
    { env: { HARNESS_MEMORY: "lots" } },
    `HARNESS_MEMORY: ${SIZE}, found "lots"`,
  ],
  "a variable that is not a number": [
    { env: { HARNESS_PIDS: "many" } },
    'HARNESS_PIDS: expected a whole number from 16 to 4000000, found "many"',
  ],
  "a variable for a part of search": [
    { env: { HARNESS_SEARCH_STORE: "mine" } },
    'HARNESS_SEARCH_STORE: expected one of auto, qdrant, embedded, found "mine"',
  ],
  "a flag out of range": [
    { flags: { "--pids": ["pids", "3"] } },
    "--pids: expected a whole number from 16 to 4000000, found 3",
  ],
  "a flag that is empty": [{ flags: { "--memory": ["memory", ""] } }, `--memory: ${SIZE}, found ""`],
  "a flag given several times, once wrong": [
    { flags: { "--allow-domain": ["allow_domains", ["a.org", "b c"]] } },
    '--allow-domain: expected a host name such as example.org or *.example.org: " " is not allowed in a grant, at character 2, found "b c"',
  ],
};

for (const [name, [given, message]] of Object.entries(REFUSED))
  test(`${name} ends with exit 2 and is named`, async () => {
    await using place = await scratch();
    assert.deepEqual(await refusalOf(() => load(place, given)), [2, message]);
  });

for (const [file, trusted] of [
  [OLDER, undefined],
  [USER, undefined],
  [PROJECT, true],
] as const)
  test(`a broken ${file} ends with exit 2 and its position, even if everything is set elsewhere`, async () => {
    await using place = await scratch({ [file]: '{\n  "mode": "read-only",,\n}' });
    assert.deepEqual(
      await refusalOf(() => load(place, { ...(trusted && { trusted }), env: { HARNESS_MODE: "read-only" } })),
      [2, `${place.at(file)}:2:23: property name expected; expected a JSON object`],
    );
  });

test("an invalid value in a weaker source is refused even if a stronger one is set", async () => {
  await using place = await scratch({ [OLDER]: '{"pids": 1}', [USER]: '{"pids": 64}' });
  const [exit, message] = await refusalOf(() => load(place));
  assert.deepEqual([exit, message.startsWith(`${place.at(OLDER)}:1:10: pids:`)], [2, true]);
});

test("an existing file that cannot be read ends the run", async () => {
  await using place = await scratch();
  await mkdir(place.at(USER), { recursive: true });
  const [exit, message] = await refusalOf(() => load(place));
  assert.deepEqual([exit, message.startsWith(`${place.at(USER)}: cannot be read: EISDIR`)], [2, true]);
});

test("a config folder that is a plain file counts as missing", async () => {
  await using place = await scratch({ "xdg/harness": "" });
  assert.deepEqual(await load(place), { settings: DEFAULTS, origins: BY_DEFAULT });
});

test("a check that looks like a JSON value is a command", async () => {
  await using place = await scratch();
  for (const text of ["true", "false", "0"]) {
    const { settings } = await load(place, { flags: { "--check": ["check", text] } });
    assert.equal(settings.check, text);
  }
  const { settings } = await load(place, { env: { HARNESS_CHECK: "true" } });
  assert.equal(settings.check, "true");
});
