import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { askServer, propsContext, reportedIn } from "../../src/models/model-server.ts";
/** An entry of a list of models, and the window, tools and thinking that it reports. */
const ENTRIES: readonly (readonly [string, object, number | null, boolean | null, boolean | null])[] = [
  ["OpenAI", { id: "gpt-4o", object: "model", owned_by: "openai" }, null, null, null],
  ["vLLM", { id: "m", max_model_len: 40_960 }, 40_960, null, null],
  ["llama.cpp, trained length only", { id: "m", meta: { n_ctx_train: 131_072 } }, null, null, null],
  ["llama.cpp", { id: "m", meta: { n_ctx_train: 131_072, n_ctx: 16_384 } }, 16_384, null, null],
  [
    "LM Studio, loaded",
    {
      id: "m",
      state: "loaded",
      max_context_length: 131_072,
      loaded_context_length: 4096,
      capabilities: ["tool_use"],
    },
    4096,
    true,
    null,
  ],
  [
    "LM Studio, not loaded",
    { id: "m", state: "not-loaded", max_context_length: 131_072, capabilities: [] },
    null,
    false,
    null,
  ],
  [
    "OpenRouter",
    {
      id: "m",
      context_length: 262_144,
      top_provider: { context_length: 131_072 },
      supported_parameters: ["tools", "reasoning", "temperature"],
    },
    131_072,
    true,
    true,
  ],
  [
    "OpenRouter without tools",
    { id: "m", context_length: 8192, supported_parameters: [] },
    8192,
    false,
    false,
  ],
  ["Groq", { id: "m", context_window: 131_072 }, 131_072, null, null],
  [
    "Mistral",
    { id: "m", max_context_length: 32_768, capabilities: { function_calling: true } },
    32_768,
    true,
    null,
  ],
  ["nonsense", { id: "m", max_model_len: "many", capabilities: 7, meta: [] }, null, null, null],
];

for (const [server, entry, context, tools, thinking] of ENTRIES)
  test(`the capabilities that ${server} reports of a model are read`, () => {
    assert.deepEqual(reportedIn(entry), { context, tools, thinking, cache: null, parameters: null });
  });

test("llama-server's /props reports the window of a slot", () => {
  assert.deepEqual(
    [{ default_generation_settings: { n_ctx: 16_384 } }, { n_ctx: 8192 }, {}, undefined].map(propsContext),
    [16_384, 8192, null, null],
  );
});

/** A server with these answers by path; the rest is 404. */
async function serving(answers: Readonly<Record<string, unknown>>) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(`${path} ${request.headers.authorization ?? ""}`.trim());
    response.statusCode = path in answers ? 200 : 404;
    response.end(JSON.stringify(answers[path] ?? { error: "not found" }));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const question = {
    base,
    list: `${base}/models`,
    headers: { authorization: "Bearer k" },
    signal: new AbortController().signal,
    timeoutMs: 5000,
  };
  return {
    asked,
    question,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("a list that reports windows is enough", async () => {
  using server = await serving({ "/v1/models": { data: [{ id: "a", max_model_len: 8192 }, { id: "b" }] } });
  const { models, wordOn } = await askServer(server.question);
  assert.deepEqual(models, ["a", "b"]);
  assert.deepEqual(
    ["a", "b", "c"].map((model) => wordOn(model).context),
    [8192, null, null],
  );
  assert.deepEqual(server.asked, ["/v1/models Bearer k"]);
});

test("after a list without windows LM Studio's and llama-server's own addresses are asked", async () => {
  const data = [{ id: "a" }, { id: "b" }];
  using studio = await serving({
    "/v1/models": { data },
    "/api/v0/models": { data: [{ id: "a", state: "loaded", loaded_context_length: 4096 }] },
  });
  using llama = await serving({
    "/v1/models": { data },
    "/props": { default_generation_settings: { n_ctx: 16_384 } },
  });
  const windows = await Promise.all(
    [studio, llama].map(async ({ question }) => {
      const { wordOn } = await askServer(question);
      return ["a", "b"].map((model) => wordOn(model).context);
    }),
  );
  assert.deepEqual(windows, [
    [4096, null],
    [16_384, 16_384],
  ]);
});

test("an answer that is not a list is refused", async () => {
  using server = await serving({ "/v1/models": { hello: 1 } });
  const { models, reason } = await askServer(server.question);
  assert.deepEqual([models, reason], [null, "it answers with unexpected JSON"]);
});

test("a server without a list reports nothing, with a reason", async () => {
  using server = await serving({});
  const { models, reason, wordOn } = await askServer(server.question);
  assert.deepEqual([models, reason, wordOn("a").context], [null, "HTTP 404", null]);
});

test("llama.cpp reports the parameters of its model", () => {
  const entry = { id: "m", meta: { n_ctx: 4096, n_params: 1_543_714_304 } };
  assert.deepEqual([reportedIn(entry).parameters, reportedIn({ id: "m" }).parameters], [1.5, null]);
});
