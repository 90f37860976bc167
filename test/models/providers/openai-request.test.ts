import assert from "node:assert/strict";
import test from "node:test";
import type { Message } from "../../../src/core/model-provider.ts";
import { chatBody, type Dialect, dialectOf } from "../../../src/models/providers/openai-api.ts";
import type { WireRequest } from "../../../src/models/model-api.ts";

const SCHEMA = { type: "object", properties: { path: { type: "string" } } };
const TALK: readonly Message[] = [
  { role: "system", text: "Be brief." },
  { role: "user", text: "What is in src?" },
  {
    role: "assistant",
    text: "",
    thinking: "I look.",
    calls: [
      { id: "call_1", name: "list_dir", args: { path: "src" } },
      { id: "call_2", name: "list_dir", args: {} },
    ],
  },
  { role: "tool", call: "call_1", text: "a.ts" },
  { role: "tool", call: "call_2", text: "" },
  { role: "assistant", text: "One file.", calls: [] },
  { role: "user", text: "Thanks." },
];

const request = (change: Partial<WireRequest> = {}): WireRequest => ({
  model: "qwen3",
  messages: TALK,
  tools: [{ name: "list_dir", description: "Lists a folder.", schema: SCHEMA }],
  nativeTools: true,
  connectMs: 1000,
  ...change,
});

const TOOLS = [
  { type: "function", function: { name: "list_dir", description: "Lists a folder.", parameters: SCHEMA } },
];

const called = (id: string, args: string): object => ({
  id,
  type: "function",
  function: { name: "list_dir", arguments: args },
});

test("the whole body of a request to a local server follows the API", () => {
  const whole = request({ maxTokens: 500, stop: ["END"], temperature: 0, think: false, format: SCHEMA });
  assert.deepEqual(chatBody(whole, "local"), {
    model: "qwen3",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is in src?" },
      {
        role: "assistant",
        content: "",
        reasoning_content: "I look.",
        tool_calls: [called("call_1", '{"path":"src"}'), called("call_2", "{}")],
      },
      { role: "tool", tool_call_id: "call_1", content: "a.ts" },
      { role: "tool", tool_call_id: "call_2", content: "" },
      { role: "assistant", content: "One file." },
      { role: "user", content: "Thanks." },
    ],
    tools: TOOLS,
    parallel_tool_calls: true,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 500,
    stop: ["END"],
    temperature: 0,
    chat_template_kwargs: { enable_thinking: false },
    response_format: { type: "json_schema", json_schema: { name: "answer", schema: SCHEMA } },
  });
});

const form = (strict: boolean, schema: object): object => ({
  type: "json_schema",
  json_schema: { name: "call_or_answer", strict, schema },
});

test("a schema is sent beside the tools, in each server's form", () => {
  const held = { anyOf: [SCHEMA] };
  const formOf = (dialect: Dialect): unknown => {
    const { response_format, ...rest } = chatBody(request({ replySchema: held }), dialect);
    assert.deepEqual(rest, chatBody(request(), dialect));
    return response_format;
  };
  assert.deepEqual(formOf("local"), form(true, held));
  assert.deepEqual(formOf("openrouter"), form(true, held));
  assert.deepEqual(
    formOf("openai"),
    form(false, {
      type: "object",
      properties: { reply: held },
      required: ["reply"],
      additionalProperties: false,
    }),
  );
});

test("nothing is sent that was not requested", () => {
  const bare = request({ messages: [{ role: "user", text: "Hi" }], tools: [] });
  assert.deepEqual(chatBody(bare, "local"), {
    model: "qwen3",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("tools are not sent to a server that refused them", () => {
  assert.equal("tools" in chatBody(request({ nativeTools: false }), "local"), false);
});

const WORDS: readonly (readonly [Dialect, object])[] = [
  ["openai", { max_completion_tokens: 9, reasoning_effort: "medium" }],
  ["openrouter", { max_tokens: 9, reasoning: { enabled: true } }],
  ["local", { max_tokens: 9, chat_template_kwargs: { enable_thinking: true } }],
];

for (const [dialect, said] of WORDS)
  test(`limits and thinking are sent in the form of ${dialect}`, () => {
    const body = chatBody(
      request({ messages: [{ role: "user", text: "Hi" }], tools: [], maxTokens: 9, think: true }),
      dialect,
    );
    assert.deepEqual(body, {
      model: "qwen3",
      messages: [{ role: "user", content: "Hi" }],
      stream: true,
      stream_options: { include_usage: true },
      ...said,
    });
  });

test("OpenAI's own models are sent no thoughts", () => {
  assert.doesNotMatch(JSON.stringify(chatBody(request(), "openai")), /reasoning_content/);
});

const marked = (text: string): object => [{ type: "text", text, cache_control: { type: "ephemeral" } }];

test("Claude behind a router gets breakpoints after the stable parts: system, and the user's last two turns", () => {
  const body = chatBody(request({ model: "anthropic/claude-sonnet-4.5" }), "openrouter");
  assert.deepEqual(body["messages"], [
    { role: "system", content: marked("Be brief.") },
    { role: "user", content: "What is in src?" },
    {
      role: "assistant",
      content: null,
      tool_calls: [called("call_1", '{"path":"src"}'), called("call_2", "{}")],
    },
    { role: "tool", tool_call_id: "call_1", content: "a.ts" },
    { role: "tool", tool_call_id: "call_2", content: "" },
    { role: "assistant", content: "One file." },
    { role: "user", content: marked("Thanks.") },
  ]);
});

const ids = (model: string): readonly string[] =>
  [...JSON.stringify(chatBody(request({ model }), "local")).matchAll(/"(?:tool_call_)?id":"([^"]+)"/g)].map(
    ([, id]) => id ?? "",
  );

test("Mistral's models get ids of nine letters and digits, the same every time", () => {
  const made = ids("mistral-small");
  assert.equal(made.length, 4);
  assert.equal(new Set(made).size, 2);
  for (const id of made) assert.match(id, /^[a-zA-Z0-9]{9}$/);
  assert.deepEqual(ids("mistral-small"), made);
  assert.deepEqual([...new Set(ids("qwen3"))], ["call_1", "call_2"]);
});

const bytes = (count: number): string =>
  JSON.stringify(chatBody(request({ messages: TALK.slice(0, count) }), "local")["messages"]);

test("a longer conversation begins with the bytes of the shorter one", () => {
  const [shorter, longer] = [bytes(5), bytes(7)];
  assert.ok(longer.startsWith(shorter.slice(0, -1)));
});

test("the dialect is recognised by the host", () => {
  assert.deepEqual(
    [
      "https://api.openai.com/v1",
      "https://x.openai.azure.com/openai/v1",
      "https://openrouter.ai/api/v1",
      "http://127.0.0.1:1234/v1",
      "https://notopenrouter.ai/v1",
      "nonsense",
    ].map(dialectOf),
    ["openai", "openai", "openrouter", "local", "local", "local"],
  );
});
