import assert from "node:assert/strict";
import { test } from "node:test";
import { openEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import type { SearchStore, StoredFile } from "../../../src/search/search-store.ts";
import { fc } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { file, IDENTITY, NEVER } from "./words.ts";

const WORDS = ["ape", "bison", "cobra", "dingo", "emu", "fox"] as const;
const text = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 });
const path = fc.constantFrom("ape/one.ts", "two.ts", "fox/bison.ts", "three.md", "emu.ts");

type Step =
  | { readonly kind: "put"; readonly files: readonly StoredFile[] }
  | { readonly kind: "remove"; readonly paths: readonly string[] }
  | { readonly kind: "clear" };

const one = fc
  .tuple(path, fc.array(text, { maxLength: 4 }))
  .map(([name, texts]) => file(name, ...texts.map((words) => words.join(" "))));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.array(one, { maxLength: 4 }).map((files) => ({ kind: "put" as const, files })) },
  {
    weight: 3,
    arbitrary: fc.array(path, { maxLength: 3 }).map((paths) => ({ kind: "remove" as const, paths })),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "clear" as const }) },
);

/** What a store without an index would hold. */
function take(held: Map<string, StoredFile>, step: Step): void {
  if (step.kind === "clear") held.clear();
  else if (step.kind === "remove") for (const gone of step.paths) held.delete(gone);
  else for (const put of step.files) held.set(put.path, put);
}

async function makeSo(store: SearchStore, step: Step): Promise<void> {
  if (step.kind === "clear") await store.clear(NEVER);
  else if (step.kind === "remove") await store.remove(step.paths, NEVER);
  else await store.put(step.files, NEVER);
}

/** By id, as the order of equal ones depends on what came first. */
async function scoresOf(store: SearchStore, query: string): Promise<ReadonlyMap<string, number | null>> {
  const found = await store.candidates({ text: query, vector: null }, 1000, NEVER);
  const scores = found.map(({ lexical }) => lexical ?? 0);
  assert.deepEqual(
    scores.filter((score) => score <= 0),
    [],
  );
  return new Map(found.map(({ chunk, lexical }) => [chunk.id, Math.round((lexical ?? 0) * 1e9)]));
}

/** Chunks with one of the words, or the first chunk of a file that matches only by its path. */
function matching(held: ReadonlyMap<string, StoredFile>, query: readonly string[]): readonly string[] {
  return [...held.values()].flatMap(({ path, chunks }) => {
    const having = chunks.filter(({ text }) => query.some((word) => text.split(" ").includes(word)));
    if (having.length > 0) return having.map(({ id }) => id);
    const named = query.some((word) => path.split(/[/.]/).includes(word));
    return named ? chunks.slice(0, 1).map(({ id }) => id) : [];
  });
}

test("after any puts and removals the store equals one with only the remaining files", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), text, async (steps, query) => {
      await using place = await scratch();
      await using store = openEmbeddedStore(place.at("grown"), IDENTITY);
      const held = new Map<string, StoredFile>();
      for (const step of steps) {
        take(held, step);
        await makeSo(store, step);
        // An answer between the steps must leave nothing behind.
        await store.candidates({ text: query.join(" "), vector: null }, 3, NEVER);
      }
      const hashes = [...held.values()].map(({ path, hash }) => [path, hash] as const);
      assert.deepEqual(await store.fileHashes(NEVER), new Map(hashes));
      const chunks = [...held.values()].reduce((sum, { chunks }) => sum + chunks.length, 0);
      assert.deepEqual(await store.counts(NEVER), { files: held.size, chunks, embedded: 0 });
      const scores = await scoresOf(store, query.join(" "));
      assert.deepEqual([...scores.keys()].toSorted(), matching(held, query).toSorted());
      await using fresh = openEmbeddedStore(place.at("fresh"), IDENTITY);
      await fresh.put([...held.values()], NEVER);
      assert.deepEqual(scores, await scoresOf(fresh, query.join(" ")));
    }),
    { numRuns: 60 },
  );
});
