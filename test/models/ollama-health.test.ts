import assert from "node:assert/strict";
import test from "node:test";
import type { ModelHealthRequest } from "../../src/models/model-server.ts";
import { contextRow, health, type HealthRow, healthRows, serverDown } from "./health-rows.ts";
import { type FakeOllamaOptions, startFakeOllama } from "../fakes/ollama-server.ts";

const GiB = 2 ** 30;
const QWEN = { name: "qwen3:8b", size: 5 * GiB };

const SERVER: HealthRow = ["model.server", "ok", "Ollama 0.12.6 at URL", ""];
const NAME: HealthRow = ["model.name", "ok", "qwen3:8b, 5.0 GiB", ""];
const BASE = "harness config set base_url http://HOST:11434";
const OTHER = "harness config set chat_model NAME";

type Case = readonly [string, FakeOllamaOptions, Partial<ModelHealthRequest>, readonly HealthRow[]];

const OLLAMA: readonly Case[] = [
  [
    "a model that is ready",
    { models: [QWEN] },
    {},
    [SERVER, NAME, contextRow("ok", "32,768 tokens (the default; max_context_tokens raises it)")],
  ],
  [
    "a loaded model with another window",
    { models: [{ ...QWEN, loaded: 4096 }] },
    { maxContext: 100_000 },
    [
      SERVER,
      NAME,
      contextRow(
        "ok",
        "40,960 tokens (all that the model was trained for); now loaded with 4,096, so the first request loads it again",
      ),
    ],
  ],
  [
    "a window that the user made too small",
    { models: [{ ...QWEN, loaded: 4096 }] },
    { maxContext: 4096 },
    [
      SERVER,
      NAME,
      contextRow(
        "warn",
        "4,096 tokens (max_context_tokens); too few for most tasks",
        "harness config set max_context_tokens 32768",
      ),
    ],
  ],
  [
    "a machine that is too small",
    { models: [QWEN] },
    { memory: 8 * GiB },
    [
      SERVER,
      NAME,
      contextRow("warn", "4,096 tokens (what fits in this machine's memory); too few for most tasks", OTHER),
    ],
  ],
  [
    "a model without tools",
    { models: [{ ...QWEN, capabilities: ["completion"] }] },
    { maxContext: 32_768 },
    [
      SERVER,
      [
        "model.name",
        "warn",
        "qwen3:8b, 5.0 GiB, does not call tools natively on this server; its calls are read from its text",
        OTHER,
      ],
      contextRow("ok", "32,768 tokens (max_context_tokens)"),
    ],
  ],
  [
    "a model that cannot chat",
    { models: [{ ...QWEN, trained: 2048, capabilities: ["embedding"] }] },
    {},
    [
      SERVER,
      ["model.name", "fail", "qwen3:8b, 5.0 GiB, cannot chat (embedding)", OTHER],
      contextRow("warn", "2,048 tokens (all that the model was trained for); too few for most tasks", OTHER),
    ],
  ],
  [
    "a missing model among many",
    { models: ["a", "b", "c", "d", "e", "f", "g"].map((name) => ({ name })) },
    { model: "qwen3; rm -rf" },
    [
      SERVER,
      [
        "model.name",
        "fail",
        "qwen3; rm -rf is not installed; a, b, c, d, e and 2 more are",
        "harness config set chat_model a   (or a download: OLLAMA_HOST=URL ollama pull 'qwen3; rm -rf')",
      ],
    ],
  ],
  [
    "a missing model beside one that calls tools, one that does not, and an embedder",
    {
      models: [
        { name: "nomic-embed-text:latest", capabilities: ["embedding"] },
        { name: "gemma3:4b", capabilities: ["completion"] },
        { name: "own/coder:7b", capabilities: ["completion", "tools"] },
      ],
    },
    {},
    [
      SERVER,
      [
        "model.name",
        "fail",
        "qwen3:8b is not installed; gemma3:4b, own/coder:7b are (1 more cannot chat)",
        "harness config set chat_model own/coder:7b   (or a download: OLLAMA_HOST=URL ollama pull qwen3:8b)",
      ],
    ],
  ],
  [
    "a missing model beside an embedder alone",
    { models: [{ name: "all-minilm:latest", capabilities: ["embedding"] }] },
    {},
    [
      SERVER,
      [
        "model.name",
        "fail",
        "qwen3:8b is not installed; no chat model is (all-minilm:latest cannot)",
        "OLLAMA_HOST=URL ollama pull qwen3:8b",
      ],
    ],
  ],
  [
    "an embedder beside a chat model",
    {
      models: [
        { ...QWEN, capabilities: ["embedding"] },
        { name: "gemma3:4b", capabilities: ["completion"] },
      ],
    },
    { maxContext: 32_768 },
    [
      SERVER,
      [
        "model.name",
        "fail",
        "qwen3:8b, 5.0 GiB, cannot chat (embedding)",
        "harness config set chat_model gemma3:4b",
      ],
      contextRow("ok", "32,768 tokens (max_context_tokens)"),
    ],
  ],
  [
    "no model at all",
    {},
    {},
    [
      SERVER,
      [
        "model.name",
        "fail",
        "qwen3:8b is not installed; no model is",
        "OLLAMA_HOST=URL ollama pull qwen3:8b",
      ],
    ],
  ],
  [
    "an old server",
    { version: "0.6.0" },
    {},
    [
      serverDown(
        "Ollama 0.6.0 at URL cuts long prompts without saying so; 0.12.6 or newer is needed",
        "update Ollama: https://ollama.com/download",
      ),
    ],
  ],
  [
    "another server",
    { faults: { "*": "html" } },
    {},
    [serverDown("what answers at URL is not Ollama: it answers with text/html that is not JSON", BASE)],
  ],
  [
    "a failing server",
    { faults: { "/api/tags": "error" } },
    {},
    [
      serverDown(
        "Ollama 0.12.6 at URL fails: /api/tags: HTTP 500: the model store cannot be read",
        "restart Ollama (OLLAMA_HOST=URL ollama serve)",
      ),
    ],
  ],
  [
    "a dead server where Ollama is not installed",
    { faults: { "*": "error" } },
    {},
    [
      serverDown(
        "no Ollama answers at URL: HTTP 500: the model store cannot be read",
        "install Ollama from https://ollama.com/download, then: OLLAMA_HOST=URL ollama serve",
      ),
    ],
  ],
];

for (const [name, options, changes, expected] of OLLAMA)
  test(`ollama: ${name} is reported with the fix`, async () => {
    await using fake = await startFakeOllama(options);
    assert.deepEqual(healthRows(await health({ baseUrl: fake.url, ...changes }), fake.url), expected);
  });

test("ollama: the default address needs no variable in the command", async () => {
  const fake = await startFakeOllama({ models: [] });
  await fake[Symbol.asyncDispose]();
  const [server] = await health({ env: { OLLAMA_HOST: fake.url } });
  assert.equal(server?.remedy.endsWith(`then: OLLAMA_HOST=${fake.url} ollama serve`), true);
});
