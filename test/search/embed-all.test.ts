import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { BatchSize, embedAll } from "../../src/search/embed-all.ts";
import { type EmbedProgress, vectorsLine } from "../../src/search/index-vectors.ts";
import { FakeEmbedder, hashVector, modelOf } from "../fakes/embedder.ts";
import { scratch } from "../fixtures/scratch.ts";
import { vector } from "../fixtures/vectors.ts";
import { file, NEVER } from "./stores/words.ts";
import { cacheIn, DIMENSION, fill, openIndex, OPTIONS } from "./index-of.ts";

test("every chunk gets its vector once, and is found by it", async () => {
  await using place = await scratch();
  await using store = openIndex(place.at("index"));
  using cache = cacheIn(place.at("cache"));
  await fill(store, 200);
  const embedder = new FakeEmbedder();
  const model = modelOf(embedder);
  const told: EmbedProgress[] = [];
  const first = await embedAll(store, model, cache, {
    ...OPTIONS,
    onProgress: (each) => void told.push(each),
  });
  assert.deepEqual(first, {
    kind: "whole",
    embedded: 600,
    chunks: 600,
    reused: 0,
    asked: 600,
    reason: "",
    remedy: "",
  });
  assert.equal(new Set(embedder.texts).size, 600);
  assert.equal(embedder.texts.length, 600);
  assert.ok(embedder.requests.every(({ length }) => length <= 32));
  assert.deepEqual([told.at(-1)?.done, told.at(-1)?.total, told.at(-1)?.remainingMs], [600, 600, 0]);
  assert.ok(told.every(({ done }, at) => done > (told[at - 1]?.done ?? 0)));
  const again = await embedAll(store, model, cache, OPTIONS);
  assert.deepEqual([again.kind, again.asked, again.reused, embedder.texts.length], ["whole", 0, 0, 600]);

  const question = { text: "", vector: hashVector("src/f77.ts\n\nbeta 77 zebra", DIMENSION) };
  const [best] = await store.candidates(question, 3, NEVER);
  assert.deepEqual(
    [best?.chunk.path, best?.chunk.text, best?.lexical],
    ["src/f77.ts", "beta 77 zebra", null],
  );
  assert.ok((best?.dense ?? 0) > 0.999);
});

test("a text embedded before is not sent again: not for another index, after removal, or for a second file", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  const embedder = new FakeEmbedder();
  const model = modelOf(embedder);
  {
    await using store = openIndex(place.at("one"));
    await fill(store, 40);
    await embedAll(store, model, cache, OPTIONS);
    await store.clear(NEVER);
    await fill(store, 40);
    assert.equal((await store.counts(NEVER)).embedded, 0);
    const again = await embedAll(store, model, cache, OPTIONS);
    assert.deepEqual([again.kind, again.reused, again.asked], ["whole", 120, 0]);
  }
  await using store = openIndex(place.at("two"));
  await fill(store, 41);
  const outcome = await embedAll(store, model, cache, OPTIONS);
  assert.deepEqual([outcome.reused, outcome.asked, embedder.texts.length], [120, 3, 123]);
  await store.put([file("src/f3.ts", "alpha 3", "beta 3 zebra", "gamma 3, changed")], NEVER);
  assert.equal((await embedAll(store, model, cache, OPTIONS)).asked, 1);
});

test("without a cache everything is still embedded", async () => {
  await using place = await scratch({ cache: "no folder" });
  const said: string[] = [];
  using cache = cacheIn(place.at("cache"), said);
  await using store = openIndex(place.at("index"));
  await fill(store, 5);
  const outcome = await embedAll(store, modelOf(new FakeEmbedder()), cache, OPTIONS);
  assert.deepEqual([outcome.kind, outcome.embedded, said.length], ["whole", 15, 1]);
});

