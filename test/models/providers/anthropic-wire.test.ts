import assert from "node:assert/strict";
import test from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import type { Message } from "../../../src/core/model-provider.ts";
import { AnthropicWire } from "../../../src/models/providers/anthropic-api.ts";
import { WireFailure, type WireEvent, type WireRequest } from "../../../src/models/model-api.ts";
import {
  block,
  end,
  event,
  messages,
  refusedMessages,
  start,
  textBlock,
} from "../../fakes/anthropic-server.ts";
import { EVENTS, type Served, startLoopback } from "../../fakes/loopback.ts";

const REQUEST: WireRequest = {
  model: "claude-sonnet-4-5",
  messages: [{ role: "user", text: "Hi" }],
  tools: [],
  nativeTools: true,
  connectMs: 1000,
};
const USED = {
  input_tokens: 3,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 2,
  output_tokens: 1,
};
const GOOD = messages(
  start(USED),
  event({ type: "ping" }),
  ...textBlock(0, "Hel", "lo"),
  ...end("end_turn", { output_tokens: 7 }),
);
const GOOD_EVENTS: readonly WireEvent[] = [
  { type: "usage", prompt: 5, cached: 2 },
  { type: "text", text: "Hel" },
  { type: "text", text: "lo" },
  { type: "usage", completion: 7 },
  { type: "stop", stop: "end" },
];

async function eventsOf(
  wire: AnthropicWire,
  change: Partial<WireRequest> = {},
): Promise<readonly WireEvent[]> {
  const events: WireEvent[] = [];
  for await (const each of wire.send({ ...REQUEST, ...change }, new AbortController().signal))
    events.push(each);
  return events;
}

const bodyOf = ({ text }: { readonly text: string }) => JSON.parse(text) as Record<string, unknown>;

test("a usual reply is read, and requested as the API requires", async () => {
  await using server = await startLoopback([GOOD]);
  for (const baseUrl of [server.url, `${server.url}/`, `${server.url}/v1`])
    assert.deepEqual(await eventsOf(new AnthropicWire({ baseUrl, key: "sk-ant-1" })), GOOD_EVENTS);
  for (const { method, path, headers } of server.heard)
    assert.deepEqual(
      [method, path, headers["x-api-key"], headers["anthropic-version"], headers.authorization],
      ["POST", "/v1/messages", "sk-ant-1", "2023-06-01", undefined],
    );
});

test("the official client reads the loopback server as this adapter does", async () => {
  const call = block(
    1,
    { type: "tool_use", id: "toolu_1", name: "look", input: {} },
    { type: "input_json_delta", partial_json: '{"p":' },
    { type: "input_json_delta", partial_json: "1}" },
  );
  const served = messages(
    start(USED),
    ...textBlock(0, "Hello"),
    ...call,
    ...end("tool_use", { output_tokens: 7 }),
  );
  await using server = await startLoopback([served]);
  const client = new Anthropic({ baseURL: server.url, apiKey: "sk-ant-1", maxRetries: 0, logLevel: "off" });
  const whole = await client.messages
    .stream({ model: "claude-sonnet-4-5", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] })
    .finalMessage();
  const events = await eventsOf(new AnthropicWire({ baseUrl: server.url, key: "sk-ant-1" }));
  const args = events.map((each) => (each.type === "call" ? (each.args ?? "") : "")).join("");
  assert.deepEqual(
    whole.content.map((part) =>
      part.type === "text" ? part.text : part.type === "tool_use" ? part.input : null,
    ),
    [events.map((each) => (each.type === "text" ? each.text : "")).join(""), JSON.parse(args)],
  );
  assert.deepEqual([whole.stop_reason, whole.usage.output_tokens], ["tool_use", 7]);
  const [theirs, ours] = server.heard.map(({ method, path, headers }) => [
    method,
    path,
    headers["content-type"],
  ]);
  assert.deepEqual(ours, theirs);
});

