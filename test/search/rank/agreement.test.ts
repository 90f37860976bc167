import assert from "node:assert/strict";
import { test } from "node:test";
import { agreement, rank } from "../../../src/search/rank/rank-hits.ts";
import { WEIGHTS } from "../../../src/search/rank/weights.ts";
import type { Candidate } from "../../../src/search/search-store.ts";
import { chunk } from "../embedded/words.ts";

const pathOf = (at: number): string => `src/f${String(at).padStart(3, "0")}.ts`;

/** A hundred that words have found, the best first, each as near as it is said. */
const found = (dense: (at: number) => number | null): readonly Candidate[] =>
  Array.from({ length: 100 }, (_, at) => ({
    chunk: chunk(pathOf(at), `zebra ${at}`),
    lexical: 100 - at,
    dense: dense(at),
  }));

test("vectors agree with words as far as they tell the best of them from the rest", () => {
  assert.equal(agreement(found((at) => 1 - at / 100)), 1);
  assert.equal(agreement(found((at) => at / 100)), 0);
  assert.equal(agreement(found(() => 0.5)), 0, "what is the same for all tells nothing");
  const some = agreement(found((at) => (at < 10 ? 0.35 + at / 30 : (at % 10) / 10)));
  assert.ok(some > 0 && some < 1, `${some}`);
});

test("of few chunks it cannot be told, and of those without a vector neither", () => {
  assert.equal(agreement(found((at) => at / 100).slice(0, 49)), 1);
  assert.equal(agreement(found((at) => at / 100).slice(0, 50)), 0);
  assert.equal(agreement(found(() => null)), 1);
});

const paths = (candidates: readonly Candidate[]): readonly string[] =>
  rank(candidates, "zebra", 20).map(({ path }) => path);

test("vectors that do not agree with the words of a question change nothing of its answer", () => {
  const words = found(() => null);
  assert.deepEqual(paths(found((at) => at / 100)), paths(words));
  assert.notDeepEqual(paths(found((at) => (at === 15 ? 1 : 0.9 - at / 200))), paths(words));
  const left = rank(
    found((at) => (at === 15 ? 1 : 0.9 - at / 200)),
    "zebra",
    20,
    { ...WEIGHTS, dense: 0 },
  );
  assert.deepEqual(
    left.map(({ path }) => path),
    paths(words),
  );
});
