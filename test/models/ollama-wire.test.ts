import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test from "node:test";
import type { SessionOptions } from "../../src/models/providers/ollama-server.ts";
import { OllamaWire } from "../../src/models/providers/ollama-api.ts";
import { WireFailure, type WireEvent, type WireRequest } from "../../src/models/model-api.ts";
import { chatLine, doneLine, errorLine } from "../fakes/ollama-chat.ts";
import {
  type FakeOllama,
  type FakeOllamaOptions,
  sendJson,
  startFakeOllama,
} from "../fakes/ollama-server.ts";

const QWEN = { name: "qwen3:8b", size: 5_000_000_000 };
const TOOL = { name: "read_file", description: "Reads a file.", schema: { type: "object" } } as const;
const REQUEST: WireRequest = {
  model: "qwen3:8b",
  messages: [{ role: "user", text: "hello" }],
  tools: [TOOL],
  nativeTools: true,
  connectMs: 1000,
};

/** A server that answers every chat with these lines, and the adapter to it. */
async function serving(
  lines: readonly string[],
  options: FakeOllamaOptions = {},
  more: Partial<SessionOptions> = {},
): Promise<{ readonly fake: FakeOllama; readonly wire: OllamaWire } & AsyncDisposable> {
  const fake = await startFakeOllama({
    models: [QWEN],
    ...options,
    routes: {
      "/api/chat": (_body, response) => {
        response.writeHead(200, { "content-type": "application/x-ndjson" });
        response.end(lines.join(""));
      },
      ...options.routes,
    },
  });
  const wire = new OllamaWire({ baseUrl: fake.url, memory: null, ...more });
  return { fake, wire, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

async function all(wire: OllamaWire, change: Partial<WireRequest> = {}): Promise<readonly WireEvent[]> {
  const events: WireEvent[] = [];
  const { signal } = new AbortController();
  for await (const event of wire.send({ ...REQUEST, ...change }, signal)) events.push(event);
  return events;
}

async function failureOf(wire: OllamaWire, change: Partial<WireRequest> = {}): Promise<WireFailure> {
  try {
    await all(wire, change);
  } catch (thrown) {
    assert.ok(thrown instanceof WireFailure, String(thrown));
    return thrown;
  }
  throw new Error("it did not fail");
}

const bodies = (fake: FakeOllama): readonly unknown[] =>
  fake.requests.filter(({ path }) => path === "/api/chat").map(({ body }) => body);

const notes = (events: readonly WireEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "note" ? [event.text] : []));

test("a request's whole body follows the API", async () => {
  await using server = await serving([doneLine()]);
  await all(server.wire, {
    messages: [
      { role: "system", text: "Be brief." },
      { role: "user", text: "What is in a?" },
      {
        role: "assistant",
        text: "",
        thinking: "I look.",
        calls: [{ id: "call_1", name: "read_file", args: { path: "a" } }],
      },
      { role: "tool", call: "call_1", text: "A" },
      { role: "assistant", text: "An A.", calls: [] },
      { role: "user", text: "thanks" },
    ],
    maxTokens: 100,
    stop: ["END"],
    temperature: 0,
  });
  assert.deepEqual(bodies(server.fake), [
    {
      model: "qwen3:8b",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "What is in a?" },
        {
          role: "assistant",
          content: "",
          thinking: "I look.",
          tool_calls: [{ id: "call_1", function: { index: 0, name: "read_file", arguments: { path: "a" } } }],
        },
        { role: "tool", content: "A", tool_name: "read_file", tool_call_id: "call_1" },
        { role: "assistant", content: "An A." },
        { role: "user", content: "thanks" },
      ],
      tools: [
        {
          type: "function",
          function: { name: "read_file", description: "Reads a file.", parameters: { type: "object" } },
        },
      ],
      think: true,
      stream: true,
      keep_alive: "30m",
      truncate: false,
      shift: false,
      options: { num_ctx: 32_768, num_predict: 100, temperature: 0 },
    },
  ]);
});

