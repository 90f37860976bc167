import assert from "node:assert/strict";
import test from "node:test";
import {
  capabilitiesOf,
  familyName,
  NOT_REPORTED,
  ollamaCapabilities,
  ownRowOf,
  providerWithCapabilities,
  rowOf,
  type Sources,
  wantedWindow,
} from "../../src/models/capabilities.ts";
import { FAMILIES } from "../../src/models/model-families.generated.ts";
import type { Capabilities } from "../../src/core/model-provider.ts";
import type { ModelWire, WireRequest } from "../../src/models/model-api.ts";

test("a model of no known family has no row", () => {
  assert.deepEqual(["my-own-model", ""].map(rowOf), [undefined, undefined]);
});

test("every row is found by its own prefix, and no prefix occurs twice", () => {
  for (const row of FAMILIES) assert.equal(rowOf(row.prefix), row, row.prefix);
  assert.equal(new Set(FAMILIES.map(({ prefix }) => prefix)).size, FAMILIES.length);
  for (const { prefix } of FAMILIES) assert.equal(familyName(prefix), prefix);
});

test("a user's row matches the whole name, its last part or the family; the longest prefix wins, then the last row", () => {
  const rows = ["qwen3", "hf.co/unsloth/", "Qwen3-8B", "qwen3"].map((prefix, index) => ({ prefix, index }));
  const found = (model: string): number | undefined => ownRowOf(rows, model)?.index;
  assert.deepEqual(["hf.co/unsloth/Qwen3-8B-GGUF", "qwen3:4b", "hf.co/x/Qwen3-8B", "llama3"].map(found), [
    1,
    3,
    2,
    undefined,
  ]);
});

const NOTHING: Sources = { user: [], maxContext: null, probe: null, server: NOT_REPORTED };

const short = (model: string, sources: Partial<Sources>): string => {
  const { context, tools, thinking, cache, origin } = capabilitiesOf(model, { ...NOTHING, ...sources });
  return `${context} ${origin.context}, ${tools} ${origin.tools}, ${thinking} ${origin.thinking}, ${cache} ${origin.cache}`;
};

const CASES: readonly (readonly [string, string, Partial<Sources>, string])[] = [
  ["nothing but the name", "qwen3:8b", {}, "40960 table, true table, true table, true table"],
  ["an unknown name", "mine", {}, "32768 guess, false guess, false guess, false guess"],
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
    "the user, contradicted by probe and server",
    "qwen3:8b",
    {
      user: [{ prefix: "qwen3", context: 16_384, tools: true, thinking: false }],
      probe: "text",
      server: { ...NOT_REPORTED, context: 8192, tools: false, thinking: true, cache: false },
    },
    "16384 user, true user, false user, false server",
  ],
  [
    "a row of the user's that sets one capability",
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
    "a row of the user's for tools only, and a probe",
    { user: [{ prefix: "qwen3", tools: true }], probe: "held" },
    "native user, true user",
  ],
  [
    "tools offered natively, replies held",
    { user: [{ prefix: "qwen3", tools: true, calls: "held" }] },
    "held user, true user",
  ],
  ["the server's report", { server: { ...NOT_REPORTED, tools: false } }, "text server, false server"],
];

for (const [what, sources, believed] of FORMS)
  test(`the form of calls from ${what}: ${believed}`, () => {
    const all = { user: [], maxContext: null, probe: null, server: NOT_REPORTED, ...sources };
    const { calls, tools, origin } = capabilitiesOf("qwen3:8b", all);
    assert.equal(`${calls} ${origin.calls}, ${tools} ${origin.tools}`, believed);
  });

for (const [what, model, sources, believed] of CASES)
  test(`${what}: ${believed}`, () => assert.equal(short(model, sources), believed));

test("the requested window is the row's, bounded by the setting, or the setting", () => {
  const user = [{ prefix: "qwen3", context: 65_536 }];
  const wanted = (model: string, maxContext: number | null): number | null =>
    wantedWindow(model, { user, maxContext });
  assert.deepEqual(
    [wanted("qwen3:8b", null), wanted("qwen3:8b", 8192), wanted("llama3", 8192), wanted("llama3", null)],
    [65_536, 8192, 8192, null],
  );
});

test("for Ollama the window in force is used, whatever limits it", () => {
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

const OFFER = { name: "read_file", description: "Reads a file.", schema: { type: "object" } } as const;
const BELIEVED: Capabilities = {
  context: 8192,
  tools: true,
  calls: "native",
  thinking: false,
  cache: true,
  origin: { context: "server", tools: "server", calls: "server", thinking: "server", cache: "server" },
};

/** The requests sent in turn when the model is believed to support native calls, or not. */
async function sentFor(beliefs: readonly (boolean | null)[], tools = [OFFER]): Promise<readonly string[]> {
  const sent: WireRequest[] = [];
  const wire: ModelWire = {
    async *send(request) {
      sent.push(request);
      yield* await Promise.resolve([
        { type: "text", text: "Hello" } as const,
        { type: "stop", stop: "end" } as const,
      ]);
    },
  };
  const waiting = [...beliefs];
  const provider = providerWithCapabilities(wire, {
    capabilities: () => {
      const believed = waiting.shift();
      if (believed === null) return Promise.reject(new Error("nobody knows"));
      const native = believed ?? true;
      return Promise.resolve({ ...BELIEVED, tools: native, calls: native ? "native" : "text" });
    },
  });
  const request = { model: "m", messages: [{ role: "user", text: "Hi" }], tools } as const;
  for (const _ of beliefs)
    for await (const { type } of provider.stream(request, new AbortController().signal))
      assert.notEqual(type, "failed");
  return sent.map(({ nativeTools, tools, messages }) => {
    const told = messages.some(({ text }) => text.includes("Reads a file."));
    return `${nativeTools ? "native" : "text"} ${tools.length}${told ? " in the prompt" : ""}`;
  });
}

test("tools are sent natively to a model that supports them, otherwise in its prompt", async () => {
  assert.deepEqual(await sentFor([true]), ["native 1"]);
  assert.deepEqual(await sentFor([false]), ["text 0 in the prompt"]);
});

test("tool support may change between two requests", async () => {
  assert.deepEqual(await sentFor([false, true]), ["text 0 in the prompt", "native 1"]);
});

test("a failed look-up of tool support changes nothing and fails nothing", async () => {
  assert.deepEqual(await sentFor([null, false, null]), [
    "native 1",
    "text 0 in the prompt",
    "text 0 in the prompt",
  ]);
});

test("without tools no look-up is needed", async () => {
  assert.deepEqual(await sentFor([false], []), ["native 0"]);
});
