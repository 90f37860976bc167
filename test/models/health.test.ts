import assert from "node:assert/strict";
import { chmod } from "node:fs/promises";
import test from "node:test";
import type { Health } from "../../src/core/errors.ts";
import type { ModelHealthRequest } from "../../src/models/model-server.ts";
import { scratch } from "../fixtures/scratch.ts";
import { contextRow, health, type HealthRow, healthRows, serverDown } from "./health-rows.ts";
import { type FakeOllamaOptions, sendJson, startFakeOllama } from "../fakes/ollama-server.ts";

const KEY = "sk-test-5f2b9c";

test("an invalid address is reported, not thrown", async () => {
  assert.deepEqual(healthRows(await health({ env: { OLLAMA_HOST: ":0" } }), "-"), [
    serverDown(
      'OLLAMA_HOST: ":0" is not an address of an Ollama server; expected host, host:port or http://host:port',
      "unset OLLAMA_HOST",
    ),
  ]);
});

test("the scripted provider is healthy if its model is a scenario file", async () => {
  const model = "examples/scripted-fix.jsonl";
  assert.deepEqual(await health({ provider: "scripted", model }), [
    { id: "model.server", state: "ok", detail: "plays a scenario file", remedy: "" },
  ]);
  const [missing] = await health({ provider: "scripted", model: "/nowhere.jsonl" });
  assert.equal(missing?.state, "fail");
  assert.match(missing.detail, /^cannot read the scenario \/nowhere\.jsonl/);
  assert.match(missing.remedy, /docs\/scripted-models\.md/);
});

test("a key in the user's file works like one in the environment, and a file that others can read is reported", async () => {
  await using folder = await scratch();
  await using fake = await startFakeOllama({ routes: listing({ id: "qwen3:8b" }) });
  const keysFile = await folder.write("keys.json", JSON.stringify({ openai: KEY }), 0o600);
  const ask = (): Promise<readonly Health[]> =>
    health({ provider: "openai", baseUrl: `${fake.url}/v1`, keysFile });
  assert.equal((await ask())[0]?.state, "ok");
  assert.equal(fake.requests[0]?.headers["authorization"], `Bearer ${KEY}`);
  await chmod(keysFile, 0o644);
  const [open] = await ask();
  assert.deepEqual([open?.state, open?.remedy], ["fail", `chmod 600 ${keysFile}`]);
});

const listing = (...data: readonly object[]): FakeOllamaOptions["routes"] & object => ({
  "/v1/models": (_body, response) => sendJson(response, { object: "list", data }),
});
const refusing = (status: number): FakeOllamaOptions["routes"] & object => ({
  "/v1/models": (_body, response) => sendJson(response, { error: { message: `bad key ${KEY}` } }, status),
});
const keys = { OPENAI_API_KEY: ` ${KEY}\n`, ANTHROPIC_API_KEY: KEY };
const LISTED: HealthRow = ["model.name", "ok", "qwen3:8b", ""];
const silentServer = contextRow(
  "warn",
  "the server does not report it; without a limit, a long prompt may be cut",
  "harness config set max_context_tokens 32768",
);

type KeyedCase = readonly [
  string,
  FakeOllamaOptions["routes"] & object,
  "openai" | "anthropic",
  Partial<ModelHealthRequest>,
  readonly HealthRow[],
];

const KEYED: readonly KeyedCase[] = [
  [
    "a listed model",
    listing({ id: "qwen3:8b" }),
    "openai",
    { env: keys, maxContext: 65_536 },
    [["model.server", "ok", "OpenAI API at URL/v1", ""], LISTED, contextRow("ok", "65,536 tokens")],
  ],
  [
    "a local server without a key that reports its window",
    listing({ id: "qwen3:8b", max_model_len: 8192 }),
    "openai",
    {},
    [
      ["model.server", "ok", "OpenAI API at URL/v1", ""],
      LISTED,
      contextRow(
        "warn",
        "8,192 tokens; too few for most tasks",
        "harness config set max_context_tokens 32768",
      ),
    ],
  ],
  [
    "a model that is not listed",
    listing({ id: "text-embedding-3-small" }, { id: "other" }),
    "openai",
    {},
    [
      ["model.server", "ok", "OpenAI API at URL/v1", ""],
      ["model.name", "warn", "qwen3:8b is not in the server's list", "harness config set chat_model other"],
      silentServer,
    ],
  ],
  [
    "a key that is refused",
    refusing(401),
    "openai",
    { env: keys },
    [serverDown("URL/v1 refuses the key (HTTP 401)", "export OPENAI_API_KEY=KEY")],
  ],
  [
    "a missing key",
    refusing(403),
    "anthropic",
    {},
    [serverDown("ANTHROPIC_API_KEY is not set; URL needs it (HTTP 403)", "export ANTHROPIC_API_KEY=KEY")],
  ],
  [
    "a busy server",
    refusing(429),
    "openai",
    { env: keys },
    [["model.server", "warn", "URL/v1 asks to wait (HTTP 429)", "harness doctor"]],
  ],
  [
    "a broken server",
    refusing(500),
    "openai",
    { env: keys },
    [serverDown("URL/v1 answers HTTP 500", "harness config set base_url URL")],
  ],
  [
    "a list of another kind",
    { "/v1/models": (_body, response) => sendJson(response, { models: [] }) },
    "openai",
    {},
    [serverDown("URL/v1 does not answer like the OpenAI API", "harness config set base_url URL")],
  ],
  [
    "an Anthropic API",
    listing({ type: "model", id: "qwen3:8b" }),
    "anthropic",
    { env: keys },
    [["model.server", "ok", "Anthropic API at URL", ""], LISTED, silentServer],
  ],
];

