import assert from "node:assert/strict";
import test from "node:test";
import { ChatReader } from "../../../src/models/providers/openai-api.ts";
import type { WireEvent } from "../../../src/models/model-api.ts";

const delta = (value: unknown, finish: string | null = null): unknown => ({
  choices: [{ index: 0, delta: value, finish_reason: finish }],
});
const call = (...parts: readonly unknown[]): unknown => delta({ tool_calls: parts });
const part = (
  index: number | undefined,
  id: string | undefined,
  name: string | undefined,
  args: unknown,
) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  type: "function",
  function: { ...(name === undefined ? {} : { name }), arguments: args },
});
const made = (index: number, rest: object): WireEvent => ({ type: "call", index, ...rest });

const STREAMS: readonly (readonly [string, readonly unknown[], readonly WireEvent[]])[] = [
  [
    "text",
    [delta({ role: "assistant", content: "" }), delta({ content: "Hel" }), delta({ content: "lo" }, "stop")],
    [
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "stop", stop: "end" },
    ],
  ],
  [
    "thinking, as llama.cpp names it",
    [delta({ reasoning_content: "Hm" })],
    [{ type: "thinking", text: "Hm" }],
  ],
  [
    "thinking, as Ollama and routers name it",
    [delta({ reasoning: "Hm" })],
    [{ type: "thinking", text: "Hm" }],
  ],
  [
    "thinking under both names is read once",
    [delta({ reasoning: "Hm", reasoning_content: "Hm" })],
    [{ type: "thinking", text: "Hm" }],
  ],
  [
    "Mistral's parts",
    [
      delta({
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "Hm" }] },
          { type: "text", text: "Hi" },
        ],
      }),
    ],
    [
      { type: "thinking", text: "Hm" },
      { type: "text", text: "Hi" },
    ],
  ],
  [
    "a call in pieces",
    [
      call(part(0, "a", "read", "")),
      call({ index: 0, function: { arguments: '{"pa' } }),
      call({ index: 0, function: { arguments: 'th":1}' } }),
    ],
    [made(0, { id: "a", name: "read" }), made(0, { args: '{"pa' }), made(0, { args: 'th":1}' })],
  ],
  [
    "two calls, mixed",
    [
      call(part(0, "a", "read", "{")),
      call(part(1, "b", "list", "{")),
      call({ index: 0, function: { arguments: "}" } }),
      call({ index: 1, function: { arguments: "}" } }),
    ],
    [
      made(0, { id: "a", name: "read", args: "{" }),
      made(1, { id: "b", name: "list", args: "{" }),
      made(0, { args: "}" }),
      made(1, { args: "}" }),
    ],
  ],
  [
    "whole calls without an index",
    [call(part(undefined, "a", "read", "{}"), part(undefined, "b", "list", "{}"))],
    [made(0, { id: "a", name: "read", args: "{}" }), made(1, { id: "b", name: "list", args: "{}" })],
  ],
  [
    "whole calls with neither index nor id",
    [call(part(undefined, undefined, "read", "{}")), call(part(undefined, undefined, "read", "{}"))],
    [made(0, { name: "read", args: "{}" }), made(1, { name: "read", args: "{}" })],
  ],
  [
    "pieces without an index belong to the last call",
    [call(part(undefined, "a", "read", "{")), call({ function: { arguments: "}" } })],
    [made(0, { id: "a", name: "read", args: "{" }), made(0, { args: "}" })],
  ],
  [
    "every call has the index 0",
    [call(part(0, "a", "read", "{}")), call(part(0, "b", "list", "{}"))],
    [made(0, { id: "a", name: "read", args: "{}" }), made(1, { id: "b", name: "list", args: "{}" })],
  ],
  [
    "a new id with every piece",
    [call(part(0, "a", "read", "{")), call(part(0, "b", undefined, "}"))],
    [made(0, { id: "a", name: "read", args: "{" }), made(0, { args: "}" })],
  ],
  [
    "id and name with every piece",
    [call(part(0, "a", "read", "{")), call(part(0, "a", "read", "}"))],
    [made(0, { id: "a", name: "read", args: "{" }), made(0, { args: "}" })],
  ],
  [
    "arguments as an object",
    [call(part(0, "a", "read", { path: "x" }))],
    [made(0, { id: "a", name: "read", args: '{"path":"x"}' })],
  ],
  ["a call without arguments", [call(part(0, "a", "read", null))], [made(0, { id: "a", name: "read" })]],
  [
    "a call that is not a list",
    [delta({ tool_calls: part(0, "a", "read", "{}") })],
    [made(0, { id: "a", name: "read", args: "{}" })],
  ],
  [
    "the old form of calls",
    [
      delta({ function_call: { name: "read", arguments: "{" } }),
      delta({ function_call: { arguments: "}" } }, "function_call"),
    ],
    [made(0, { name: "read", args: "{" }), made(0, { args: "}" }), { type: "stop", stop: "calls" }],
  ],
  [
    "a whole completion",
    [
      {
        choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 3, completion_tokens: 1 },
      },
    ],
    [
      { type: "text", text: "Hi" },
      { type: "stop", stop: "end" },
      { type: "usage", prompt: 3, completion: 1 },
    ],
  ],
  [
    "counts, with cached tokens",
    [
      {
        choices: [],
        usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } },
      },
    ],
    [{ type: "usage", prompt: 9, completion: 2, cached: 4 }],
  ],
  [
    "DeepSeek's count of cached tokens",
    [{ choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, prompt_cache_hit_tokens: 0 } }],
    [{ type: "usage", prompt: 9, completion: 2, cached: 0 }],
  ],
  [
    "no counts",
    [
      { choices: [], usage: null },
      { choices: [], usage: {} },
    ],
    [],
  ],
  ["another choice", [{ choices: [{ index: 1, delta: { content: "no" } }] }], []],
  [
    "a refusal",
    [delta({ refusal: "I will not." }, "content_filter")],
    [
      { type: "text", text: "I will not." },
      { type: "stop", stop: "filtered" },
    ],
  ],
  [
    "chunks of other kinds",
    [7, null, [], { choices: 5 }, delta(7), delta({ content: 5, tool_calls: [7] })],
    [],
  ],
];

for (const [sentence, chunks, events] of STREAMS)
  test(`a chat stream: ${sentence}`, () => {
    const reader = new ChatReader();
    assert.deepEqual(
      chunks.flatMap((chunk) => reader.read(chunk)),
      events,
    );
  });

test("the reason why a reply ends is translated, and given once", () => {
  const words = ["stop", "length", "tool_calls", "function_call", "content_filter", "eos_token", "abort"];
  assert.deepEqual(
    words.flatMap((word) => new ChatReader().read(delta({}, word))),
    ["end", "length", "calls", "calls", "filtered", "end", "unknown"].map((stop) => ({ type: "stop", stop })),
  );
  const reader = new ChatReader();
  reader.read(delta({}, "tool_calls"));
  assert.deepEqual(reader.read(delta({}, "stop")), []);
});
