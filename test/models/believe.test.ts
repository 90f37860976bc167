import assert from "node:assert/strict";
import test from "node:test";
import {
  capabilitiesOf,
  NOT_REPORTED,
  type Sources,
  wantedWindow,
  ollamaCapabilities,
} from "../../src/models/capabilities.ts";
const NOTHING: Sources = { user: [], maxContext: null, probe: null, server: NOT_REPORTED };

const short = (model: string, sources: Partial<Sources>): string => {
  const { context, tools, thinking, cache, origin } = capabilitiesOf(model, { ...NOTHING, ...sources });
  return `${context} ${origin.context}, ${tools} ${origin.tools}, ${thinking} ${origin.thinking}, ${cache} ${origin.cache}`;
};

const CASES: readonly (readonly [string, string, Partial<Sources>, string])[] = [
  ["nothing but the name", "qwen3:8b", {}, "40960 table, true table, true table, true table"],
  ["a name that nobody knows", "mine", {}, "32768 guess, false guess, false guess, false guess"],
  [
    "the server's word",
    "qwen3:8b",
    { server: { ...NOT_REPORTED, context: 8192, tools: false, thinking: false } },
    "8192 server, false server, false server, true table",
  ],
  [
    "a probe, which the server contradicts",
    "qwen3:8b",
    { probe: "text", server: { ...NOT_REPORTED, tools: true } },
    "40960 table, false probe, true table, true table",
  ],
  [
    "the user, whom everybody contradicts",
    "qwen3:8b",
    {
      user: [{ prefix: "qwen3", context: 16_384, tools: true, thinking: false }],
      probe: "text",
      server: { ...NOT_REPORTED, context: 8192, tools: false, thinking: true, cache: false },
    },
    "16384 user, true user, false user, false server",
  ],
  [
    "a row of the user's that sets one thing",
    "qwen3:8b",
    { user: [{ prefix: "qwen3", tools: false }] },
    "40960 table, false user, true table, true table",
  ],
  [
    "a bound on every window",
    "qwen3:8b",
    { maxContext: 10_000 },
    "10000 user, true table, true table, true table",
  ],
  [
    "a bound that is wider",
    "qwen3:8b",
    { maxContext: 100_000 },
    "40960 table, true table, true table, true table",
  ],
];

const FORMS: readonly (readonly [string, Partial<Sources>, string])[] = [
  ["nothing but the name", {}, "native table, true table"],
  ["a probe", { probe: "held" }, "held probe, false probe"],
  [
    "a row of the user's, and a probe",
    { user: [{ prefix: "qwen3", calls: "held" }], probe: "text" },
    "held user, false user",
  ],
  [
    "a row that says of tools alone, and a probe",
    { user: [{ prefix: "qwen3", tools: true }], probe: "held" },
    "native user, true user",
  ],
  [
    "tools offered natively, replies held",
    { user: [{ prefix: "qwen3", tools: true, calls: "held" }] },
    "held user, true user",
  ],
  ["the server's word", { server: { ...NOT_REPORTED, tools: false } }, "text server, false server"],
];

for (const [what, sources, believed] of FORMS)
  test(`the form of calls by ${what}: ${believed}`, () => {
    const all = { user: [], maxContext: null, probe: null, server: NOT_REPORTED, ...sources };
    const { calls, tools, origin } = capabilitiesOf("qwen3:8b", all);
    assert.equal(`${calls} ${origin.calls}, ${tools} ${origin.tools}`, believed);
  });

for (const [what, model, sources, believed] of CASES)
  test(`${what}: ${believed}`, () => assert.equal(short(model, sources), believed));

test("the window that is wanted is the row's within the setting, or the setting", () => {
  const user = [{ prefix: "qwen3", context: 65_536 }];
  const wanted = (model: string, maxContext: number | null): number | null =>
    wantedWindow(model, { user, maxContext });
  assert.deepEqual(
    [wanted("qwen3:8b", null), wanted("qwen3:8b", 8192), wanted("llama3", 8192), wanted("llama3", null)],
    [65_536, 8192, 8192, null],
  );
});

test("of Ollama the window in force is believed, whoever bounds it", () => {
  const origins = (["trained", "setting", "memory", "default"] as const).map((limit) => {
    const window = { tokens: 12_288, limit };
    const facts = { window, tools: true, thinks: null, parameters: 1.5, version: "0.12.6" };
    return ollamaCapabilities("qwen3:8b", facts, { user: [], maxContext: null, probe: null });
  });
  const rest = { tools: "server", calls: "server", thinking: "table", cache: "server" };
  assert.deepEqual(
    origins,
    ["server", "user", "guess", "guess"].map((context) => ({
      context: 12_288,
      tools: true,
      calls: "native",
      thinking: true,
      cache: true,
      parameters: 1.5,
      origin: { context, ...rest },
    })),
  );
});
