import assert from "node:assert/strict";
import test from "node:test";
import { OpenAiWire } from "../../../src/models/providers/openai-api.ts";
import { WireFailure, type WireEvent, type WireRequest } from "../../../src/models/model-api.ts";
import { EVENTS, JSON_TYPE, type Served, startLoopback } from "../../fakes/loopback.ts";
import { chat, chunk, DONE, event, refusedChat, usageChunk } from "../../fakes/openai-server.ts";

const REQUEST: WireRequest = {
  model: "m",
  messages: [{ role: "user", text: "Hi" }],
  tools: [],
  nativeTools: true,
  connectMs: 1000,
};
const HELLO: WireEvent = { type: "text", text: "Hello" };
const END: WireEvent = { type: "stop", stop: "end" };
const GOOD = chat(chunk({ content: "Hello" }), chunk({}, "stop"));

async function eventsOf(wire: OpenAiWire, change: Partial<WireRequest> = {}): Promise<readonly WireEvent[]> {
  const events: WireEvent[] = [];
  for await (const each of wire.send({ ...REQUEST, ...change }, new AbortController().signal))
    events.push(each);
  return events;
}

async function failing(served: Served): Promise<WireFailure> {
  await using server = await startLoopback([served]);
  try {
    await eventsOf(new OpenAiWire({ baseUrl: `${server.url}/v1` }));
  } catch (thrown) {
    assert.ok(thrown instanceof WireFailure, String(thrown));
    return thrown;
  }
  return assert.fail("it was answered");
}

const GOOD_STREAMS: readonly (readonly [string, Served, readonly WireEvent[]])[] = [
  ["a usual stream", GOOD, [HELLO, END]],
  [
    "a stream without a done mark",
    { headers: EVENTS, body: [chunk({ content: "Hello" }), chunk({}, "stop")] },
    [HELLO, END],
  ],
  ["a stream without a reason for its end", chat(chunk({ content: "Hello" })), [HELLO]],
  [
    "a connection that breaks after the end",
    { headers: EVENTS, body: [chunk({ content: "Hello" }), chunk({}, "stop")], ends: "cut" },
    [HELLO, END],
  ],
  ["a server that never closes after the end", { ...GOOD, ends: "silent" }, [HELLO, END]],
  [
    "comments of a router between events",
    chat(": OPENROUTER PROCESSING\n\n", chunk({ content: "Hello" }), ": x\n\n", chunk({}, "stop")),
    [HELLO, END],
  ],
  [
    "a server that does not stream",
    {
      headers: JSON_TYPE,
      body: JSON.stringify({ choices: [{ message: { content: "Hello" }, finish_reason: "stop" }] }),
    },
    [HELLO, END],
  ],
  [
    "a stream declared as JSON",
    { headers: JSON_TYPE, body: [chunk({ content: "Hello" }), chunk({}, "stop"), DONE] },
    [HELLO, END],
  ],
  [
    "a stream without a content type",
    { headers: {}, body: [chunk({ content: "Hello" }), chunk({}, "stop"), DONE] },
    [HELLO, END],
  ],
  [
    "counts after the end",
    chat(
      chunk({ content: "Hello" }),
      chunk({}, "stop"),
      usageChunk({ prompt_tokens: 5, completion_tokens: 1 }),
    ),
    [HELLO, END, { type: "usage", prompt: 5, completion: 1 }],
  ],
];

for (const [sentence, served, events] of GOOD_STREAMS)
  test(`it reads ${sentence}`, async () => {
    await using server = await startLoopback([served]);
    assert.deepEqual(await eventsOf(new OpenAiWire({ baseUrl: `${server.url}/v1/` })), events);
    assert.deepEqual(
      server.heard.map(({ method, path }) => ({ method, path })),
      [{ method: "POST", path: "/v1/chat/completions" }],
    );
  });

const FAILURES: readonly (readonly [string, Served, string, boolean, RegExp])[] = [
  [
    "a web page",
    { headers: { "content-type": "text/html" }, body: "<html>hi</html>" },
    "unreachable",
    false,
    /not a model server: it answers with a web page/,
  ],
  [
    "another service",
    { headers: { "content-type": "text/plain" }, body: "Ollama is running" },
    "unreachable",
    false,
    /unexpected text: "Ollama is running"/,
  ],
  [
    "JSON of another service",
    { headers: JSON_TYPE, body: '{"hello":1}' },
    "unreachable",
    false,
    /not a model server: it answers with unexpected JSON/,
  ],
  ["an answer that is empty", { headers: EVENTS, body: "" }, "garbled", true, /nothing arrived/],
  ["JSON that was cut", { headers: JSON_TYPE, body: '{"choices":[{"mess' }, "garbled", true, /not JSON/],
  [
    "a stream that was cut",
    { headers: EVENTS, body: [chunk({ content: "Hello" })], ends: "cut" },
    "garbled",
    true,
    /broke off/,
  ],
  [
    "a stream that ends too early",
    { headers: EVENTS, body: [chunk({ content: "Hello" })] },
    "garbled",
    true,
    /broke off/,
  ],
  [
    "a stream that was cut inside an event",
    { headers: EVENTS, body: chunk({ content: "Hello" }).slice(0, -20) },
    "garbled",
    true,
    /not JSON/,
  ],
  [
    "an error with status 200",
    refusedChat(200, { message: "boom", code: 500 }),
    "server",
    true,
    /the server failed: boom/,
  ],
  [
    "an error in the stream",
    chat(chunk({ content: "Hello" }), event({ error: { message: "boom", code: 429 } })),
    "rate_limited",
    true,
    /boom/,
  ],
  [
    "an error event",
    { headers: EVENTS, body: 'event: error\ndata: {"message":"boom"}\n\n' },
    "server",
    true,
    /boom/,
  ],
  [
    "an error event of plain text",
    { headers: EVENTS, body: "event: error\ndata: boom\n\n" },
    "server",
    true,
    /boom/,
  ],
  [
    "llama.cpp's field of errors",
    {
      headers: EVENTS,
      body: 'error: {"code":400,"message":"the request exceeds the available context size"}\n\n',
    },
    "too_long",
    false,
    /exceeds/,
  ],
  [
    "a router's failed end",
    chat(
      event({
        error: { code: 502, message: "Provider disconnected" },
        choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }],
      }),
    ),
    "server",
    true,
    /Provider disconnected/,
  ],
];

