import assert from "node:assert/strict";
import test from "node:test";
import { parseConfigDocument } from "../../src/config/load-config.ts";
import { layerSchema, readLayer } from "../../src/config/setting-rules.ts";
import { SETTING_KEYS } from "../../src/config/settings-schema.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { HOOK_KEYS } from "../../src/core/added-programs.ts";

const read = (text: string): unknown => {
  const { value, at } = parseConfigDocument("c.json", text);
  return readLayer(value, at);
};

const ACCEPTED: Readonly<Record<string, readonly [text: string, layer: object]>> = {
  "an empty object": ["{}", {}],
  "one key": ['{"mode": "read-only"}', { mode: "read-only" }],
  "a byte order mark": ['\uFEFF{"mode": "read-only"}', { mode: "read-only" }],
  "comments and trailing commas": [
    '// mine\n{\n  /* why */ "pids": 64, // because\n  "allow_domains": ["example.org",],\n}\n',
    { pids: 64, allow_domains: ["example.org"] },
  ],
  "each form of a duration that the error message names": ['{"timeout": "2h"}', { timeout: 7_200_000 }],
  "Windows line ends": ['{\r\n"pids": 64\r\n}\r\n', { pids: 64 }],
  "sizes and durations as numbers and as text": [
    '{"memory": "256m", "timeout": 90}',
    { memory: 268_435_456, timeout: 90_000 },
  ],
  "null where the value is decided at run time": [
    '{"image": null, "cpus": null, "base_url": null, "max_context_tokens": null}',
    { image: null, cpus: null, base_url: null, max_context_tokens: null },
  ],
  "the alias of max_turns": ['{"max_steps": 7}', { max_turns: 7 }],
  "a part of search": ['{"search": {"store": "qdrant"}}', { search: { store: "qdrant" } }],
  "a price with its date": [
    '{"prices": [{"model": "m", "input": 1, "output": 2, "from": "2026-03-01"}]}',
    { prices: [{ model: "m", input: 1, output: 2, from: "2026-03-01" }] },
  ],
  "a list of prices": [
    '{"prices": [{"model": "m", "input": 1, "output": 2.5}]}',
    { prices: [{ model: "m", input: 1, output: 2.5 }] },
  ],
  "a list of capabilities": [
    '{"capabilities": [{"prefix": "qwen", "context": 4096, "tools": false}]}',
    { capabilities: [{ prefix: "qwen", context: 4096, tools: false }] },
  ],
};

for (const [name, [text, layer]] of Object.entries(ACCEPTED))
  test(`a config file may have ${name}`, () => {
    assert.deepEqual(read(text), layer);
  });

const KNOWN = `known keys: ${SETTING_KEYS.join(", ")}`;
const SIZE = "expected a size such as 256m or 2g, from 64m to 4t";
const DURATION = "expected a duration such as 90, 90s, 30m or 2h, from 1s to 24h";