test("thoughts, text and calls come in order, with usage and the end", async () => {
  await using server = await serving([
    chatLine({ thinking: "Hm." }),
    chatLine({ content: "I look at both." }),
    chatLine({
      calls: [
        { id: "call_a", name: "read_file", args: { path: "a" } },
        { id: "call_b", name: "read_file", args: { path: "b" } },
      ],
    }),
    chatLine({ calls: [{ id: "call_c", name: "read_file", args: {} }] }),
    doneLine(),
  ]);
  assert.deepEqual(await all(server.wire), [
    { type: "thinking", text: "Hm." },
    { type: "text", text: "I look at both." },
    { type: "call", index: 0, id: "call_a", name: "read_file", args: '{"path":"a"}' },
    { type: "call", index: 1, id: "call_b", name: "read_file", args: '{"path":"b"}' },
    { type: "call", index: 2, id: "call_c", name: "read_file", args: "{}" },
    { type: "usage", prompt: 11, completion: 18 },
    { type: "stop", stop: "calls" },
  ]);
});

test("the window is settled once from the user's wish, the trained length and the memory, and stays the same", async () => {
  const trained = { models: [{ ...QWEN, trained: 40_960 }] };
  for (const [more, tokens] of [
    [{}, 32_768],
    [{ wanted: () => 131_072 }, 40_960],
    [{ wanted: (model: string) => (model === "qwen3:8b" ? 8192 : null) }, 8192],
    [{ memory: 16 * 2 ** 30 }, 29_696],
  ] as const) {
    await using server = await serving([doneLine()], trained, more);
    await all(server.wire);
    await all(server.wire, { nativeTools: false });
    const asked = bodies(server.fake) as readonly { readonly options: object }[];
    assert.deepEqual(
      asked.map(({ options }) => options),
      [{ num_ctx: tokens }, { num_ctx: tokens }],
    );
    assert.equal(server.fake.requests.filter(({ path }) => path === "/api/show").length, 1);
  }
});

const THINK: readonly (readonly [string, readonly string[], boolean | undefined, unknown])[] = [
  ["qwen3:8b", ["completion", "thinking"], undefined, true],
  ["qwen3:8b", ["completion", "thinking"], false, false],
  ["gpt-oss:20b", ["completion", "thinking"], false, "low"],
  ["gpt-oss:20b", ["completion", "thinking"], true, true],
  ["llama3.2", ["completion", "tools"], true, undefined],
  ["llama3.2", ["completion", "tools"], false, undefined],
];

for (const [model, capabilities, wanted, sent] of THINK)
  test(`${model} with ${capabilities.join("+")}, asked to think: ${wanted}, is sent think: ${JSON.stringify(sent)}`, async () => {
    await using server = await serving([doneLine()], { models: [{ name: model, capabilities }] });
    const events = await all(server.wire, { model, ...(wanted === undefined ? {} : { think: wanted }) });
    const [body] = bodies(server.fake) as readonly { readonly think?: unknown }[];
    assert.deepEqual(body?.think, sent);
    assert.equal(notes(events).length, wanted === true && sent === undefined ? 1 : 0);
  });

test("a model that turns out not to think is asked again without thinking, and never again with it", async () => {
  await using server = await serving([], {
    routes: {
      "/api/chat": (body, response) => {
        if ((body as { think?: unknown }).think !== undefined)
          return sendJson(response, { error: '"qwen3:8b" does not support thinking' }, 400);
        response.end(doneLine());
      },
    },
  });
  await all(server.wire, { think: true });
  await all(server.wire, { think: true });
  const asked = bodies(server.fake) as readonly { readonly think?: unknown }[];
  assert.deepEqual(
    asked.map(({ think }) => think),
    [true, undefined, undefined],
  );
});

test("tools are not sent when they are not to be native", async () => {
  await using server = await serving([doneLine()]);
  await all(server.wire, { nativeTools: false });
  const [body] = bodies(server.fake) as readonly { readonly tools?: unknown }[];
  assert.equal(body?.tools, undefined);
});

const refusing = (words: string) => ({
  routes: {
    "/api/chat": (_body: unknown, response: ServerResponse) => sendJson(response, { error: words }, 500),
  },
});

