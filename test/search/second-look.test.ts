import assert from "node:assert/strict";
import { test } from "node:test";
import { rank } from "../../src/search/rank-hits.ts";
import { WEIGHTS } from "../../src/search/weights.ts";
import type { ScoredChunk } from "../../src/search/search-store.ts";
import { chunk } from "./stores/words.ts";

const pathOf = (at: number): string => `src/f${String(at).padStart(3, "0")}.ts`;

/** A hundred files found by words, the best first, with the given nearness. */
const found = (dense: (at: number) => number | null): readonly ScoredChunk[] =>
  Array.from({ length: 100 }, (_, at) => ({
    chunk: chunk(pathOf(at), `zebra ${at}`),
    lexical: 100 - at,
    dense: dense(at),
  }));

const paths = (candidates: readonly ScoredChunk[], dense = WEIGHTS.dense): readonly string[] =>
  rank(candidates, "zebra", 100, { ...WEIGHTS, dense }).map(({ path }) => path);
const words = paths(found(() => null));

test("among the best files by words the nearest in meaning comes first, and the others keep their order", () => {
  const near = paths(found((at) => (at === 4 ? 0.9 : 0.1)));
  assert.deepEqual(near, [pathOf(4), ...words.filter((path) => path !== pathOf(4))]);
});

test("files further back by words are not moved, however near they are", () => {
  assert.deepEqual(paths(found((at) => (at === 15 ? 1 : 0.1))), words);
});

test("vectors change nothing if all are equal, few exist, or their weight is zero", () => {
  assert.deepEqual(paths(found(() => 0.5)), words);
  assert.deepEqual(paths(found((at) => (at < 2 ? at : null))), words);
  assert.deepEqual(
    paths(
      found((at) => at / 100),
      0,
    ),
    words,
  );
});

test("a difference below the accuracy of stores changes nothing", () => {
  assert.deepEqual(paths(found((at) => 0.5 + (at % 10) / 10_000)), words);
  // Means of equal numbers are not always that number.
  assert.deepEqual(paths(found((at) => (at === 1 ? null : 0.1))), words);
});

test("results found only by vectors come after all found by words, and first where words find nothing", () => {
  const alone = { chunk: chunk("src/alone.ts", "horse"), lexical: null, dense: 1 };
  assert.deepEqual(
    paths([...found(() => 0.1), alone]),
    [...words.slice(0, 99), pathOf(99), "src/alone.ts"].slice(0, 100),
  );
  const other = { chunk: chunk("src/other.ts", "horse"), lexical: null, dense: 0.4 };
  assert.deepEqual(paths([other, alone]), ["src/alone.ts", "src/other.ts"]);
});

test("a file without a vector yet is ranked by its words", () => {
  const some = paths(found((at) => (at === 0 ? null : at === 1 ? 0.2 : 0.1)));
  assert.deepEqual(new Set(some.slice(0, 2)), new Set([pathOf(0), pathOf(1)]));
});

/** Pieces of ten files that words found, with the nearness of each. */
const ten = (dense: (at: number) => number): readonly ScoredChunk[] => found(dense).slice(0, 10);

test("a piece without any word of the question moves no file", () => {
  const between = ten((at) => (at === 4 ? 0.5 : 0.4));
  const alone = { chunk: chunk(pathOf(7), "horse"), lexical: null, dense: 1 };
  assert.deepEqual(paths([...between, alone]).slice(0, 10), paths(between));
});

test("a list of imports speaks for a file only if words found nothing else in it", () => {
  const between = ten((at) => (at === 4 ? 0.5 : 0.4));
  const imports = (at: number): ScoredChunk => ({
    chunk: { ...chunk(pathOf(at), "zebra import"), kind: "imports" },
    lexical: 0.5,
    dense: 1,
  });
  assert.equal(paths([...between, imports(7)])[0], paths(between)[0]);
  const only = [
    ...between.filter(({ chunk: { path } }) => path !== pathOf(7)),
    { ...imports(7), lexical: 93 },
  ];
  assert.equal(paths(only)[0], pathOf(7));
});

const close = (at: number): number => 0.5 + (9 - at) / 1000;

test("files that are equally near keep their order, however far other pieces are", () => {
  assert.notDeepEqual(paths(ten((at) => 0.5 - close(at))), words.slice(0, 10));
  const far = found((at) => (at < 10 ? 1 - close(at) : 0.1));
  assert.deepEqual(paths(far), words);
});