/** The message of each refusal, without the file that it starts with. */
const REFUSED: Readonly<Record<string, readonly [text: string, message: string]>> = {
  "an empty file": ["", ":1:1: value expected; expected a JSON object"],
  "comments alone": ["// nothing\n", ":2:1: value expected; expected a JSON object"],
  "a list": ["[]", ": expected a JSON object, found array"],
  "a text": ['"mode"', ": expected a JSON object, found string"],
  null: ["null", ": expected a JSON object, found null"],
  "an object left open": ['{\n  "pids": 64', ":2:13: close brace expected; expected a JSON object"],
  "a missing comma": ['{"pids": 64\n "mode": "x"}', ":2:2: comma expected; expected a JSON object"],
  "a missing value": ['{\n  "pids":\n}', ":3:1: value expected; expected a JSON object"],
  "a stray word at the end": ["{}\noops", ":2:1: invalid symbol; expected a JSON object"],
  "two objects": ["{} {}", ":1:4: end of file expected; expected a JSON object"],
  "the same key twice": ['{"pids": 64,\n  "pids": 65}', ":2:3: pids: duplicate key"],
  "the same key twice, once escaped": [
    String.raw`{"pids": 64, "p\u0069ds": 65}`,
    ":1:14: pids: duplicate key",
  ],
  "the same inner key twice": [
    '{"search": {"store": "auto",\n "store": "qdrant"}}',
    ":2:2: store: duplicate key",
  ],
  "both names of max_turns": [
    '{"max_steps": 3, "max_turns": 3}',
    ":1:15: max_steps: is an alias of max_turns, which is also set",
  ],
  "a misspelt key": ['{"memroy": "1g"}', ":1:12: memroy: unknown key; did you mean memory?"],
  "a key in capitals": ['{"Mode": "read-only"}', ":1:10: Mode: unknown key; did you mean mode?"],
  "a key with a dash": ['{"chat-model": "m"}', ":1:16: chat-model: unknown key; did you mean chat_model?"],
  "a misspelt alias": ['{"max_step": 3}', ":1:14: max_step: unknown key; did you mean max_steps?"],
  "a key like no other": ['{"sandbox": "off"}', `:1:13: sandbox: unknown key; ${KNOWN}`],
  "an empty key": ['{"": 1}', `:1:6: : unknown key; ${KNOWN}`],
  "the key __proto__": ['{"__proto__": {"mode": "read-only"}}', `:1:15: __proto__: unknown key; ${KNOWN}`],
  "a server called __proto__": [
    '{"mcp": {"__proto__": {"command": ["x"]}}}',
    ":1:23: mcp.__proto__: __proto__ cannot be used as a name",
  ],
  "the key constructor": ['{"constructor": {}}', `:1:17: constructor: unknown key; ${KNOWN}`],
  "a word that is not in the list": [
    '{\n  "mode": "yolo"\n}',
    ':2:11: mode: expected one of read-only, workspace-write, danger-full-access, found "yolo"',
  ],
  "a number too small": ['{"pids": 15}', ":1:10: pids: expected a whole number from 16 to 4000000, found 15"],
  "a number too large": [
    '{"pids": 4000001}',
    ":1:10: pids: expected a whole number from 16 to 4000000, found 4000001",
  ],
  "a broken number": [
    '{"pids": 64.5}',
    ":1:10: pids: expected a whole number from 16 to 4000000, found 64.5",
  ],
  "a number as text": [
    '{"pids": "64"}',
    ':1:10: pids: expected a whole number from 16 to 4000000, found "64"',
  ],
  "too few processors": [
    '{"cpus": 0}',
    ":1:10: cpus: expected a number of processors from 0.1 to 1024, found 0",
  ],
  "an invalid size": ['{"memory": "lots"}', `:1:12: memory: ${SIZE}, found "lots"`],
  "a size too small": ['{"memory": "1m"}', `:1:12: memory: ${SIZE}, found "1m"`],
  "a negative size": ['{"memory": -1}', `:1:12: memory: ${SIZE}, found -1`],
  "a size in a list": [
    '{"memory": ["1g"]}',
    ':1:12: memory: expected a size such as 256m or 2g, found ["1g"]',
  ],
  "a duration too short": ['{"timeout": "1ms"}', `:1:13: timeout: ${DURATION}, found "1ms"`],
  "a duration too long": ['{"timeout": "25h"}', `:1:13: timeout: ${DURATION}, found "25h"`],
  "yes for true": ['{"stream": "yes"}', ':1:12: stream: expected true or false, found "yes"'],
  "null for a text": ['{"chat_model": null}', ":1:16: chat_model: expected text, found null"],
  "an empty text": ['{"chat_model": ""}', ':1:16: chat_model: expected text that is not empty, found ""'],
  "a text of blanks": [
    '{"chat_model": " "}',
    ':1:16: chat_model: expected text that is not empty, found " "',
  ],
  "a model of blanks in a price": [
    '{"prices": [{"model": "\\t", "input": 1, "output": 1}]}',
    String.raw`:1:23: prices.0.model: expected text that is not empty, found "\t"`,
  ],
  "a text for an object": ['{"search": "qdrant"}', ':1:12: search: expected an object, found "qdrant"'],
  "null in a list of objects": ['{"prices": [null]}', ":1:13: prices.0: expected an object, found null"],
  "an address of a file": [
    '{"base_url": "file:///etc/passwd"}',
    ':1:14: base_url: expected an http:// or https:// address, found "file:///etc/passwd"',
  ],
  "one host for a list": [
    '{"allow_domains": "example.org"}',
    ':1:19: allow_domains: expected a list of host names, found "example.org"',
  ],
  "every host": [
    '{"allow_domains": ["a.org",\n "*"]}',
    ':2:2: allow_domains.1: expected a host name such as example.org or *.example.org: * is not allowed here; write the hosts below a name as *.example.org, at character 1, found "*"',
  ],
  "a whole top-level domain": [
    '{"allow_domains": ["*.org"]}',
    ':1:20: allow_domains.0: expected a host name such as example.org or *.example.org: *.org is too broad; use a longer name, as in *.example.org, at character 1, found "*.org"',
  ],
  "a grant with an unknown key": [
    '{"allow_domains": ["a.org", {"host": "b.org", "port": 443}]}',
    ':1:29: allow_domains.1: Unrecognized key: "port", found {"host":"b.org","port":443}',
  ],
  "a port out of range": [
    '{"allow_domains": [{"host": "b.org", "ports": [443, 0]}]}',
    ':1:20: allow_domains.0: expected a host name such as example.org or *.example.org: "0" is not a port from 1 to 65535, at character 11, found {"host":"b.org","ports":[443,0]}',
  ],
  "an odd store": [
    '{"search": {"store": "mine"}}',
    ':1:22: search.store: expected one of auto, qdrant, embedded, found "mine"',
  ],
  "a negative price": [
    '{"prices": [{"model": "m", "input": -1, "output": 0}]}',
    ":1:37: prices.0.input: expected a price of 0 or more, found -1",
  ],
};

