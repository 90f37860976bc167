import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_FACTS } from "../../src/search/catalog.ts";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { rank } from "../../src/search/rank-hits.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { measuredWorth, type CommitQuestion, weightBy } from "../../src/search/measure-worth.ts";
import { isDue, type VectorWorth, WAY, weightIn, worthIn } from "../../src/search/index-vectors.ts";
import { wordFor } from "../contract/search-store-words.ts";
import { scratch } from "../fixtures/scratch.ts";
import { file, NEVER } from "./stores/words.ts";

const MODEL = "fake/plain";
const DIMENSION = 64;
const FILES = 60;
const TWINS = 5;

/** A reproducible random generator. */
function dice(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32 - 0.5;
}

const pathOf = (at: number): string => `src/${wordFor(at)}.ts`;

/** Each file shares its words with four others, so that words alone find the right one among five. */
const project = Array.from({ length: FILES }, (_, at) =>
  file(pathOf(at), `common ${wordFor(100 + Math.floor(at / TWINS))} shared line\n${wordFor(300 + at)}`),
);
const told: readonly CommitQuestion[] = Array.from({ length: FILES }, (_, at) => ({
  question: `common shared ${wordFor(100 + Math.floor(at / TWINS))}`,
  answers: new Set([pathOf(at)]),
}));

const axisOf = (at: number): Float32Array => {
  const vector = new Float32Array(DIMENSION);
  vector[at % DIMENSION] = 1;
  return vector;
};
const random = (seed: number): Float32Array => {
  const next = dice(seed * 7919 + 1);
  return Float32Array.from({ length: DIMENSION }, next);
};
/** A vector near the files that share the right file's words, but not near the right file. */
const away = (at: number): Float32Array =>
  Float32Array.from({ length: DIMENSION }, (_, file) =>
    file !== at && Math.floor(file / TWINS) === Math.floor(at / TWINS) ? 1 : 0,
  );

const QUESTION_VECTORS: Readonly<Record<string, (at: number) => Float32Array>> = {
  helpful: axisOf,
  noise: random,
  harmful: away,
};

async function filled(folder: string): Promise<SearchStore> {
  const store = openEmbeddedStore(folder, { index: "a1", vectors: { model: MODEL, dimension: DIMENSION } });
  await store.put(project, NEVER);
  const vectors = project.map(({ chunks }, at) => [chunks[0]?.id ?? "", axisOf(at)] as const);
  await store.embed(new Map(vectors), NEVER);
  return store;
}

async function markOf(
  store: SearchStore,
  vectorAt: (at: number) => Float32Array,
  dense: number,
): Promise<number> {
  let sum = 0;
  for (const [at, { question, answers }] of told.entries()) {
    const found = await store.candidates({ text: question, vector: vectorAt(at) }, 200, NEVER);
    const hits = rank(found, question, 20, { ...WEIGHTS, dense });
    const place = hits.findIndex(({ path }) => answers.has(path));
    sum += place === -1 || place > 9 ? 0 : 1 / (place + 1);
  }
  return sum / told.length;
}

for (const [kind, vectorAt] of Object.entries(QUESTION_VECTORS))
  test(`vectors that are ${kind} get a measured weight, with which answers are not worse than by words alone, except by chance`, async () => {
    await using place = await scratch();
    await using store = await filled(place.at("index"));
    let asked = 0;
    const worth = await measuredWorth(store, told, {
      model: MODEL,
      vectorOf: () => Promise.resolve(vectorAt(asked++)),
      signal: NEVER,
    });
    assert.ok(worth !== null && worth.questions === FILES && worth.chunks === FILES);
    const [words, vectors] = [await markOf(store, vectorAt, 0), await markOf(store, vectorAt, worth.weight)];
    assert.ok(Math.abs(worth.words - words) < 0.001 && Math.abs(worth.vectors - vectors) < 0.001);
    assert.ok(vectors > words - 0.03, `${vectors} against ${words}`);
    if (kind === "helpful") {
      assert.ok(worth.weight > 0);
      assert.ok(vectors > words + 0.1, `${vectors} against ${words}`);
    }
    if (kind === "harmful") assert.equal(worth.weight, 0, "left out");
  });

const vectorOf = (): Promise<Float32Array> => Promise.resolve(axisOf(1));

test("too few questions or a model that does not answer give no measurement", async () => {
  await using place = await scratch();
  await using store = await filled(place.at("index"));
  const means = { model: MODEL, signal: NEVER };
  assert.equal(await measuredWorth(store, told.slice(0, 24), { ...means, vectorOf }), null);
  assert.notEqual(await measuredWorth(store, told.slice(0, 25), { ...means, vectorOf }), null);
  assert.equal(await measuredWorth(store, told, { ...means, vectorOf: () => Promise.resolve(null) }), null);
});

test("a measurement holds for its model, and until the size of the index changes", () => {
  const worth = { way: WAY, model: MODEL, weight: 0, questions: 60, chunks: 100, words: 0.5, vectors: 0.4 };
  const [same, other, none] = [
    { model: MODEL, worth },
    { model: "fake/other", worth },
    { model: MODEL, worth: null },
  ];
  assert.deepEqual([same, other, none].map(weightIn), [0, WEIGHTS.dense, WEIGHTS.dense]);
  assert.deepEqual(
    [isDue(none, 100), isDue(other, 100), isDue(same, 126), isDue(same, 125)],
    [true, true, true, false],
  );
});

test("a weight measured by an earlier version in another way is ignored, and measured again", () => {
  const earlier = { model: MODEL, weight: 0.6, questions: 60, chunks: 100, words: 0.5, vectors: 0.6 };
  const facts = { ...NO_FACTS, model: MODEL, worth: earlier as VectorWorth };
  assert.equal(weightIn(facts), WEIGHTS.dense);
  assert.equal(worthIn(facts), null);
  assert.equal(isDue(facts, 100), true);
});

const weightOf = (mild: number, more: number): number =>
  weightBy(
    [0.5, 0.5],
    new Map([
      [0.15, [mild]],
      [0.3, [more]],
    ]),
  );

test("a weight is used where it improves answers, as does each smaller one", () => {
  assert.deepEqual(
    [weightOf(0.6, 0.7), weightOf(0.6, 0.55), weightOf(0.4, 0.7), weightOf(0.5, 0.7)],
    [0.3, 0.15, 0, 0],
  );
});