test("vectors of two models are never mixed", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  {
    await using store = openIndex(place.at("index"));
    await fill(store, 4);
    await embedAll(store, modelOf(new FakeEmbedder()), cache, OPTIONS);
  }
  const [id, dimension] = ["fake/other", 8];
  await using store = openIndex(place.at("index"), id, dimension);
  assert.deepEqual(await store.counts(NEVER), { files: 4, chunks: 12, embedded: 0 });
  const embedder = new FakeEmbedder(dimension);
  const outcome = await embedAll(store, modelOf(embedder, { id }), cache, { ...OPTIONS, dimension });
  assert.deepEqual([outcome.kind, outcome.embedded, outcome.reused], ["whole", 12, 0]);
  for (const { dense } of await store.candidates({ text: "", vector: hashVector("alpha 2", 8) }, 50, NEVER))
    assert.notEqual(dense, null);
});

const faults: readonly (readonly [
  name: string,
  bad: (texts: readonly string[]) => readonly Float32Array[],
  why: RegExp,
])[] = [
  [
    "fewer vectors",
    (texts) => texts.slice(1).map((text) => hashVector(text, DIMENSION)),
    /the model returned \d+ vectors for \d+ texts/,
  ],
  [
    "another length",
    (texts) => texts.map(() => vector(1, 2)),
    /a vector has 2 dimensions, but this model's vectors have 64/,
  ],
  [
    "invalid numbers",
    (texts) => texts.map(() => new Float32Array(DIMENSION).fill(Number.NaN)),
    /not a finite number/,
  ],
  ["zeros", (texts) => texts.map(() => new Float32Array(DIMENSION)), /all zeros/],
  [
    "no answer",
    () => {
      throw new HarnessError(EXIT.model, "embeddings: connection refused", "ollama serve");
    },
    /connection refused/,
  ],
];

for (const [name, bad, why] of faults)
  test(`an embedder that gives ${name} at some point is reported; finished vectors stay, and a later run continues`, async () => {
    await using place = await scratch();
    using cache = cacheIn(place.at("cache"));
    await using store = openIndex(place.at("index"));
    await fill(store, 60);
    const embedder = new FakeEmbedder();
    embedder.answers((texts) => (embedder.requests.length > 3 ? bad(texts) : embedder.vectorsOf(texts)));
    const outcome = await embedAll(store, modelOf(embedder), cache, OPTIONS);
    assert.equal(outcome.kind, "partial");
    assert.match(outcome.reason, why);
    assert.notEqual(outcome.remedy, "");
    const done = embedder.requests.slice(0, 3).flat().length;
    assert.deepEqual([outcome.embedded, outcome.chunks], [done, 180]);
    assert.equal(vectorsLine(done, 180), `${done} of 180 chunks have vectors`);
    // Two batches in progress, one test for each whether the text is at fault, and one at the end.
    assert.ok(embedder.requests.length <= 3 + 2 + 3, String(embedder.requests.length));
    const [found] = await store.candidates({ text: "zebra", vector: null }, 5, NEVER);
    assert.match(found?.chunk.text ?? "", /zebra/);

    embedder.answers(undefined);
    const before = embedder.texts.length;
    const rest = await embedAll(store, modelOf(embedder), cache, OPTIONS);
    assert.deepEqual([rest.kind, rest.embedded, embedder.texts.length - before], ["whole", 180, 180 - done]);
  });

test("a remembered vector length that no longer fits is forgotten", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  cache.learn("fake/plain", DIMENSION);
  await using store = openIndex(place.at("index"));
  await fill(store, 2);
  const outcome = await embedAll(store, modelOf(new FakeEmbedder(8)), cache, OPTIONS);
  assert.equal(outcome.kind, "partial");
  assert.equal(cache.dimension("fake/plain"), undefined);
});

test("one text that the model cannot embed does not cost the others their vectors", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  await using store = openIndex(place.at("index"));
  await fill(store, 30);
  const embedder = new FakeEmbedder();
  embedder.answers((texts) => {
    if (texts.some((text) => text.includes("beta 17 ")))
      throw new HarnessError(EXIT.model, "embeddings: HTTP 500");
    return embedder.vectorsOf(texts);
  });
  const outcome = await embedAll(store, modelOf(embedder), cache, OPTIONS);
  assert.deepEqual([outcome.kind, outcome.embedded, outcome.chunks], ["partial", 89, 90]);
  assert.equal(outcome.reason, "plain returned no vector for a text in src/f17.ts");
});