for (const [name, [text, message]] of Object.entries(REFUSED))
  test(`a config file may not have ${name}`, async () => {
    assert.deepEqual(await refusalOf(() => read(text)), [2, `c.json${message}`]);
  });

test("a value out of range under an alias is reported under that alias, with its position", async () => {
  assert.deepEqual(await refusalOf(() => read('{\n  "max_steps": 0\n}')), [
    2,
    "c.json:2:16: max_steps: expected a whole number from 1 to 10000, found 0",
  ]);
});

test("the hint for a key inside search names search's own keys", async () => {
  const [, stor] = await refusalOf(() => read('{"search": {"stor": "auto"}}'));
  assert.match(stor, /^c\.json:1:21: search\.stor: unknown key; .*\bstore\b/);
  const [, mode] = await refusalOf(() => read('{"search": {"mode": "auto"}}'));
  assert.doesNotMatch(mode, /did you mean mode/);
});

test("the hint for a key inside a hook or a tool names only their keys", async () => {
  const hook = '{"event": "Stop", "command": ["a"], "timout": 1}';
  const [, timeout] = await refusalOf(() => read(`{"hooks": [${hook}]}`));
  assert.match(timeout, /: hooks\.0\.timout: unknown key; did you mean timeout\?$/);
  const [, tool] = await refusalOf(() =>
    read('{"tools": {"t": {"description": "d", "command": "c", "xyz": 1}}}'),
  );
  assert.match(
    tool,
    /: tools\.t\.xyz: unknown key; known keys: description, command, schema, timeout, state, reads$/,
  );
  const every = {
    event: "PostToolUse",
    tools: "bash",
    command: "a",
    name: "n",
    timeout: "1s",
    required: true,
  };
  assert.deepEqual(Object.keys(every).toSorted(), HOOK_KEYS.toSorted());
  await read(JSON.stringify({ hooks: [every] }));
});

test("a key missing from a list entry is reported at the entry", async () => {
  assert.deepEqual(await refusalOf(() => read('{\n  "prices": [\n    {"model": "m", "output": 1}]}')), [
    2,
    "c.json:3:5: prices.0.input: expected a price per million tokens, found nothing",
  ]);
});

test("a file nested too deeply is refused like any other", async () => {
  for (const text of ["[".repeat(50_000), '{"a":'.repeat(50_000)]) {
    const [exit, message] = await refusalOf(() => read(text));
    assert.deepEqual([exit, message.startsWith("c.json")], [2, true]);
  }
});

test("a long value is shown truncated", async () => {
  const [, message] = await refusalOf(() => read(`{"mode": "${"x".repeat(500)}"}`));
  assert.equal(message.split("found ")[1], `"${"x".repeat(79)}…`);
});

test("the rules cover the settings with defaults, in the same order", () => {
  assert.deepEqual(Object.keys(layerSchema.shape), SETTING_KEYS);
});

test("a check of only blanks and comments is refused, because it always succeeds", () => {
  for (const check of ["   ", "# x", " \n# y\n\t"])
    assert.ok(!layerSchema.safeParse({ check }).success, check);
  for (const check of ["true", "# first\nmake test", "make test # all"])
    assert.ok(layerSchema.safeParse({ check }).success, check);
});
