import assert from "node:assert/strict";
import test from "node:test";
import { OllamaWire } from "../../src/models/providers/ollama-api.ts";
import { failureOf } from "../../src/models/providers/ollama-refusals.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { WireFailure } from "../../src/models/model-api.ts";

const ASKED = { baseUrl: "http://127.0.0.1:11434", model: "qwen3:8b" };
const UNREAD = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}';

/** Status, the server's words, and what they mean: kind, passing, refusesTools, raw. */
const ROWS: readonly (readonly [number, string, string, boolean, boolean, string | null])[] = [
  [404, "model 'qwen3:8b' not found", "no_model", false, false, null],
  [404, 'model "qwen3:8b" not found, try pulling it first', "no_model", false, false, null],
  [404, "", "unreachable", false, false, null],
  [302, "", "unreachable", false, false, null],
  [400, "registry.ollama.ai/library/gemma3:4b does not support tools", "refused", false, true, null],
  [400, '"nomic-embed-text" does not support chat', "refused", false, false, null],
  [400, "invalid model name", "no_model", false, false, null],
  [400, "json: cannot unmarshal", "refused", false, false, null],
  [412, "", "refused", false, false, null],
  [500, "this model requires a newer version of Ollama", "refused", false, false, null],
  [401, "unauthorized", "unauthorised", false, false, null],
  [403, "", "unauthorised", false, false, null],
  [429, "too many requests", "rate_limited", true, false, null],
  [
    503,
    "server busy, please try again.  maximum pending requests exceeded",
    "rate_limited",
    true,
    false,
    null,
  ],
  [503, "", "server", true, false, null],
  [
    400,
    "the prompt is longer than the context length currently available to the model; shorten the prompt",
    "too_long",
    false,
    false,
    null,
  ],
  [400, "the input length exceeds the context length", "too_long", false, false, null],
  [
    400,
    '{"error":{"code":400,"message":"request (9127 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}',
    "too_long",
    false,
    false,
    null,
  ],
  [
    500,
    "model requires more system memory (9.1 GiB) than is available (5.2 GiB)",
    "out_of_memory",
    false,
    false,
    null,
  ],
  [
    500,
    "llama-server process has terminated: cudaMalloc failed: out of memory",
    "out_of_memory",
    false,
    false,
    null,
  ],
  [500, "model runner has unexpectedly stopped, check ollama server logs", "server", true, false, null],
  [
    500,
    JSON.stringify({
      error: { code: 500, message: `Failed to parse input at pos 0: ${UNREAD}`, type: "server_error" },
    }),
    "server",
    true,
    false,
    UNREAD,
  ],
  [500, "XML syntax error on line 3: element <parameter> closed by </function>", "server", true, false, ""],
  [
    500,
    "error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input",
    "server",
    true,
    false,
    "",
  ],
  [500, "tool 'launch' not found", "server", true, false, ""],
  [500, "the llama fell over", "server", true, false, null],
];

for (const [status, words, kind, passing, refusesTools, raw] of ROWS)
  test(`HTTP ${status} ${JSON.stringify(words.slice(0, 70))} is ${kind}`, () => {
    const failure = failureOf({ status, words }, ASKED);
    assert.deepEqual(
      [failure.kind, failure.passing, failure.refusesTools, failure.raw],
      [kind, passing, refusesTools, raw],
    );
    assert.ok(failure.message.startsWith("Ollama at http://127.0.0.1:11434: "), failure.message);
    assert.ok(failure.message.length < 600 && !failure.message.endsWith(": "));
    assert.ok(failure.remedy !== "" || passing);
  });

test("a missing model is to be pulled from the server that lacks it", () => {
  const refusal = { status: 404, words: "model 'qwen3:8b' not found" };
  assert.deepEqual(
    [ASKED, { ...ASKED, baseUrl: "http://box:11434" }].map((asked) => failureOf(refusal, asked).remedy),
    ["ollama pull qwen3:8b", "OLLAMA_HOST=http://box:11434 ollama pull qwen3:8b"],
  );
});

const wait = (retryAfter: string): number | null =>
  failureOf({ status: 429, words: "", retryAfter }, ASKED).retryAfterMs;

test("the time to wait may be seconds or a date", () => {
  assert.equal(wait("7"), 7000);
  assert.equal(wait("soon"), null);
  assert.equal(wait("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  assert.ok((wait(new Date(Date.now() + 60_000).toUTCString()) ?? 0) > 50_000);
});

const REQUEST = {
  model: "qwen3:8b",
  messages: [],
  tools: [],
  nativeTools: true,
  connectMs: 1000,
} as const;

async function thrownBy(baseUrl: string, signal = new AbortController().signal): Promise<readonly string[]> {
  try {
    for await (const event of new OllamaWire({ baseUrl, memory: null }).send(REQUEST, signal))
      return ["event", event.type];
  } catch (thrown) {
    assert.ok(thrown instanceof WireFailure, String(thrown));
    return [thrown.kind, thrown.remedy];
  }
  return ["nothing"];
}

test("a faulty server is reported before a chat is requested", async () => {
  const gone = await startFakeOllama();
  await gone[Symbol.asyncDispose]();
  await using other = await startFakeOllama({ faults: { "*": "html" } });
  await using old = await startFakeOllama({ version: "0.12.5" });
  await using failing = await startFakeOllama({ faults: { "/api/tags": "error" } });
  const update = "update Ollama: https://ollama.com/download";
  assert.deepEqual(await Promise.all([gone, other, old, failing].map(({ url }) => thrownBy(url))), [
    ["unreachable", `OLLAMA_HOST=${gone.url} ollama serve`],
    ["unreachable", "harness config set base_url http://HOST:11434"],
    ["refused", update],
    ["server", `restart Ollama (OLLAMA_HOST=${failing.url} ollama serve)`],
  ]);
});

test("a model that is not listed is requested anyway, and the server's answer decides", async () => {
  await using fake = await startFakeOllama({ models: [], faults: { "/api/chat": "missing" } });
  const [kind] = await thrownBy(fake.url);
  assert.equal(kind, "unreachable");
});

test("cancelling ends whichever request is under way", async () => {
  await using hung = await startFakeOllama({ faults: { "*": "silent" } });
  await using late = await startFakeOllama({
    models: [{ name: "qwen3:8b" }],
    routes: { "/api/chat": () => undefined },
  });
  const ended = [hung, late].map(({ url }) => thrownBy(url, AbortSignal.timeout(60)));
  assert.deepEqual(await Promise.all(ended), [
    ["cancelled", ""],
    ["cancelled", ""],
  ]);
});
