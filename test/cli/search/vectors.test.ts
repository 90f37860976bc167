import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { SearchVectors } from "../../../src/cli/search/vectors.ts";
import { DEFAULTS } from "../../../src/config/schema.ts";
import { NO_FACTS } from "../../../src/search/catalog/rows.ts";
import { openVectorCache } from "../../../src/search/embed/cache.ts";
import { EMBED_MODEL, type EmbeddingOllama, startEmbeddingOllama } from "../../fakes/embedding-ollama.ts";
import { sendJson } from "../../fakes/ollama-server.ts";
import { memorySearchStore } from "../../fakes/search-store.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { file, NEVER } from "../../search/embedded/words.ts";

/** As indexes call it. */
async function modelOf({ server }: EmbeddingOllama): Promise<string> {
  const { models } = (await (await fetch(`${server.url}/api/tags`)).json()) as {
    readonly models: readonly { readonly name: string; readonly digest: string }[];
  };
  const [{ name, digest } = assert.fail("no model")] = models;
  return `ollama/${name}@${digest.slice(0, 12)}`;
}

/** What is noted of a search over an index with one new chunk, whose vectors are of this server's model. */
async function searched(t: TestContext, ollama: EmbeddingOllama): Promise<readonly string[]> {
  await using place = await scratch();
  const env = { OLLAMA_HOST: ollama.server.url, XDG_CONFIG_HOME: place.path, XDG_CACHE_HOME: place.at("c") };
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  t.after(() => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  const model = await modelOf(ollama);
  {
    using cache = openVectorCache(place.at("c/harness/vectors"), { warn: assert.fail });
    cache.learn(model, 64);
  }
  await using store = memorySearchStore(new Map(), { index: "a1", vectors: { model, dimension: 64 } });
  await store.put([file("a.ts", "alpha")], NEVER);
  const index = { facts: { ...NO_FACTS, store: "embedded" as const, model, dimension: 64 }, store };
  const notes: string[] = [];
  const settings = { ...DEFAULTS, embed_model: EMBED_MODEL };
  using vectors = new SearchVectors({ settings, origins: {}, note: (text) => void notes.push(text) });
  await vectors.embedSome(index, NEVER);
  const { length } = ollama.requests;
  const vector = await vectors.of(index, "alpha", NEVER);
  if (vector === null) assert.equal(ollama.requests.length, length, "it was asked again");
  else assert.ok(ollama.requests.length > length);
  return notes;
}

test("a model that gives vectors is asked for that of the question", async (t) => {
  await using ollama = await startEmbeddingOllama();
  assert.deepEqual(await searched(t, ollama), []);
});

test("a model that fails or hangs at what is new is not asked for the question, and that is said once", async (t) => {
  await using failing = await startEmbeddingOllama({
    instead: (_texts, response) => (sendJson(response, { error: "out of memory" }, 500), true),
  });
  const said = await searched(t, failing);
  assert.equal(said.length, 1);
  assert.match(String(said[0]), /^searching by words alone: .*out of memory/);
  await using silent = await startEmbeddingOllama({ instead: () => true });
  const late = await searched(t, silent);
  assert.deepEqual(late, [`searching by words alone: ${EMBED_MODEL} gave no vector within 3 s`]);
});
