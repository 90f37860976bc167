import assert from "node:assert/strict";
import test from "node:test";
import { hostFrom } from "../../src/app/host.ts";
import { modelClient } from "../../src/app/model-access.ts";
import { DEFAULTS } from "../../src/config/settings-schema.ts";
import { sendJson, startFakeOllama } from "../fakes/ollama-server.ts";
import { JSON_TYPE, startLoopback } from "../fakes/loopback.ts";
import { scratch } from "../fixtures/scratch.ts";

const WHOLE = {
  openai: {
    choices: [
      {
        message: {
          content: "Hello",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "list_dir", arguments: '{"path":"."}' } },
          ],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: { prompt_tokens: 5, completion_tokens: 1 },
  },
  anthropic: {
    type: "message",
    role: "assistant",
    content: [
      { type: "text", text: "Hello" },
      { type: "tool_use", id: "toolu_1", name: "list_dir", input: { path: "." } },
    ],
    stop_reason: "tool_use",
    usage: { input_tokens: 5, output_tokens: 1 },
  },
  ollama: {
    model: "m",
    message: {
      role: "assistant",
      content: "Hello",
      tool_calls: [{ id: "call_1", function: { index: 0, name: "list_dir", arguments: { path: "." } } }],
    },
    done: true,
    done_reason: "stop",
    prompt_eval_count: 5,
    eval_count: 1,
  },
};

/** The request without the parts that differ between processes, and the resulting reply. */
async function asked(
  name: keyof typeof WHOLE,
  stream: boolean,
  baseUrl: string,
): Promise<readonly unknown[]> {
  await using place = await scratch();
  const host = hostFrom({ HOME: place.at("home"), OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" });
  const settings = { ...DEFAULTS, provider: name, base_url: baseUrl, chat_model: "m", stream };
  const events: unknown[] = [];
  const request = {
    model: "m",
    messages: [{ role: "user" as const, text: "Hi" }],
    tools: [{ name: "list_dir", description: "Lists.", schema: { type: "object" } }],
  };
  for await (const event of modelClient(host, settings)
    .provider("native")
    .stream(request, new AbortController().signal))
    if (event.type === "finished") events.push(event.message.text, event.message.calls, event.usage);
  return events;
}

const isChat = (path: string): boolean => /chat|messages/.test(path);

const CALL = { name: "list_dir", args: { path: "." } };

for (const stream of [false, true])
  test(`with stream ${stream} every API is asked accordingly, and a whole reply is read`, async () => {
    for (const name of ["openai", "anthropic"] as const) {
      await using server = await startLoopback([{ headers: JSON_TYPE, body: JSON.stringify(WHOLE[name]) }]);
      const [text, calls] = await asked(name, stream, `${server.url}${name === "openai" ? "/v1" : ""}`);
      assert.deepEqual([text, calls], ["Hello", [{ ...CALL, id: name === "openai" ? "call_1" : "toolu_1" }]]);
      const bodies = server.heard
        .filter(({ path }) => isChat(path))
        .map((each) => JSON.parse(each.text) as Readonly<Record<string, unknown>>);
      assert.deepEqual(
        bodies.map((body) => [body["stream"], "stream_options" in body]),
        [[stream, stream && name === "openai"]],
      );
    }
    await using ollama = await startFakeOllama({
      models: [{ name: "m", size: 1 }],
      routes: { "/api/chat": (_body, response) => sendJson(response, WHOLE.ollama) },
    });
    const [text, calls] = await asked("ollama", stream, ollama.url);
    assert.deepEqual([text, calls], ["Hello", [{ ...CALL, id: "call_1" }]]);
    const bodies = ollama.requests.filter(({ path }) => isChat(path)).map(({ body }) => body);
    assert.deepEqual(
      bodies.map((body) => (body as { readonly stream?: unknown }).stream),
      [stream],
    );
  });
