import assert from "node:assert/strict";
import test from "node:test";
import { answersIn } from "../../../src/search/index/answer.ts";
import type { Candidate, SearchStore } from "../../../src/search/store.ts";
import { chunk } from "../embedded/words.ts";

const found = (path: string, lexical: number): Candidate => ({
  chunk: chunk(path, "open the gate"),
  lexical,
  dense: null,
});

/** A store in which so many pieces elsewhere are better than the three that lie below `far`. */
function behind(count: number): SearchStore {
  const better = Array.from({ length: count }, (_, at) => found(`near/f${at}.ts`, 9));
  const all = [...better, ...["far/a.ts", "far/b.ts", "farther/c.ts"].map((path) => found(path, 1))];
  return { candidates: async (_: unknown, limit: number) => all.slice(0, limit) } as unknown as SearchStore;
}

async function below(count: number, limit: number): Promise<readonly [readonly string[], boolean]> {
  const asked = { text: "open the gate", vector: null, limit, below: "far" };
  const { hits, whole } = await answersIn(behind(count), asked, new AbortController().signal);
  return [hits.map(({ path }) => path).toSorted(), whole];
}

test("what lies below a folder is found behind much that is better elsewhere", async () => {
  assert.deepEqual(await below(1000, 2), [["far/a.ts", "far/b.ts"], true]);
  assert.deepEqual(await below(1000, 10), [["far/a.ts", "far/b.ts"], true]);
});

test("where not all was looked through, that is said", async () => {
  assert.deepEqual(await below(5000, 10), [[], false]);
});
