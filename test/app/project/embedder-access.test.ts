import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import {
  embedderAccess,
  type EmbedderAccess,
  type FoundEmbedder,
} from "../../../src/app/project/embedder-access.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { openVectorCache } from "../../../src/search/embed-model.ts";
import { DEFAULTS, type Settings } from "../../../src/config/settings-schema.ts";
import { startEmbeddingOllama } from "../../fakes/embedding-ollama.ts";
import { startLoopback } from "../../fakes/loopback.ts";
import { startFakeOllama } from "../../fakes/ollama-server.ts";
import { scratch } from "../../fixtures/scratch.ts";

const NEVER = new AbortController().signal;
const CHOSEN = { embed_model: "HARNESS_EMBED_MODEL" };
const TOKEN = `ghp_${"a1B2c3D4e5".repeat(4)}`.slice(0, 40);

/** The environment of a machine without keys and settings, with these words in it, that has used those models before. */
async function machine(
  t: TestContext,
  words: Readonly<Record<string, string>> = {},
  learned: readonly string[] = [],
): Promise<void> {
  const place = await scratch();
  const wanted: Record<string, string | undefined> = {
    XDG_CONFIG_HOME: place.path,
    XDG_CACHE_HOME: place.at("cache"),
    OPENAI_API_KEY: undefined,
    OLLAMA_HOST: "127.0.0.1:1",
    ...words,
  };
  const before = Object.fromEntries(Object.keys(wanted).map((name) => [name, process.env[name]]));
  const set = (values: typeof wanted): void => {
    for (const [name, value] of Object.entries(values))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  };
  set(wanted);
  using cache = openVectorCache(place.at("cache", "harness", "vectors"), { warn: assert.fail });
  for (const model of learned) cache.learn(model, 1536);
  t.after(async () => {
    set(before);
    await place[Symbol.asyncDispose]();
  });
}

const accessWith = (
  settings: Partial<Settings> = {},
  origins: Readonly<Record<string, string>> = {},
): EmbedderAccess =>
  embedderAccess(
    { ...DEFAULTS, ...settings },
    {
      host: hostFrom(process.env),
      origins,
      warn: assert.fail,
      patience: { listMs: 1000, vectorMs: 500 },
    },
  );

async function find(
  settings: Partial<Settings>,
  origins: Readonly<Record<string, string>> = {},
): Promise<FoundEmbedder> {
  using access = accessWith(settings, origins);
  return await access.find(NEVER);
}

function reasonIn(found: FoundEmbedder): string {
  assert.equal(found.kind, "none");
  return found.kind === "none" ? `${found.reason} -> ${found.remedy}` : "";
}

test("Ollama's model provides embeddings, and is looked up once", async (t) => {
  await using ollama = await startEmbeddingOllama();
  await machine(t, { OLLAMA_HOST: ollama.server.url });
  using access = accessWith();
  const found = await access.find(NEVER);
  const asked = ollama.server.requests.length;
  assert.equal(await access.find(NEVER), found);
  assert.equal(ollama.server.requests.length, asked);
  assert.ok(found.kind === "found");
  assert.deepEqual(
    [found.model.id, found.local, found.server],
    ["ollama/nomic-embed-text:latest@a3de86cd1c13", true, ollama.server.url],
  );
  assert.equal((await found.model.embedder.embed(["text"], NEVER))[0]?.length, 64);
  assert.equal(found.model.mask(TOKEN), TOKEN);
});

test("a missing server, a missing model and an unusable address are reported with the reason and the remedy", async (t) => {
  await machine(t);
  assert.match(
    reasonIn(await find({})),
    /^no Ollama at http:\/\/127\.0\.0\.1:1 for vectors: .* -> OLLAMA_HOST=.* ollama serve$/,
  );
  await using empty = await startFakeOllama();
  const missing = reasonIn(await find({ base_url: empty.url }));
  assert.match(missing, /has no model nomic-embed-text -> OLLAMA_HOST=\S+ ollama pull nomic-embed-text$/);
  await using silent = await startFakeOllama({ faults: { "*": "silent" } });
  assert.match(reasonIn(await find({ base_url: silent.url })), /no answer in time/);
  await using page = await startFakeOllama({ faults: { "*": "html" } });
  assert.match(reasonIn(await find({ base_url: page.url })), /for vectors: /);
  assert.match(reasonIn(await find({ provider: "scripted" })), /^a scripted model gives no vectors/);
  assert.match(
    reasonIn(await find({ base_url: "http://127.0.0.1:0" })),
    /is not an address of an Ollama server/,
  );
});

test("a cancelled search is not remembered as having no embedder", async (t) => {
  await using ollama = await startEmbeddingOllama();
  await machine(t, { OLLAMA_HOST: ollama.server.url });
  using access = accessWith();
  assert.equal((await access.find(AbortSignal.abort())).kind, "none");
  assert.equal((await access.find(NEVER)).kind, "found");
});