const FAILURES: readonly (readonly [string, Served, string, boolean, RegExp])[] = [
  [
    "a busy server",
    refusedMessages(529, "overloaded_error", "Overloaded"),
    "server",
    true,
    /HTTP 529: Overloaded/,
  ],
  [
    "a server that becomes busy during the reply",
    messages(
      start(USED),
      ...textBlock(0, "Hel"),
      event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } } as {
        type: string;
      }),
    ),
    "server",
    true,
    /Overloaded/,
  ],
  [
    "JSON of another service",
    { headers: { "content-type": "application/json" }, body: '{"hello":1}' },
    "unreachable",
    false,
    /not a model server: it answers with unexpected JSON/,
  ],
  [
    "a stream that was cut",
    { headers: EVENTS, body: [start(USED), ...textBlock(0, "Hel")], ends: "cut" },
    "garbled",
    true,
    /broke off/,
  ],
  [
    "a stream that ends too early",
    messages(start(USED), ...textBlock(0, "Hel")),
    "garbled",
    true,
    /broke off/,
  ],
  [
    "a wrong key",
    refusedMessages(401, "authentication_error", "invalid x-api-key"),
    "unauthorised",
    false,
    /invalid x-api-key/,
  ],
  [
    "a web page",
    { headers: { "content-type": "text/html" }, body: "<html></html>" },
    "unreachable",
    false,
    /not a model server/,
  ],
];

for (const [sentence, served, kind, passing, says] of FAILURES)
  test(`it fails on ${sentence}`, async () => {
    await using server = await startLoopback([served]);
    await assert.rejects(
      eventsOf(new AnthropicWire({ baseUrl: server.url, key: "sk" })),
      (thrown: unknown) => {
        assert.ok(thrown instanceof WireFailure);
        assert.deepEqual([thrown.kind, thrown.passing], [kind, passing]);
        assert.match(thrown.message, says);
        return true;
      },
    );
  });

const LESS: readonly (readonly [string, string, Partial<WireRequest>, object])[] = [
  [
    "a limit above the model's maximum",
    "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens",
    {},
    { max_tokens: 8192 },
  ],
  [
    "a budget for thinking",
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"',
    { think: true },
    { thinking: { type: "adaptive", display: "summarized" } },
  ],
  ["thinking", "This model does not support thinking", { think: false }, { thinking: undefined }],
  ["a temperature", "temperature: deprecated for this model", { temperature: 0 }, { temperature: undefined }],
  [
    "breakpoints",
    "messages.0.content.0.cache_control: Extra inputs are not permitted",
    {},
    { messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }] },
  ],
];

for (const [sentence, message, change, changed] of LESS)
  test(`a server that refuses ${sentence} gets a reduced request from then on`, async () => {
    await using server = await startLoopback([refusedMessages(400, "invalid_request_error", message), GOOD]);
    const wire = new AnthropicWire({ baseUrl: server.url, key: "sk" });
    await eventsOf(wire, change);
    await eventsOf(wire, change);
    assert.equal(server.heard.length, 3);
    const [first, ...others] = server.heard.map(bodyOf);
    const wanted = JSON.parse(JSON.stringify({ ...first, ...changed })) as unknown;
    assert.deepEqual(others, [wanted, wanted]);
  });

const MISMATCH =
  "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";

test("a reply is sent back unchanged, with its thoughts, until the server says that they no longer fit", async () => {
  const thought = block(
    0,
    { type: "thinking", thinking: "", signature: "" },
    { type: "thinking_delta", thinking: "Hm." },
    { type: "signature_delta", signature: "c2ln" },
  );
  const call = block(1, { type: "tool_use", id: "toolu_1", name: "look", input: {} });
  await using server = await startLoopback([
    messages(start(USED), ...thought, ...call, ...end("tool_use")),
    GOOD,
    refusedMessages(400, "invalid_request_error", MISMATCH),
    GOOD,
  ]);
  const wire = new AnthropicWire({ baseUrl: server.url, key: "sk" });
  await eventsOf(wire, { think: true });
  const talk: readonly Message[] = [
    ...REQUEST.messages,
    { role: "assistant", text: "", thinking: "Hm.", calls: [{ id: "toolu_1", name: "look", args: {} }] },
    { role: "tool", call: "toolu_1", text: "done" },
  ];
  await eventsOf(wire, { think: true, messages: talk });
  const second = bodyOf(server.heard[1] ?? { text: "{}" });
  const [, assistant] = second["messages"] as readonly { content: readonly unknown[] }[];
  assert.deepEqual(assistant?.content, [
    { type: "thinking", thinking: "Hm.", signature: "c2ln" },
    { type: "tool_use", id: "toolu_1", name: "look", input: {} },
  ]);
  assert.deepEqual(second["thinking"], { type: "enabled", budget_tokens: 16_000 });
  await eventsOf(wire, { think: true, messages: talk });
  const fourth = JSON.stringify(bodyOf(server.heard[3] ?? { text: "{}" })["messages"]);
  assert.doesNotMatch(fourth, /signature/);
  assert.match(fourth, /toolu_1/);
});
