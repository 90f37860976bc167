import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { dimensionOf, queryVector } from "../../src/search/embed-model.ts";
import { FakeEmbedder, hashVector, modelOf } from "../fakes/embedder.ts";
import { scratch } from "../fixtures/scratch.ts";
import { NEVER } from "./stores/words.ts";
import { cacheIn, DIMENSION } from "./index-of.ts";

const ASKING = { dimension: DIMENSION, signal: NEVER };

test("a question is embedded as the model knows questions", async () => {
  const embedder = new FakeEmbedder();
  const model = modelOf(embedder, { name: "nomic-embed-text" });
  const made = await queryVector(model, " where is the lock taken? ", ASKING);
  const sent = "search_query: where is the lock taken?";
  assert.deepEqual(embedder.texts, [sent]);
  assert.deepEqual(made, { kind: "vector", vector: hashVector(sent, DIMENSION) });
});

test("without a vector in time there is one reason for it, with what to do, and no failure", async () => {
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
    // It does not heed its signal.
    [() => sleep(60_000, undefined as never, { ref: false }), /^plain gave no vector within 0\.05 s$/],
  ];
  for (const [answer, why] of rows) {
    const embedder = new FakeEmbedder();
    embedder.answers(answer);
    const made = await queryVector(modelOf(embedder), "q", { ...ASKING, timeoutMs: 50 });
    assert.match(made.kind === "none" ? made.reason : assert.fail("a vector came"), why);
  }
});

test("one who no longer wants the answer gets none", async () => {
  const abort = new AbortController();
  const embedder = new FakeEmbedder();
  embedder.answers(() => {
    abort.abort();
    return sleep(60_000, undefined as never, { ref: false });
  });
  const asked = queryVector(modelOf(embedder), "q", { ...ASKING, signal: abort.signal });
  await assert.rejects(asked, { name: "AbortError" });
});

test("a model is asked for the length of its vectors once, then it is known", async () => {
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
