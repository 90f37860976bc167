import assert from "node:assert/strict";
import { test } from "node:test";
import { openEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { fc } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { vector } from "../../fixtures/vectors.ts";
import { chunk, file, NEVER } from "./words.ts";

const WITH = { index: "a1", vectors: { model: "m", dimension: 2 } } as const;
const WITHOUT = { index: "a1", vectors: null } as const;

/** Paths by vector alone, nearest first. */
async function near(store: SearchStore, ...numbers: readonly number[]): Promise<readonly string[]> {
  const found = await store.candidates({ text: "", vector: vector(...numbers) }, 50, NEVER);
  return found
    .toSorted((one, other) => (other.dense ?? -2) - (one.dense ?? -2))
    .map((candidate) => candidate.chunk.path);
}

/** Gives every chunk without a vector one: its text's two numbers. */
async function embedRest(store: SearchStore): Promise<void> {
  for (;;) {
    const chunks = await store.unembedded(7, NEVER);
    if (chunks.length === 0) return;
    await store.embed(
      new Map(chunks.map(({ id, text }) => [id, vector(...text.split(" ").map(Number))])),
      NEVER,
    );
  }
}

test("a chunk is found by words and by its vector, once, with both scores", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), WITH);
  await store.put([file("a.ts", "okapi"), file("b.ts", "okapi"), file("c.ts", "lion")], NEVER);
  const [a, b, c] = await store.unembedded(10, NEVER);
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  await store.embed(
    new Map([
      [a.id, vector(1, 0)],
      [c.id, vector(0, 1)],
      ["no-such-chunk", vector(1, 1)],
    ]),
    NEVER,
  );
  assert.deepEqual(await store.counts(NEVER), { files: 3, chunks: 3, embedded: 2 });
  assert.deepEqual(
    (await store.unembedded(10, NEVER)).map(({ path }) => path),
    ["b.ts"],
  );
  const found = await store.candidates({ text: "okapi", vector: vector(1, 0) }, 10, NEVER);
  const scores = new Map(found.map((each) => [each.chunk.path, each]));
  assert.deepEqual([...scores.keys()].toSorted(), ["a.ts", "b.ts", "c.ts"]);
  assert.ok((scores.get("a.ts")?.lexical ?? 0) > 0 && (scores.get("a.ts")?.dense ?? 0) > 0.999);
  assert.deepEqual([scores.get("b.ts")?.dense, scores.get("c.ts")?.lexical], [null, null]);
});

test("vectors go with their chunks, stay while no model is there, and are seen by who reads beside", async () => {
  await using place = await scratch();
  await using reader = openEmbeddedStore(place.at("index"), WITH);
  {
    await using store = openEmbeddedStore(place.at("index"), WITH);
    await store.put([file("a.ts", "1 0"), file("b.ts", "0 1"), file("c.ts", "-1 0")], NEVER);
    assert.deepEqual(await near(reader, 1, 0), []);
    await embedRest(store);
    assert.deepEqual(await near(reader, 1, 0), ["a.ts", "b.ts", "c.ts"]);
    await store.put([file("a.ts", "0 -1")], NEVER);
    assert.deepEqual(await near(reader, 1, 0), ["b.ts", "c.ts"]);
  }
  {
    await using store = openEmbeddedStore(place.at("index"), WITHOUT);
    assert.deepEqual(await near(store, 1, 0), []);
    assert.deepEqual(await store.unembedded(5, NEVER), []);
    assert.deepEqual(await store.counts(NEVER), { files: 3, chunks: 3, embedded: 2 });
    await store.remove(["b.ts"], NEVER);
  }
  assert.deepEqual(await near(reader, 1, 0), ["c.ts"]);
  await embedRest(reader);
  assert.deepEqual(await near(reader, 0, -1), ["a.ts", "c.ts"]);
  await reader.clear(NEVER);
  assert.deepEqual(await near(reader, 1, 0), []);
});

test("whatever is put, removed and embedded, only chunks that are there are found, each by its own vector", async () => {
  const path = fc.integer({ min: 0, max: 9 }).map((number) => `f${number}.ts`);
  const text = fc
    .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: -9, max: 9 }))
    .map((both) => both.join(" "));
  const step = fc.oneof(
    fc.record({ kind: fc.constant("put" as const), path, texts: fc.uniqueArray(text, { maxLength: 5 }) }),
    fc.record({ kind: fc.constant("remove" as const), path }),
    fc.record({ kind: fc.constant("embed" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      await using place = await scratch();
      await using store = openEmbeddedStore(place.at("index"), WITH);
      const there = new Map<string, readonly string[]>();
      for (const step of steps)
        if (step.kind === "embed") await embedRest(store);
        else if (step.kind === "remove") {
          await store.remove([step.path], NEVER);
          there.delete(step.path);
        } else {
          await store.put([file(step.path, ...step.texts)], NEVER);
          there.set(step.path, step.texts);
        }
      await embedRest(store);
      const wanted = [...there].flatMap(([path, texts]) => texts.map((each) => `${path} ${each}`));
      const found = await store.candidates({ text: "", vector: vector(3, 4) }, 100, NEVER);
      assert.deepEqual(
        found.map((each) => `${each.chunk.path} ${each.chunk.text}`).toSorted(),
        wanted.toSorted(),
      );
      for (const each of found) {
        const [x = 0, y = 0] = each.chunk.text.split(" ").map(Number);
        const exact = (3 * x + 4 * y) / (5 * Math.hypot(x, y));
        assert.ok(Math.abs((each.dense ?? 9) - exact) < 0.002);
      }
      assert.equal((await store.counts(NEVER)).embedded, wanted.length);
    }),
    { numRuns: 30 },
  );
});

test("a vector that does not fit leaves the batch unkept, and says what came", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), WITH);
  const one = chunk("a.ts", "okapi");
  await store.put([{ path: "a.ts", hash: "ab", chunks: [one] }], NEVER);
  await assert.rejects(
    store.embed(new Map([[one.id, vector(1, 2, 3)]]), NEVER),
    /given a vector with 3 dimensions; vectors of m/,
  );
  assert.equal((await store.counts(NEVER)).embedded, 0);
});
