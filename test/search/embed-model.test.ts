import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { maskSecrets } from "../../src/core/secrets.ts";
import {
  dimensionOf,
  documentText,
  queryText,
  queryVector,
  tasksOf,
  vectorsFrom,
} from "../../src/search/embed-model.ts";
import { FakeEmbedder, hashVector, modelOf } from "../fakes/embedder.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { scratch } from "../fixtures/scratch.ts";
import { NEVER } from "./stores/words.ts";
import { cacheIn, DIMENSION } from "./index-of.ts";

const named = (name: string) => modelOf(new FakeEmbedder(), { name });

test("each model gets the prefixes that it was trained with", () => {
  const rows: readonly (readonly [name: string, document: string, query: RegExp])[] = [
    ["nomic-embed-text", "search_document: ", /^search_query: $/],
    ["nomic-embed-text:v1.5", "search_document: ", /^search_query: $/],
    ["manutic/nomic-embed-code:7b", "", /^Represent this query for searching relevant code: $/],
    ["mxbai-embed-large", "", /^Represent this sentence/],
    ["snowflake-arctic-embed:335m", "", /^Represent this sentence/],
    ["snowflake-arctic-embed2", "", /^query: $/],
    ["snowflake-arctic-embed-l-v2.0", "", /^query: $/],
    ["jeffh/intfloat-multilingual-e5-large:f16", "passage: ", /^query: $/],
    ["intfloat/e5-base-v2", "passage: ", /^query: $/],
    ["intfloat/e5-mistral-7b-instruct", "", /^Instruct: /],
    ["bge-large", "", /^Represent this sentence/],
    ["BAAI/bge-small-en-v1.5", "", /^Represent this sentence/],
    ["bge-m3", "", /^$/],
    ["qwen3-embedding:0.6b", "", /^Instruct: .*\nQuery:$/],
    ["embeddinggemma", "title: none | text: ", /^task: code retrieval \| query: $/],
    ["all-minilm", "", /^$/],
    ["text-embedding-3-small", "", /^$/],
    ["some-code5-model", "", /^$/],
  ];
  for (const [name, document, query] of rows) {
    assert.equal(tasksOf(name).document, document, name);
    assert.match(tasksOf(name).query, query, name);
  }
});

test("a chunk is embedded with its path and symbol before its text, up to the maximum length", () => {
  const chunk = { path: "src/a.ts", symbol: "Store.close", text: "close() {}" };
  assert.equal(
    documentText(named("nomic-embed-text"), chunk),
    "search_document: src/a.ts\nStore.close\n\nclose() {}",
  );
  assert.equal(documentText(named("other"), { ...chunk, symbol: null }), "src/a.ts\n\nclose() {}");
  const long = documentText(named("other"), { ...chunk, text: "😀".repeat(20_000) });
  assert.ok(long.length <= 6000);
  assert.ok(long.isWellFormed());
  assert.ok(queryText(named("other"), ` ${"why ".repeat(2000)}`).length <= 2000);
});

test("text for another machine is sent without secrets, even where it is cut", () => {
  const token = `ghp_${"a1B2c3D4e5".repeat(4)}`.slice(0, 40);
  const model = modelOf(new FakeEmbedder(), { mask: maskSecrets });
  const room = "x ".repeat(2985);
  for (const text of [
    documentText(model, { path: `${token}.ts`, symbol: token, text: `const a = "${token}"` }),
    documentText(model, { path: "a.ts", symbol: null, text: `${room}${token}` }),
    queryText(model, `who uses ${token}?`),
  ])
    assert.ok(!text.includes(token.slice(0, 12)), text.slice(-80));
  const local = documentText(modelOf(new FakeEmbedder()), { path: "a.ts", symbol: null, text: token });
  assert.ok(local.includes(token));
});

const ASKING = { dimension: DIMENSION, signal: NEVER };

test("a question is embedded with the model's prefix for questions", async () => {
  const embedder = new FakeEmbedder();
  const model = modelOf(embedder, { name: "nomic-embed-text" });
  const made = await queryVector(model, " where is the lock taken? ", ASKING);
  const sent = "search_query: where is the lock taken?";
  assert.deepEqual(embedder.texts, [sent]);
  assert.deepEqual(made, { kind: "vector", vector: hashVector(sent, DIMENSION) });
});

test("a vector that cannot be had in time gives a reason with a next step, and no failure", async () => {
  const rows: readonly (readonly [answer: () => readonly Float32Array[] | Promise<never>, why: RegExp])[] = [
    [
      () => {
        throw new HarnessError(EXIT.model, "embeddings: connection refused", "ollama serve");
      },
      /^embeddings: connection refused \(ollama serve\)$/,
    ],
    [() => [], /the model returned 0 vectors for 1 texts/],
    [() => [new Float32Array(3)], /a vector has 3 dimensions, but this model's vectors have 64/],
    [() => [new Float32Array(DIMENSION)], /all zeros/],
    // It ignores its signal.
    [() => sleep(60_000, undefined as never, { ref: false }), /^plain gave no vector within 0\.05 s$/],
  ];
  for (const [answer, why] of rows) {
    const embedder = new FakeEmbedder();
    embedder.answers(answer);
    const made = await queryVector(modelOf(embedder), "q", { ...ASKING, timeoutMs: 50 });
    assert.match(made.kind === "none" ? made.reason : assert.fail("a vector came"), why);
  }
});

test("an aborted question gets no answer", async () => {
  const abort = new AbortController();
  const embedder = new FakeEmbedder();
  embedder.answers(() => {
    abort.abort();
    return sleep(60_000, undefined as never, { ref: false });
  });
  const asked = queryVector(modelOf(embedder), "q", { ...ASKING, signal: abort.signal });
  await assert.rejects(asked, { name: "AbortError" });
});

test("a model is asked for the length of its vectors only once", async () => {
  await using place = await scratch();
  const embedder = new FakeEmbedder(7);
  for (let turn = 0; turn < 2; turn += 1) {
    using cache = cacheIn(place.at("cache"));
    assert.equal(await dimensionOf(modelOf(embedder), cache, NEVER), 7);
  }
  assert.equal(embedder.requests.length, 1);
  using cache = cacheIn(place.at("cache"));
  embedder.answers(() => [new Float32Array()]);
  await assert.rejects(dimensionOf(modelOf(embedder, { id: "other" }), cache, NEVER), HarnessError);
});

test("after an abort no model is asked", async () => {
  const reason = new Error("given up");
  const embedder = { embed: () => assert.fail("it was asked") };
  await assert.rejects(vectorsFrom({ embedder }, ["text"], AbortSignal.abort(reason)), reason);
});

test("a model that ignores its signal is abandoned on abort", { timeout: 10_000 }, async () => {
  const stop = new AbortController();
  const reason = new Error("given up");
  const embedder = { embed: () => new Promise<never>(() => undefined) };
  const left = vectorsFrom({ embedder }, ["text"], stop.signal);
  stop.abort(reason);
  await assert.rejects(left, reason);
});
