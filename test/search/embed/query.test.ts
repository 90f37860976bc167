import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { dimensionOf } from "../../../src/search/embed/dimension.ts";
import { queryVector } from "../../../src/search/embed/query.ts";
import { FakeEmbedder, hashVector, modelOf } from "../../fakes/embedder.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { NEVER } from "../embedded/words.ts";
import { cacheIn, DIMENSION } from "./index-of.ts";

function asking(said: string[]) {
  return { dimension: DIMENSION, signal: NEVER, warn: (text: string) => void said.push(text) };
}

test("a question is embedded as the model knows questions", async () => {
  const said: string[] = [];
  const embedder = new FakeEmbedder();
  const model = modelOf(embedder, { name: "nomic-embed-text" });
  const vector = await queryVector(model, " where is the lock taken? ", asking(said));
  const sent = "search_query: where is the lock taken?";
  assert.deepEqual([embedder.texts, vector, said], [[sent], hashVector(sent, DIMENSION), []]);
});

test("without a vector in time there is one line about it, with what to do, and no failure", async () => {
  const rows: readonly (readonly [answer: () => readonly Float32Array[] | Promise<never>, line: RegExp])[] = [
    [
      () => {
        throw new HarnessError(EXIT.model, "embeddings: connection refused", "ollama serve");
      },
      /^searching by words alone: embeddings: connection refused \(ollama serve\)$/,
    ],
    [() => [], /^searching by words alone: .*0 vectors came for 1 texts/],
    [() => [new Float32Array(3)], /a vector has 3 numbers, those of this model have 64/],
    [() => [new Float32Array(DIMENSION)], /all zeros/],
    // It does not heed its signal.
    [
      () => sleep(60_000, undefined as never, { ref: false }),
      /^searching by words alone: plain gave no vector within 0\.05 s$/,
    ],
  ];
  for (const [answer, line] of rows) {
    const said: string[] = [];
    const embedder = new FakeEmbedder();
    embedder.answers(answer);
    assert.equal(await queryVector(modelOf(embedder), "q", { ...asking(said), timeoutMs: 50 }), null);
    assert.equal(said.length, 1);
    assert.match(said[0] ?? "", line);
  }
});

test("one who no longer wants the answer is not told of words", async () => {
  const said: string[] = [];
  const abort = new AbortController();
  const embedder = new FakeEmbedder();
  embedder.answers(() => {
    abort.abort();
    return sleep(60_000, undefined as never, { ref: false });
  });
  const asked = queryVector(modelOf(embedder), "q", { ...asking(said), signal: abort.signal });
  await assert.rejects(asked, { name: "AbortError" });
  assert.deepEqual(said, []);
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
