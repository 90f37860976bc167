import assert from "node:assert/strict";
import test from "node:test";
import {
  type ChangeDirection,
  changeOf,
  DEFAULTS,
  DIRECTIONS,
  SETTING_KEYS,
  type SettingKey,
  type Settings,
} from "../../src/config/settings-schema.ts";

const change = (key: SettingKey, from: unknown, to: unknown): ChangeDirection =>
  changeOf(key, from as Settings[SettingKey], to as Settings[SettingKey]);

/** Of every setting: changes that tighten, and changes that do not. */
const CHANGES: Readonly<
  Record<
    SettingKey,
    {
      readonly tighten?: readonly (readonly [unknown, unknown])[];
      readonly loosen: readonly (readonly [unknown, unknown])[];
    }
  >
> = {
  provider: {
    loosen: [
      ["ollama", "openai"],
      ["openai", "ollama"],
    ],
  },
  base_url: {
    loosen: [
      [null, "http://127.0.0.1:1"],
      ["http://127.0.0.1:1", null],
    ],
  },
  chat_model: { loosen: [["a", "b"]] },
  embed_model: { loosen: [["a", "b"]] },
  max_context_tokens: {
    loosen: [
      [8192, 4096],
      [4096, null],
      [null, 4096],
    ],
  },
  stream: {
    loosen: [
      [true, false],
      [false, true],
    ],
  },
  plain: {
    loosen: [
      [true, false],
      [false, true],
    ],
  },
  notify: {
    loosen: [
      ["bell", "off"],
      ["off", "both"],
    ],
  },
  mode: {
    tighten: [
      ["workspace-write", "read-only"],
      ["danger-full-access", "workspace-write"],
      ["danger-full-access", "read-only"],
    ],
    loosen: [
      ["read-only", "workspace-write"],
      ["workspace-write", "danger-full-access"],
      ["workspace-write", "of a later version"],
    ],
  },
  on_ask: {
    tighten: [
      ["contained", "refuse"],
      ["park", "contained"],
      ["park", "refuse"],
    ],
    loosen: [
      ["refuse", "contained"],
      ["contained", "park"],
    ],
  },
  park_timeout: { tighten: [[10, 0]], loosen: [[0, 10]] },
  isolation: {
    tighten: [
      ["bind", "overlay"],
      ["bind", "copy"],
    ],
    loosen: [
      ["overlay", "bind"],
      ["overlay", "copy"],
      ["copy", "overlay"],
    ],
  },
  env: {
    loosen: [
      [null, "own"],
      ["own", null],
    ],
  },
  engine: {
    loosen: [
      [null, "ssh://me@there"],
      ["lab", null],
    ],
  },
  image: {
    loosen: [
      [null, "theirs"],
      ["ours", null],
    ],
  },
  memory: { tighten: [[2, 1]], loosen: [[1, 2]] },
  cpus: {
    tighten: [
      [null, 4],
      [2, 1],
    ],
    loosen: [
      [4, null],
      [1, 2],
    ],
  },
  history: { tighten: [[true, false]], loosen: [[false, true]] },
  canaries: { tighten: [[false, true]], loosen: [[true, false]] },
  pids: { tighten: [[2, 1]], loosen: [[1, 2]] },
  timeout: { tighten: [[2, 1]], loosen: [[1, 2]] },
  connect_timeout: { tighten: [[2, 1]], loosen: [[1, 2]] },
  first_token_timeout: { tighten: [[2, 1]], loosen: [[1, 2]] },
  idle_timeout: { tighten: [[2, 1]], loosen: [[1, 2]] },
  max_turns: { tighten: [[2, 1]], loosen: [[1, 2]] },
  check: {
    loosen: [
      [null, "true"],
      ["make test", "true"],
      ["make test", null],
    ],
  },
  attempts: { tighten: [[2, 1]], loosen: [[1, 2]] },
  temperature: {
    loosen: [
      [null, 0],
      [1, 0],
      [0, 1],
    ],
  },
  secrets: {
    loosen: [
      [{}, { A: ["a.org"] }],
      [{ A: ["a.org"] }, {}],
    ],
  },
  hooks: {
    loosen: [
      [[], [{ event: "Stop", command: "true" }]],
      [[{ event: "Stop", command: "true" }], []],
    ],
  },
  tools: {
    loosen: [
      [{}, { lookup: { description: "looks up", command: "true" } }],
      [{ lookup: { description: "looks up", command: "true" } }, {}],
    ],
  },
  install_scripts: { tighten: [[["a", "b"], ["a"]]], loosen: [[["a"], ["b"]]] },
  min_release_age: {
    tighten: [[0, 10]],
    loosen: [
      [10, 0],
      [0, "of a later version"],
    ],
  },
  allow_domains: {
    tighten: [
      [["a.org", "b.org"], ["b.org"]],
      [["a.org"], []],
    ],
    loosen: [
      [[], ["a.org"]],
      [["a.org"], ["b.org"]],
      [["a.org"], ["*.a.org"]],
      [["a.org"], ["a.org", "b.org"]],
    ],
  },
  deny_domains: {
    tighten: [
      [[], ["a.org"]],
      [["a.org"], ["b.org", "a.org"]],
    ],
    loosen: [
      [["a.org"], []],
      [["a.org"], ["b.org"]],
    ],
  },
  network_upload: { tighten: [[2, 1]], loosen: [[1, 2]] },
  network_download: { tighten: [[2, 1]], loosen: [[1, 2]] },
  network_idle_timeout: { tighten: [[2, 1]], loosen: [[1, 2]] },
  search: { loosen: [[DEFAULTS.search, { ...DEFAULTS.search, url: "http://127.0.0.1:1" }]] },
  web: {
    loosen: [
      [
        { fetch: false, search: null },
        { fetch: true, search: null },
      ],
      [
        { fetch: true, search: null },
        { fetch: false, search: null },
      ],
      [
        { fetch: false, search: null },
        { fetch: false, search: { provider: "exa" } },
      ],
    ],
  },
  kubernetes: {
    loosen: [
      [DEFAULTS.kubernetes, { ...DEFAULTS.kubernetes, runtime_class: "gvisor" }],
      [DEFAULTS.kubernetes, { ...DEFAULTS.kubernetes, deadline: 60_000 }],
    ],
  },
  mcp: { loosen: [[{}, { files: { command: ["server"] } }]] },
  prices: { loosen: [[[], [{ model: "m", input: 0, output: 0 }]]] },
  capabilities: { loosen: [[[], [{ prefix: "m", context: 512 }]]] },
};

test("every setting has a direction and is tested here", () => {
  assert.deepEqual(new Set<string>(Object.keys(DIRECTIONS)), new Set(SETTING_KEYS));
  assert.deepEqual(new Set<string>(Object.keys(CHANGES)), new Set(SETTING_KEYS));
});

for (const key of SETTING_KEYS)
  test(`${key}: which changes tighten, which loosen, and which are equal`, () => {
    const { tighten = [], loosen } = CHANGES[key];
    assert.equal(tighten.length > 0, DIRECTIONS[key].by !== "never");
    for (const [from, to] of tighten)
      assert.equal(change(key, from, to), "tightens", JSON.stringify([from, to]));
    for (const [from, to] of loosen)
      assert.equal(change(key, from, to), "loosens", JSON.stringify([from, to]));
    for (const value of [...tighten, ...loosen].flat()) assert.equal(change(key, value, value), "same");
  });
