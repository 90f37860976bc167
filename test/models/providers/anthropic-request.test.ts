import assert from "node:assert/strict";
import test from "node:test";
import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import type { Message } from "../../../src/core/model-provider.ts";
import { messagesBody } from "../../../src/models/providers/anthropic-api.ts";
import type { WireRequest } from "../../../src/models/model-api.ts";

/** Bodies are written in the types of the official client, so that only what it would send is accepted. */

const SCHEMA = { type: "object" as const, properties: { path: { type: "string" } } };
const TALK: readonly Message[] = [
  { role: "system", text: "Be brief." },
  { role: "user", text: "What is in src?" },
  {
    role: "assistant",
    text: "I look.\n",
    thinking: "Hm.",
    calls: [
      { id: "toolu_1", name: "list_dir", args: { path: "src" } },
      { id: "functions.list_dir:1", name: "list_dir", args: {} },
    ],
  },
  { role: "tool", call: "toolu_1", text: "a.ts" },
  { role: "tool", call: "functions.list_dir:1", text: "" },
  { role: "user", text: "And now?" },
];
const THOUGHT = { type: "thinking", thinking: "Hm.", signature: "c2ln" } as const;
const CACHE = { cache_control: { type: "ephemeral" } } as const;

const request = (change: Partial<WireRequest> = {}): WireRequest => ({
  model: "claude-sonnet-4-5",
  messages: TALK,
  tools: [
    { name: "list_dir", description: "Lists a folder.", schema: SCHEMA },
    { name: "read_file", description: "Reads a file.", schema: SCHEMA },
  ],
  nativeTools: true,
  connectMs: 1000,
  ...change,
});

const body = (change: Partial<WireRequest> = {}, reply?: readonly Record<string, unknown>[]): unknown =>
  messagesBody(request(change), () => reply);

test("a request's whole body follows the API", () => {
  const id = "call_fd6a3b8d7c6e4b6ba3ab4c4f";
  const whole: MessageCreateParamsStreaming = {
    model: "claude-sonnet-4-5",
    max_tokens: 32_000,
    stream: true,
    system: [{ type: "text", text: "Be brief.", ...CACHE }],
    tools: [
      { name: "list_dir", description: "Lists a folder.", input_schema: SCHEMA },
      { name: "read_file", description: "Reads a file.", input_schema: SCHEMA, ...CACHE },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "What is in src?", ...CACHE }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I look.\n" },
          { type: "tool_use", id: "toolu_1", name: "list_dir", input: { path: "src" } },
          { type: "tool_use", id, name: "list_dir", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "a.ts" },
          { type: "tool_result", tool_use_id: id },
          { type: "text", text: "And now?", ...CACHE },
        ],
      },
    ],
  };
  const made = JSON.stringify(body());
  const own = /call_[0-9a-f]{24}/.exec(made)?.[0] ?? "";
  assert.deepEqual(JSON.parse(made.replaceAll(own, id)), whole);
});

test("at most four breakpoints are set, after tools, system and the user's last two turns", () => {
  const long = [
    ...TALK,
    { role: "assistant" as const, text: "One.", calls: [] },
    { role: "user" as const, text: "Go." },
  ];
  assert.equal(JSON.stringify(body({ messages: long })).split("cache_control").length - 1, 4);
});

test("limit, temperature and schema are sent as requested", () => {
  const { messages, ...rest } = body({
    messages: [{ role: "user", text: "Hi" }],
    tools: [],
    maxTokens: 100,
    stop: ["END"],
    temperature: 0.5,
    format: SCHEMA,
  }) as MessageCreateParamsStreaming;
  assert.deepEqual(rest, {
    model: "claude-sonnet-4-5",
    max_tokens: 100,
    stop_sequences: ["END"],
    stream: true,
    temperature: 0.5,
    output_config: { format: { type: "json_schema", schema: SCHEMA } },
  } satisfies Omit<MessageCreateParamsStreaming, "messages"> & { readonly temperature: number });
  assert.deepEqual(messages, [{ role: "user", content: [{ type: "text", text: "Hi", ...CACHE }] }]);
});

const ASK: readonly Message[] = [{ role: "user", text: "Hi" }];
const THINKING: readonly (readonly [string, Partial<WireRequest>, unknown])[] = [
  ["left out", {}, undefined],
  ["off", { think: false }, { type: "disabled" }],
  ["on, with a budget", { think: true }, { type: "enabled", budget_tokens: 16_000 }],
  ["on, with a small budget", { think: true, maxTokens: 4000 }, { type: "enabled", budget_tokens: 2000 }],
  ["on, without room", { think: true, maxTokens: 1000 }, undefined],
  [
    "on, for a model that chooses",
    { think: true, model: "claude-opus-4-7" },
    { type: "adaptive", display: "summarized" },
  ],
];

for (const [sentence, change, thinking] of THINKING)
  test(`thinking is ${sentence}`, () => {
    const made = body({ messages: ASK, temperature: 1, ...change }) as MessageCreateParamsStreaming;
    assert.deepEqual(made.thinking, thinking);
    const thinks = thinking !== undefined && change.think === true;
    assert.equal("temperature" in made, !thinks);
  });

test("a known reply is sent back unchanged; after an unknown one, thinking with a budget is off in the middle of calls", () => {
  const midst = TALK.slice(0, 5);
  const reply = [THOUGHT, { type: "tool_use", id: "toolu_1", name: "list_dir", input: {} }];
  const known = body({ messages: midst, think: true }, reply) as MessageCreateParamsStreaming;
  assert.deepEqual(known.messages[1]?.content, reply);
  assert.deepEqual(known.thinking, { type: "enabled", budget_tokens: 16_000 });
  assert.equal((body({ messages: midst, think: true }) as MessageCreateParamsStreaming).thinking, undefined);
});

test("a conversation that begins with the model gets a user turn before it", () => {
  const { messages } = body({
    messages: [{ role: "assistant", text: "Hello.", calls: [] }],
  }) as MessageCreateParamsStreaming;
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant"],
  );
});