for (const [sentence, served, kind, passing, says] of FAILURES)
  test(`it fails on ${sentence}`, async () => {
    const failure = await failing(served);
    assert.deepEqual([failure.kind, failure.passing], [kind, passing]);
    assert.match(failure.message, says);
    assert.notEqual(failure.remedy, "");
  });

test("a key is sent as a bearer token, and no header without one", async () => {
  await using server = await startLoopback([GOOD]);
  await eventsOf(new OpenAiWire({ baseUrl: `${server.url}/v1`, key: "sk-1\n" }));
  await eventsOf(new OpenAiWire({ baseUrl: `${server.url}/v1` }));
  assert.deepEqual(
    server.heard.map(({ headers }) => headers.authorization),
    ["Bearer sk-1", undefined],
  );
});

test("one connection serves successive requests", async () => {
  await using server = await startLoopback([GOOD]);
  const wire = new OpenAiWire({ baseUrl: `${server.url}/v1` });
  const ports = (): readonly unknown[] => server.heard.map(({ port }) => port);
  // The connection is free a moment after its answer was read.
  while (ports().length < 40 && new Set(ports()).size === ports().length) {
    await eventsOf(wire);
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
  assert.ok(new Set(ports()).size < ports().length);
});

const FIELDS: readonly (readonly [
  string,
  string,
  Partial<WireRequest>,
  string,
  string | undefined,
  readonly string[],
])[] = [
  [
    "a request for counts",
    "[{'loc': ['body', 'stream_options', 'include_usage'], 'msg': 'Extra inputs are not permitted'}]",
    {},
    "stream_options",
    undefined,
    [],
  ],
  [
    "the old name of the limit",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    { maxTokens: 9 },
    "max_tokens",
    "max_completion_tokens",
    [],
  ],
  [
    "a stop word",
    "Unsupported parameter: 'stop' is not supported with this model.",
    { stop: ["END"] },
    "stop",
    undefined,
    [],
  ],
  [
    "a temperature",
    "Unsupported value: 'temperature' does not support 0 with this model.",
    { temperature: 0 },
    "temperature",
    undefined,
    ["the server does not accept a temperature for this model"],
  ],
  [
    "a schema",
    "Cannot use custom grammar constraints with tools.",
    { format: {} },
    "response_format",
    undefined,
    ["the server does not accept a schema for the answer"],
  ],
  [
    "a choice of thinking",
    "unknown field: chat_template_kwargs",
    { think: true },
    "chat_template_kwargs",
    undefined,
    ["thinking cannot be set on this server"],
  ],
];

for (const [sentence, message, change, field, instead, notes] of FIELDS)
  test(`a server that refuses ${sentence} gets requests without it from then on`, async () => {
    await using server = await startLoopback([refusedChat(400, { message }), GOOD]);
    const wire = new OpenAiWire({ baseUrl: `${server.url}/v1` });
    const said = notes.map((text): WireEvent => ({ type: "note", text }));
    assert.deepEqual(await eventsOf(wire, change), [...said, HELLO, END]);
    assert.deepEqual(await eventsOf(wire, change), [...said, HELLO, END]);
    const bodies = server.heard.map(({ text }) => JSON.parse(text) as Record<string, unknown>);
    assert.deepEqual(
      bodies.map((body) => field in body),
      [true, false, false],
    );
    if (instead !== undefined) assert.equal(bodies[1]?.[instead], 9);
  });

test("a server that refuses everything is asked only a few times", async () => {
  const message = "stream_options temperature response_format reasoning_content cache_control max_tokens";
  await using server = await startLoopback([refusedChat(400, { message })]);
  const wire = new OpenAiWire({ baseUrl: `${server.url}/v1` });
  await assert.rejects(eventsOf(wire, { temperature: 1, format: {}, maxTokens: 3 }), WireFailure);
  assert.equal(server.heard.length, 4);
});

test("a reader that leaves in the middle disconnects from the server at once", async () => {
  await using server = await startLoopback([
    { headers: EVENTS, body: [chunk({ content: "Hello" })], ends: "endless" },
  ]);
  const wire = new OpenAiWire({ baseUrl: `${server.url}/v1` });
  for await (const each of wire.send(REQUEST, new AbortController().signal)) if (each.type === "text") break;
  await server.left;
});
