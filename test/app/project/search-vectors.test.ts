import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { RunVectors } from "../../../src/app/project/search-of-run.ts";
import { SearchVectors } from "../../../src/app/project/search-access.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import { NO_FACTS } from "../../../src/search/catalog.ts";
import { openVectorCache } from "../../../src/search/embed-model.ts";
import { EMBED_MODEL, type EmbeddingOllama, startEmbeddingOllama } from "../../fakes/embedding-ollama.ts";
import { sendJson } from "../../fakes/ollama-server.ts";
import { memorySearchStore } from "../../fakes/search-store.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { file, NEVER } from "../../search/stores/words.ts";

/** As indexes call it. */
async function modelOf({ server }: EmbeddingOllama): Promise<string> {
  const { models } = (await (await fetch(`${server.url}/api/tags`)).json()) as {
    readonly models: readonly { readonly name: string; readonly digest: string }[];
  };
  const [{ name, digest } = assert.fail("no model")] = models;
  return `ollama/${name}@${digest.slice(0, 12)}`;
}

type Index = Parameters<SearchVectors["of"]>[0];

/** An index with one new chunk, whose vectors are of this server's model; settings and cache are of this test alone. */
async function indexFor(t: TestContext, place: Scratch, ollama: EmbeddingOllama): Promise<Index> {
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
  const store = memorySearchStore(new Map(), { index: "a1", vectors: { model, dimension: 64 } });
  await store.put([file("a.ts", "alpha")], NEVER);
  return { facts: { ...NO_FACTS, store: "embedded" as const, model, dimension: 64 }, store };
}

const SETTINGS = { ...DEFAULTS, embed_model: EMBED_MODEL };

/** What is noted of a search in such an index. */
async function searched(t: TestContext, ollama: EmbeddingOllama): Promise<readonly string[]> {
  await using place = await scratch();
  const index = await indexFor(t, place, ollama);
  const notes: string[] = [];
  using vectors = new SearchVectors({
    host: hostFrom(process.env),
    settings: SETTINGS,
    origins: {},
    note: (text) => void notes.push(text),
  });
  await vectors.embedSome(index, NEVER);
  const { length } = ollama.requests;
  const vector = await vectors.of(index, "alpha", NEVER);
  if (vector === null) assert.equal(ollama.requests.length, length, "it was asked again");
  else assert.ok(ollama.requests.length > length);
  return notes;
}

test("a working model is asked for the vector of the question", async (t) => {
  await using ollama = await startEmbeddingOllama();
  assert.deepEqual(await searched(t, ollama), []);
});

test("a model that fails or hangs on new text is not asked for the question, with one notice", async (t) => {
  await using failing = await startEmbeddingOllama({
    instead: (_texts, response) => (sendJson(response, { error: "out of memory" }, 500), true),
  });
  const said = await searched(t, failing);
  assert.equal(said.length, 1);
  assert.match(String(said[0]), /^searching by words only: .*out of memory/);
  await using silent = await startEmbeddingOllama({ instead: () => true });
  const late = await searched(t, silent);
  assert.deepEqual(late, [`searching by words only: ${EMBED_MODEL} returned no vector within 3 s`]);
});

test("a model that failed is skipped by later searches and tried again after a minute", async (t) => {
  const down = { yes: true };
  await using ollama = await startEmbeddingOllama({
    instead: (_texts, response) => down.yes && (sendJson(response, { error: "out of memory" }, 500), true),
  });
  await using place = await scratch();
  const index = await indexFor(t, place, ollama);
  const clock = { now: 0 };
  using vectors = new SearchVectors(
    { host: hostFrom(process.env), settings: SETTINGS, origins: {}, note: () => undefined },
    () => clock.now,
  );
  const search = async (): Promise<boolean> => {
    await vectors.embedSome(index, NEVER);
    return (await vectors.of(index, "alpha", NEVER)) !== null;
  };
  assert.equal(await search(), false);
  const { length } = ollama.requests;
  assert.ok(length > 0);
  down.yes = false;
  for (clock.now of [1, 59_999]) assert.equal(await search(), false);
  assert.equal(ollama.requests.length, length, "it was asked in between");
  clock.now = 60_000;
  assert.equal(await search(), true);
});

test("the searches of a run share what is known about a model, until the settings name another one", async (t) => {
  await using ollama = await startEmbeddingOllama({
    instead: (_texts, response) => (sendJson(response, { error: "out of memory" }, 500), true),
  });
  await using place = await scratch();
  const index = await indexFor(t, place, ollama);
  using run = new RunVectors(hostFrom(process.env), {});
  assert.equal(await run.for(SETTINGS).of(index, "alpha", NEVER), null);
  const { length } = ollama.requests;
  assert.equal(await run.for({ ...SETTINGS, max_turns: 3 }).of(index, "beta", NEVER), null);
  assert.equal(ollama.requests.length, length, "it was asked again");
  assert.notEqual(run.for({ ...SETTINGS, embed_model: "other" }), run.for(SETTINGS));
});

test("an index with the vectors of another model is searched by words alone and stays unchanged", async (t) => {
  await using ollama = await startEmbeddingOllama();
  await using place = await scratch();
  const index = await indexFor(t, place, ollama);
  const others = { ...index, facts: { ...index.facts, model: "ollama/other@0" } };
  const notes: string[] = [];
  const note = (text: string): void => void notes.push(text);
  using vectors = new SearchVectors({ host: hostFrom(process.env), settings: SETTINGS, origins: {}, note });
  await vectors.embedSome(others, NEVER);
  assert.equal((await index.store.counts(NEVER)).embedded, 0);
  assert.equal(await vectors.of(others, "alpha", NEVER), null);
  assert.deepEqual(notes, [
    "searching by words only: the stored vectors are from ollama/other@0; harness index creates new ones",
  ]);
});