test("nothing is sent to another machine's Ollama before an embed_model is chosen, and then only without secrets", async (t) => {
  await machine(t, {}, ["ollama/embedder-cloud:latest@a3de86cd1c13"]);
  const elsewhere = { base_url: "http://models.example.org:11434" };
  assert.match(
    reasonIn(await find(elsewhere)),
    /models\.example\.org:11434 is not this machine, .*nothing of the repository is sent there -> harness config set embed_model nomic-embed-text$/,
  );
  // A model that the server on this machine hands on.
  await using ollama = await startFakeOllama({ models: [{ name: "embedder-cloud" }] });
  const cloud = { base_url: ollama.url, embed_model: "embedder-cloud" };
  assert.match(
    reasonIn(await find(cloud)),
    /^embedder-cloud at http:\/\/127\.\S+ does not run on this machine/,
  );
  const found = await find(cloud, CHOSEN);
  assert.ok(found.kind === "found");
  assert.equal(found.local, false);
  assert.ok(!found.model.mask(`const a = "${TOKEN}"`).includes(TOKEN));
});

test("an API with keys embeds only if an embed_model is chosen; otherwise Ollama does", async (t) => {
  await using ollama = await startEmbeddingOllama();
  await machine(t, { OLLAMA_HOST: ollama.server.url }, ["openai/text-embedding-3-small"]);
  for (const [provider, origins] of [
    ["openai", {}],
    ["anthropic", {}],
    ["anthropic", CHOSEN],
  ] as const) {
    const found = await find({ provider, base_url: "https://api.example.org/v1" }, origins);
    assert.ok(found.kind === "found", provider);
    assert.deepEqual([found.server, found.local], [ollama.server.url, true]);
  }
  assert.match(reasonIn(await find({ provider: "openai" }, CHOSEN)), /^OPENAI_API_KEY is not set/);
  process.env["OPENAI_API_KEY"] = "sk-0123456789";
  const found = await find({ provider: "openai", embed_model: "text-embedding-3-small" }, CHOSEN);
  assert.ok(found.kind === "found");
  assert.deepEqual(
    [found.model.id, found.server, found.local],
    ["openai/text-embedding-3-small", "https://api.openai.com/v1", false],
  );
  assert.ok(!found.model.mask(`const a = "${TOKEN}"`).includes(TOKEN));
});

test("a custom server with OpenAI's API is checked for being reachable", async (t) => {
  await machine(t, {}, ["openai/bge-m3"]);
  const settings = { provider: "openai", embed_model: "bge-m3" } as const;
  await using listing = await startLoopback([{ body: JSON.stringify({ data: [{ id: "bge-m3" }] }) }]);
  await using refusing = await startLoopback([{ status: 404, body: "{}" }]);
  for (const server of [listing, refusing]) {
    const found = await find({ ...settings, base_url: `${server.url}/v1` }, CHOSEN);
    assert.ok(found.kind === "found");
    assert.deepEqual([found.local, found.model.mask(TOKEN)], [true, TOKEN]);
  }
  const gone = await find({ ...settings, base_url: "http://127.0.0.1:1/v1" }, CHOSEN);
  assert.match(reasonIn(gone), /^no embedding server at http:\/\/127\.0\.0\.1:1\/v1: /);
});

test("a model that returns no vectors in time is unusable, and one that was used before is not probed", async (t) => {
  await machine(t);
  const settings = { provider: "openai", embed_model: "bge-m3" } as const;
  await using broken = await startLoopback([
    { body: JSON.stringify({ data: [{ id: "bge-m3", max_model_len: 512 }] }) },
    { status: 400, body: JSON.stringify({ error: { message: "bge-m3 does not embed" } }) },
  ]);
  assert.match(reasonIn(await find({ ...settings, base_url: `${broken.url}/v1` }, CHOSEN)), /does not embed/);
  await using slow = await startEmbeddingOllama({ instead: () => true });
  assert.match(
    reasonIn(await find({ base_url: slow.server.url })),
    /^nomic-embed-text returned no vector in time/,
  );
  await machine(t, {}, ["ollama/nomic-embed-text:latest@a3de86cd1c13"]);
  const found = await find({ base_url: slow.server.url });
  assert.ok(found.kind === "found");
  assert.deepEqual([found.dimension, slow.requests.length], [1536, 1]);
});

test("an Ollama that is too old must be updated, not started", async (t) => {
  await using ollama = await startFakeOllama({ version: "0.1.0" });
  await machine(t, { OLLAMA_HOST: ollama.url });
  assert.match(reasonIn(await find({})), /Ollama 0\.1\.0 at .* is too old; .* -> update Ollama/);
});
