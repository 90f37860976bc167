// also slow: an exhaustive search beside
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { SqliteConnection } from "../../../src/platform/sqlite.ts";
import { DamagedIndex } from "../../../src/search/index-folders.ts";
import { VectorTable } from "../../../src/search/stores/embedded-vectors.ts";
import { fc } from "../../fixtures/property.ts";
import { randomFrom, vector, vectorWorld } from "../../fixtures/vectors.ts";
import { cosine, nearestOf } from "./nearest.ts";
import { openEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { chunk, file, NEVER } from "./words.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

interface Bed extends Disposable {
  readonly database: SqliteConnection;
  readonly table: (dimension: number, model?: string) => VectorTable;
}

/** A database with as many chunks, and nothing else of an index. */
function bed(chunks = 0): Bed {
  const database = new SqliteConnection(new DatabaseSync(":memory:"));
  database.run("CREATE TABLE chunks (number INTEGER PRIMARY KEY)");
  for (let number = 1; number <= chunks; number += 1) database.run("INSERT INTO chunks VALUES (?)", number);
  return {
    database,
    table: (dimension, model = "m") => new VectorTable(database, { model, dimension }),
    [Symbol.dispose]: () => database[Symbol.dispose](),
  };
}

test("the nearest vectors come first with their cosine, whatever their length", () => {
  using place = bed();
  const table = place.table(2);
  table.put(
    new Map([
      [1, vector(0, 5)],
      [2, vector(1e-20, 0)],
      [3, vector(1e30, 1e30)],
      [4, vector(-3, 0)],
    ]),
  );
  const found = table.nearest(vector(0.1, 0), 10);
  assert.deepEqual(
    found.map(({ chunk }) => chunk),
    [2, 3, 1, 4],
  );
  for (const [at, wanted] of [1, Math.SQRT1_2, 0, -1].entries())
    assert.ok(Math.abs((found[at]?.cosine ?? 9) - wanted) < 0.001, String(found[at]?.cosine));
  assert.equal(table.count, 4);
});

test("vectors are replaced, removed and cleared", () => {
  using place = bed();
  const table = place.table(2);
  table.put(
    new Map([
      [7, vector(1, 0)],
      [8, vector(0, 1)],
    ]),
  );
  table.put(new Map([[7, vector(0, 1)]]));
  assert.equal(table.count, 2);
  assert.ok((table.nearest(vector(1, 0), 2)[0]?.cosine ?? 1) < 0.001);
  table.remove([8, 99]);
  assert.deepEqual(
    table.nearest(vector(0, 1), 5).map(({ chunk }) => chunk),
    [7],
  );
  table.clear();
  assert.deepEqual([table.count, table.nearest(vector(0, 1), 5)], [0, []]);
});

test("vectors of another model are neither found nor counted, and are removed when the first of this model arrives", () => {
  using place = bed(3);
  const old = place.table(2, "old");
  old.put(
    new Map([
      [1, vector(1, 0)],
      [2, vector(0, 1)],
    ]),
  );
  const table = place.table(3, "new");
  assert.deepEqual([table.count, table.nearest(vector(1, 0, 0), 5)], [0, []]);
  assert.deepEqual(table.missing(10), [1, 2, 3]);
  // Reading alone has removed nothing.
  assert.deepEqual([old.count, old.missing(10)], [2, [3]]);
  table.remove([1]);
  assert.equal(old.count, 1);
  table.put(new Map([[3, vector(1, 1, 1)]]));
  assert.deepEqual([table.count, old.count, old.nearest(vector(1, 0), 5)], [1, 0, []]);
  assert.deepEqual(table.missing(10), [1, 2]);
  // Another vector length of the same model counts as another model.
  assert.deepEqual(place.table(4, "new").missing(10), [1, 2, 3]);
});

test("a table without a model drops removed chunks, finds nothing and keeps the rest", () => {
  using place = bed(2);
  const table = place.table(2);
  table.put(
    new Map([
      [1, vector(1, 0)],
      [2, vector(0, 1)],
    ]),
  );
  const none = new VectorTable(place.database, null);
  none.remove([1]);
  assert.deepEqual([none.count, none.missing(5), none.nearest(vector(1, 0), 5)], [1, [], []]);
  assert.throws(() => none.put(new Map([[1, vector(1, 0)]])), HarnessError);
  assert.deepEqual(
    table.nearest(vector(1, 0), 5).map(({ chunk }) => chunk),
    [2],
  );
});

test("an invalid vector is refused, with everything in its batch", () => {
  using place = bed();
  const table = place.table(2);
  const good = vector(1, 1);
  for (const [bad, why] of [
    [vector(1, 2, 3), /given a vector with 3 dimensions; vectors of m have 2 dimensions/],
    [vector(0, 0), /an all-zero vector/],
    [vector(Number.NaN, 1), /an all-zero vector/],
    [vector(Number.POSITIVE_INFINITY, 1), /an all-zero vector/],
  ] as const)
    assert.throws(
      () =>
        table.put(
          new Map([
            [1, good],
            [2, bad],
          ]),
        ),
      why,
    );
  assert.equal(table.count, 0);
  table.put(new Map([[1, good]]));
  for (const query of [vector(0, 0), vector(1, 2, 3), vector(Number.NaN, 1)])
    assert.deepEqual(table.nearest(query, 5), []);
});

test("missing continues where it stopped, and does not return chunks that have their vector", () => {
  using place = bed(50);
  const table = place.table(1);
  const seen: number[] = [];
  for (;;) {
    const numbers = table.missing(7);
    if (numbers.length === 0) break;
    seen.push(...numbers);
    table.put(new Map(numbers.map((number) => [number, vector(1)])));
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 50 }, (_, at) => at + 1),
  );
  assert.equal(table.count, 50);
});

