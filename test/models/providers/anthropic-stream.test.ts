import assert from "node:assert/strict";
import test from "node:test";
import { MessageReader } from "../../../src/models/providers/anthropic-stream.ts";
import type { WireEvent } from "../../../src/models/model-api.ts";

const begin = (index: number, content_block: unknown): unknown => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (index: number, change: unknown): unknown => ({
  type: "content_block_delta",
  index,
  delta: change,
});
const stop = (index: number): unknown => ({ type: "content_block_stop", index });
const json = (index: number, partial_json: string): unknown =>
  delta(index, { type: "input_json_delta", partial_json });
const tool = (id: string, input: unknown = {}): unknown => ({ type: "tool_use", id, name: "look", input });
const end = (stop_reason: string, usage?: unknown): unknown => ({
  type: "message_delta",
  delta: { stop_reason },
  usage,
});

const STREAMS: readonly (readonly [string, readonly unknown[], readonly WireEvent[]])[] = [
  [
    "text in blocks",
    [
      begin(0, { type: "text", text: "" }),
      delta(0, { type: "text_delta", text: "Hel" }),
      delta(0, { type: "text_delta", text: "lo" }),
      stop(0),
      end("end_turn"),
      { type: "message_stop" },
    ],
    [
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "stop", stop: "end" },
    ],
  ],
  [
    "calls after text are counted from 0",
    [
      begin(0, { type: "text", text: "" }),
      stop(0),
      begin(1, tool("a")),
      json(1, ""),
      json(1, '{"p":'),
      json(1, "1}"),
      stop(1),
      begin(2, tool("b")),
      json(2, "{}"),
      stop(2),
      end("tool_use"),
    ],
    [
      { type: "call", index: 0, id: "a", name: "look" },
      { type: "call", index: 0, args: '{"p":' },
      { type: "call", index: 0, args: "1}" },
      { type: "call", index: 1, id: "b", name: "look" },
      { type: "call", index: 1, args: "{}" },
      { type: "stop", stop: "calls" },
    ],
  ],
  [
    "a call without arguments, and one that has them at its start",
    [begin(0, tool("a")), stop(0), begin(1, tool("b", { p: 1 })), stop(1)],
    [
      { type: "call", index: 0, id: "a", name: "look" },
      { type: "call", index: 0, args: "{}" },
      { type: "call", index: 1, id: "b", name: "look" },
      { type: "call", index: 1, args: '{"p":1}' },
    ],
  ],
  [
    "counts: the cache is a part of the prompt, the first output is a guess",
    [
      {
        type: "message_start",
        message: {
          usage: {
            input_tokens: 10,
            cache_creation_input_tokens: 20,
            cache_read_input_tokens: 300,
            output_tokens: 4,
          },
        },
      },
      { type: "ping" },
      end("max_tokens", { output_tokens: 50 }),
    ],
    [
      { type: "usage", prompt: 330, cached: 300 },
      { type: "usage", completion: 50 },
      { type: "stop", stop: "length" },
    ],
  ],
  [
    "a whole message",
    [
      {
        type: "message",
        content: [{ type: "text", text: "Hi" }, tool("a", { p: 1 })],
        stop_reason: "tool_use",
        usage: { input_tokens: 3, output_tokens: 2 },
      },
    ],
    [
      { type: "usage", prompt: 3, completion: 2 },
      { type: "text", text: "Hi" },
      { type: "call", index: 0, id: "a", name: "look" },
      { type: "call", index: 0, args: '{"p":1}' },
      { type: "stop", stop: "calls" },
    ],
  ],
  [
    "events of other kinds",
    [7, null, { type: "news" }, begin(0, null), delta(3, 7), json(9, "{}"), stop(4), end(7 as never)],
    [],
  ],
];

for (const [sentence, values, events] of STREAMS)
  test(`a message stream: ${sentence}`, () => {
    const reader = new MessageReader();
    assert.deepEqual(
      values.flatMap((value) => reader.read(value)),
      events,
    );
  });

test("the reasons why a reply ends are translated", () => {
  const words = [
    "end_turn",
    "stop_sequence",
    "tool_use",
    "max_tokens",
    "model_context_window_exceeded",
    "refusal",
    "pause_turn",
    "news",
  ];
  assert.deepEqual(
    words.flatMap((word) => new MessageReader().read(end(word))),
    ["end", "end", "calls", "length", "length", "filtered", "unknown", "unknown"].map((stop) => ({
      type: "stop",
      stop,
    })),
  );
});

test("a reply is kept block by block, except for unsigned thoughts", () => {
  const reader = new MessageReader();
  const events = [
    begin(0, { type: "thinking", thinking: "", signature: "" }),
    delta(0, { type: "thinking_delta", thinking: "Hm. " }),
    delta(0, { type: "thinking_delta", thinking: "So." }),
    delta(0, { type: "signature_delta", signature: "c2ln" }),
    stop(0),
    begin(1, { type: "redacted_thinking", data: "ZGF0YQ==" }),
    stop(1),
    begin(2, { type: "thinking", thinking: "cut", signature: "" }),
    begin(3, { type: "text", text: "Hi" }),
    begin(4, tool("a")),
    json(4, '{"p":1}'),
    stop(4),
  ].flatMap((value) => reader.read(value));
  assert.deepEqual(
    events.filter(({ type }) => type === "thinking"),
    ["Hm. ", "So.", "cut"].map((text) => ({ type: "thinking", text })),
  );
  assert.deepEqual(reader.content, [
    { type: "thinking", thinking: "Hm. So.", signature: "c2ln" },
    { type: "redacted_thinking", data: "ZGF0YQ==" },
    { type: "text", text: "Hi" },
    { type: "tool_use", id: "a", name: "look", input: { p: 1 } },
  ]);
});

test("a reply with an incomplete call is not kept", () => {
  const reader = new MessageReader();
  for (const value of [begin(0, tool("a")), json(0, '{"p":')]) reader.read(value);
  assert.equal(reader.content, undefined);
});