test("a schema is sent beside the tools, with thinking; a refused schema is reported as such", async () => {
  await using server = await serving([doneLine()]);
  const held = { anyOf: [{ type: "object" }] };
  await all(server.wire);
  await all(server.wire, { replySchema: held });
  const [without, body] = bodies(server.fake) as readonly { readonly format?: unknown }[];
  assert.deepEqual(body, { ...without, format: held });
  await using poor = await serving([], refusing("failed to load model vocabulary required for format"));
  assert.equal((await failureOf(poor.wire, { replySchema: held })).refusesHold, true);
  assert.equal((await failureOf(poor.wire)).refusesHold, false);
  await using gone = await serving([], refusing("llama runner has died"));
  assert.equal((await failureOf(gone.wire, { replySchema: held })).refusesHold, false);
});

test("a reply format is requested only without tools, and a note says so otherwise", async () => {
  await using server = await serving([doneLine()]);
  const format = { type: "object" };
  const without = await all(server.wire, { format, tools: [] });
  const beside = await all(server.wire, { format });
  const asked = bodies(server.fake) as readonly { readonly format?: unknown }[];
  assert.deepEqual(
    asked.map((body) => body.format),
    [format, undefined],
  );
  assert.deepEqual([notes(without).length, notes(beside).length], [0, 1]);
});

const COUNTS: readonly (readonly [string, number, string, readonly WireEvent[]])[] = [
  ["a count within the window is passed on", 3900, "0.12.6", [{ type: "usage", prompt: 3900 }]],
  [
    "a full window is reported",
    32_768,
    "0.12.6",
    [
      { type: "usage", prompt: 32_768 },
      { type: "note", text: "the prompt may have been cut: it fills the window of 32768 tokens" },
    ],
  ],
  ["a count is ignored from a version that leaves out cached tokens", 180, "0.30.0", [{ type: "usage" }]],
];

for (const [sentence, prompt_eval_count, version, events] of COUNTS)
  test(sentence, async () => {
    await using server = await serving([doneLine({ prompt_eval_count, eval_count: undefined })], { version });
    assert.deepEqual((await all(server.wire)).slice(0, -1), events);
  });

const STOPS: readonly (readonly [unknown, string])[] = [
  ["stop", "end"],
  ["length", "length"],
  [undefined, "unknown"],
  ["something", "unknown"],
];

for (const [reason, stop] of STOPS)
  test(`done_reason ${String(reason)} means the stop ${stop}`, async () => {
    await using server = await serving([chatLine({ content: "a" }), doneLine({ done_reason: reason })]);
    assert.deepEqual((await all(server.wire)).at(-1), { type: "stop", stop });
  });

for (const reason of ["load", "unload"])
  test(`a server that only did ${reason} the model has not answered`, async () => {
    await using server = await serving([doneLine({ done_reason: reason })]);
    const { kind, passing } = await failureOf(server.wire);
    assert.deepEqual([kind, passing], ["server", true]);
  });

const BROKEN: readonly (readonly [string, readonly string[], string, boolean])[] = [
  ["an end without done", [chatLine({ content: "a" })], "garbled", true],
  ["no line at all", [], "garbled", true],
  ["a web page", ["<html>\n"], "garbled", true],
  ["JSON of another kind", ['{"message":"hello"}\n'], "garbled", true],
  ["an error line", [chatLine({ content: "a" }), errorLine("the runner is gone")], "server", true],
  ["an error line about memory", [errorLine("CUDA error: out of memory")], "out_of_memory", false],
];

for (const [what, lines, kind, passing] of BROKEN)
  test(`${what} is ${kind}`, async () => {
    await using server = await serving(lines);
    const failure = await failureOf(server.wire);
    assert.deepEqual([failure.kind, failure.passing, failure.raw], [kind, passing, null]);
  });

test("an empty error is ignored, and unknown fields do no harm", async () => {
  await using server = await serving(['{"error":null,"message":{"content":"a","x":1},"y":[]}\n', doneLine()]);
  assert.deepEqual((await all(server.wire))[0], { type: "text", text: "a" });
});

test("a call may come without arguments", async () => {
  for (const called of [{ name: "read_file" }, { name: "read_file", arguments: null }]) {
    const line = { message: { role: "assistant", content: "", tool_calls: [{ function: called }] } };
    await using server = await serving([`${JSON.stringify(line)}\n`, doneLine()]);
    const events = await all(server.wire);
    assert.deepEqual(
      events.filter(({ type }) => type === "call"),
      [{ type: "call", index: 0, name: "read_file", args: "{}" }],
    );
  }
});