for (const [name, routes, provider, changes, expected] of KEYED)
  test(`${provider}: ${name} is reported, and no text contains the key`, async () => {
    await using fake = await startFakeOllama({ routes });
    const baseUrl = provider === "openai" ? `${fake.url}/v1` : fake.url;
    const list = await health({ provider, baseUrl, ...changes });
    assert.deepEqual(healthRows(list, fake.url), expected);
    assert.equal(JSON.stringify(list).includes(KEY), false);
  });

const PUBLIC: readonly (readonly ["openai" | "anthropic", string | null, HealthRow])[] = [
  [
    "openai",
    null,
    serverDown("OPENAI_API_KEY is not set; https://api.openai.com/v1 needs it", "export OPENAI_API_KEY=KEY"),
  ],
  [
    "openai",
    "https://api.openai.com/v1/",
    serverDown("OPENAI_API_KEY is not set; https://api.openai.com/v1 needs it", "export OPENAI_API_KEY=KEY"),
  ],
  [
    "anthropic",
    null,
    serverDown(
      "ANTHROPIC_API_KEY is not set; https://api.anthropic.com needs it",
      "export ANTHROPIC_API_KEY=KEY",
    ),
  ],
];

for (const [provider, baseUrl, expected] of PUBLIC)
  test(`${provider} at ${baseUrl ?? "its public address"} without a key fails before any request`, async () => {
    assert.deepEqual(healthRows(await health({ provider, baseUrl, env: { OPENAI_API_KEY: " " } }), "-"), [
      expected,
    ]);
  });

async function sent(provider: "openai" | "anthropic", env: ModelHealthRequest["env"]): Promise<unknown> {
  await using fake = await startFakeOllama({ routes: listing() });
  await health({ provider, baseUrl: provider === "openai" ? `${fake.url}/v1/` : fake.url, env });
  return fake.requests.map(({ method, path, headers }) => ({
    asked: `${method} ${path}`,
    authorization: headers["authorization"],
    key: headers["x-api-key"],
    version: headers["anthropic-version"],
  }));
}

test("each API gets its key in its own header and no other", async () => {
  const none = { authorization: undefined, key: undefined, version: undefined };
  const asked = "GET /v1/models?limit=1000";
  assert.deepEqual(
    await Promise.all([
      sent("openai", keys),
      sent("openai", {}),
      sent("anthropic", keys),
      sent("anthropic", {}),
    ]),
    [
      [{ ...none, asked: "GET /v1/models", authorization: `Bearer ${KEY}` }],
      [{ ...none, asked: "GET /v1/models" }],
      [{ ...none, asked, key: KEY, version: "2023-06-01" }],
      [{ ...none, asked, version: "2023-06-01" }],
    ],
  );
});

const missing = (base: string, right: string): readonly HealthRow[] => [
  serverDown(`${base} has no list of models (HTTP 404)`, `harness config set base_url ${right}`),
];

test("a base URL that lacks /v1, or has a superfluous one, is reported with the right one", async () => {
  await using fake = await startFakeOllama();
  const remedies = async (provider: "openai" | "anthropic", baseUrl: string): Promise<readonly HealthRow[]> =>
    healthRows(await health({ provider, baseUrl }), fake.url);
  assert.deepEqual(
    [await remedies("openai", fake.url), await remedies("anthropic", `${fake.url}/v1`)],
    [missing("URL", "URL/v1"), missing("URL/v1", "URL")],
  );
});

test("a key is not sent along with a redirect", async () => {
  await using fake = await startFakeOllama({ faults: { "*": "redirect" } });
  assert.deepEqual(healthRows(await health({ provider: "openai", baseUrl: fake.url, env: keys }), fake.url), [
    serverDown(
      "URL does not speak the OpenAI API: it redirects to https://login.example.org",
      "harness config set base_url URL",
    ),
  ]);
});

test("a password in the address and an invalid key are not shown", async () => {
  await using fake = await startFakeOllama();
  const lists = await Promise.all([
    health({ provider: "openai", baseUrl: `http://me:${KEY}@localhost:1/v1` }),
    health({ provider: "openai", baseUrl: `http://localhost:1/v1?key=${KEY}` }),
    health({ provider: "openai", baseUrl: fake.url, env: { OPENAI_API_KEY: `${KEY}\n${KEY}` } }),
  ]);
  const base = "base_url: expected http://host/path or https://host/path, without a password or a query";
  assert.deepEqual(
    lists.map((list) => healthRows(list, fake.url)),
    [
      [serverDown(base, "harness config set base_url URL")],
      [serverDown(base, "harness config set base_url URL")],
      [
        serverDown(
          "OPENAI_API_KEY has characters that no key has",
          "Copy it again from your account's page: export OPENAI_API_KEY=…",
        ),
      ],
    ],
  );
});