test("codes that do not fit their chunks are reported as damage", () => {
  using place = bed();
  const table = place.table(8);
  table.put(new Map([[1, new Float32Array(8).fill(1)]]));
  place.database.run("UPDATE vector_codes SET codes = x'0102'");
  assert.throws(() => table.nearest(new Float32Array(8).fill(1), 1), DamagedIndex);
});

test("after any puts and removals the nearest vectors are those of an exhaustive search", () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant("put" as const),
      from: fc.nat(1500),
      many: fc.integer({ min: 1, max: 700 }),
    }),
    fc.record({
      kind: fc.constant("remove" as const),
      from: fc.nat(1500),
      many: fc.integer({ min: 1, max: 900 }),
    }),
  );
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 1, maxLength: 9 }),
      fc.integer(),
      fc.integer({ min: 1, max: 40 }),
      (steps, seed, dimension) => {
        using place = bed();
        const table = place.table(dimension);
        const random = randomFrom(seed);
        const plain = new Map<number, Float32Array>();
        for (const { kind, from, many } of steps) {
          const numbers = Array.from({ length: many }, (_, at) => from + at);
          if (kind === "remove") {
            table.remove(numbers);
            for (const number of numbers) plain.delete(number);
            continue;
          }
          const made = new Map(numbers.map((number) => [number, randomVector(dimension, random)]));
          table.put(made);
          for (const [number, put] of made) plain.set(number, put);
        }
        assert.equal(table.count, plain.size);
        const query = randomVector(dimension, random);
        const found = table.nearest(query, plain.size + 1);
        assert.deepEqual(new Set(found.map(({ chunk }) => chunk)), new Set(plain.keys()));
        let before = 2;
        for (const { chunk, cosine: said } of found) {
          assert.ok(Math.abs(said - cosine(plain.get(chunk) ?? query, query)) < 0.002);
          assert.ok(said <= before);
          before = said;
        }
      },
    ),
    { numRuns: 25 },
  );
});

slowTest("of many thousand realistic vectors, 98 of a hundred of the ten nearest are found", () => {
  using place = bed();
  const dimension = 256;
  const table = place.table(dimension);
  const world = vectorWorld(dimension, 11);
  const vectors = Array.from({ length: 12_000 }, () => world.next());
  for (let from = 0; from < vectors.length; from += 1000)
    table.put(new Map(vectors.slice(from, from + 1000).map((each, at) => [from + at, each])));
  let hits = 0;
  const questions = Array.from({ length: 40 }, (_, at) => world.question(vectors[at * 290] ?? vector()));
  for (const question of questions) {
    const wanted = new Set(nearestOf(vectors, question, 10));
    hits += table.nearest(question, 10).filter(({ chunk }) => wanted.has(chunk)).length;
  }
  const recall = hits / (questions.length * 10);
  assert.ok(recall >= 0.98, `recall ${recall}`);
});

function randomVector(dimension: number, random: () => number): Float32Array {
  // Never all zeros.
  return Float32Array.from({ length: dimension }, () => random() + (random() < 0.5 ? 0.01 : -1.01));
}

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

test("a chunk found by words and by its vector is one result with both scores", async () => {
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

test("vectors are removed with their chunks, stay while there is no model, and are visible to other readers", async () => {
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

test("after any puts, removals and embeddings only existing chunks are found, each by its own vector", async () => {
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

test("a vector of the wrong length is reported, and its batch is not stored", async () => {
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