test("a model that fails on text after text is not asked about each of them", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  await using store = openIndex(place.at("index"));
  await fill(store, 300);
  const embedder = new FakeEmbedder();
  embedder.answers((texts) => {
    if (texts.some((text) => text.includes(".ts")))
      throw new HarnessError(EXIT.model, "embeddings: HTTP 500");
    return embedder.vectorsOf(texts);
  });
  const outcome = await embedAll(store, modelOf(embedder), cache, OPTIONS);
  assert.deepEqual([outcome.kind, outcome.embedded, outcome.reason], ["partial", 0, "embeddings: HTTP 500"]);
  assert.ok(embedder.requests.length < 150, String(embedder.requests.length));
});

test("cancelling keeps finished vectors, and starts no further request", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  await using store = openIndex(place.at("index"));
  await fill(store, 60);
  const abort = new AbortController();
  const embedder = new FakeEmbedder();
  embedder.answers((texts, signal) => {
    if (embedder.requests.length === 3) abort.abort();
    signal.throwIfAborted();
    return embedder.vectorsOf(texts);
  });
  const outcome = await embedAll(store, modelOf(embedder), cache, {
    ...OPTIONS,
    signal: abort.signal,
    concurrency: 1,
  });
  const done = embedder.requests.slice(0, 2).flat().length;
  assert.deepEqual([outcome.kind, outcome.embedded, embedder.requests.length], ["cancelled", done, 3]);
});

test("no more requests run at once than allowed", async () => {
  await using place = await scratch();
  using cache = cacheIn(place.at("cache"));
  for (const concurrency of [1, 2, 4]) {
    await using store = openIndex(place.at(`index ${concurrency}`), "m");
    await fill(store, 100);
    const embedder = new FakeEmbedder();
    let [now, most] = [0, 0];
    embedder.answers(async (texts) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 2));
      now -= 1;
      return embedder.vectorsOf(texts);
    });
    const model = modelOf(embedder, { id: `fake/${concurrency}` });
    const outcome = await embedAll(store, model, cache, { ...OPTIONS, concurrency });
    assert.deepEqual([outcome.asked, most], [300, concurrency]);
  }
});

function sizeAfter(...took: readonly (readonly [texts: number, ms: number])[]): number {
  const size = new BatchSize();
  for (const [texts, ms] of took) size.took(texts, ms);
  return size.texts;
}

test("a request has as many texts as take about a second, from 1 to 32", () => {
  assert.equal(sizeAfter(), 8);
  assert.equal(sizeAfter([8, 1000]), 8);
  assert.equal(sizeAfter([8, 1600]), 5, "five texts a second");
  assert.equal(sizeAfter([8, 60_000]), 1, "a model that had to be loaded is slow at first");
  assert.equal(sizeAfter([8, 60_000], [1, 10], [2, 10], [4, 10]), 8, "and is fast afterwards");
  assert.equal(sizeAfter([8, 1], [16, 1], [32, 1]), 32);
  assert.equal(sizeAfter([3, 0]), 16);
});

test("an aborted run leaves a slow server only a few texts, and the next run continues from there", async () => {
  await using place = await scratch();
  await using store = openIndex(place.at("index"));
  using cache = cacheIn(place.at("cache"));
  await fill(store, 60);
  const embedder = new FakeEmbedder();
  const leave = new AbortController();
  const under = { way: 0 };
  embedder.answers(async (texts) => {
    if (leave.signal.aborted) return embedder.vectorsOf(texts);
    under.way += texts.length;
    // Fifty texts a second.
    await new Promise((resolve) => setTimeout(resolve, texts.length * 20));
    under.way -= texts.length;
    if (embedder.texts.length > 60) leave.abort();
    return embedder.vectorsOf(texts);
  });
  const first = await embedAll(store, modelOf(embedder), cache, { ...OPTIONS, signal: leave.signal });
  assert.equal(first.kind, "cancelled");
  assert.ok(first.embedded >= 8 && first.embedded < 180, String(first.embedded));
  assert.ok(under.way <= 32, `${under.way} texts were still being computed`);
  const rest = await embedAll(store, modelOf(embedder), cache, OPTIONS);
  assert.deepEqual([rest.kind, rest.embedded], ["whole", 180]);
});
