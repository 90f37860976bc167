import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import test from "node:test";
import { many } from "../../fixtures/property.ts";
import { HarnessError, reasonOf } from "../../../src/core/errors.ts";
import { openQdrantStore } from "../../../src/search/stores/qdrant-store.ts";
import { assertWhole } from "../../contract/search-store-breaks.ts";
import type { StoreIdentity } from "../../../src/search/search-store.ts";
import {
  axis,
  chunksOf,
  file,
  LEXICAL,
  MODELLED,
  OTHER,
  wordFor,
} from "../../contract/search-store-words.ts";
import { Collection } from "../../fakes/qdrant/collection.ts";
import { type Fault, startQdrant } from "../../fakes/qdrant-server.ts";

/** The number of requests that may fail one by one; more than one put needs. */
const MAX_COUNT = 60;
const { signal } = new AbortController();

/** The long one is put in two requests. */
const versionOf = (version: string, long: boolean) =>
  [3, long ? 260 : 4, 1, 2, 12].map((lines, at) =>
    file(
      `f${at}`,
      Array.from({ length: lines }, (_, line) => `${version} ${wordFor(at)} line ${line}`),
      { role: at % 2 === 0 ? "source" : "docs" },
    ),
  );

interface Kind {
  readonly fault: Fault;
  readonly on: boolean;
  readonly long?: boolean;
}

/** Puts the second version over the first while the k-th request fails, and all after it if `on`. */
async function brokenAt(k: number, { fault, on, long = false }: Kind): Promise<boolean> {
  const [first, second] = [versionOf("first", long), versionOf("second", long)];
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  await store.put(first, signal);
  const chunks = first.flatMap((whole) => whole.chunks).slice(0, 2);
  await store.embed(new Map(chunks.map(({ id }) => [id, axis(0)])), signal);
  const before = server.calls.length;
  server.fault = (_, number) => (number === before + k || (on && number > before + k) ? fault : undefined);
  const failure: unknown = await store.put(second, signal).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  const reached = server.calls.length > before + k;
  server.fault = () => undefined;
  assert.equal(failure !== null, reached, `request ${k}`);
  if (failure !== null) {
    assert.ok(failure instanceof HarnessError, reasonOf(failure));
    assert.ok(failure.message.includes(server.url) && failure.remedy !== "", failure.message);
  }
  await assertWhole(store, [first, second]);
  await store.put(second, signal);
  assert.equal(await assertWhole(store, [second]), second.length);
  const ids = new Set(second.flatMap(({ chunks }) => chunks).map(({ id }) => id));
  for (const id of (await chunksOf(store, first)).keys()) assert.ok(ids.has(id), id);
  assert.deepEqual(await store.counts(signal), { files: 5, chunks: long ? 278 : 22, embedded: 0 });
  return reached;
}

const kinds: Readonly<Record<string, Kind>> = {
  "is cut": { fault: "reset", on: false, long: true },
  "is cut, and the server stays away": { fault: "reset", on: true },
  "is cut after it was carried out": { fault: "reset after", on: false },
  "is refused because the disk is full": {
    fault: {
      status: 500,
      body: JSON.stringify({
        status: { error: "Service internal error: No space left on device (os error 28)" },
        time: 0,
      }),
    },
    on: true,
  },
};

for (const [what, kind] of Object.entries(kinds))
  test(`a put whose k-th request ${what} is reported, holds no incomplete file, and is repaired by another put`, async () => {
    // Every third request, of long files every fifth; those between them at another time.
    const step = many(1) > 1 ? 1 : kind.long === true ? 5 : 3;
    let k = randomInt(step);
    while (await brokenAt(k, kind)) {
      k += step;
      assert.ok(k < MAX_COUNT, "the put never succeeded");
    }
    assert.ok(k > 8, `only ${k} requests were tried`);
  });

test("the remains of a killed writer for a file that is gone are removed once nobody can be writing it", async () => {
  await using server = await startQdrant();
  const clock = { now: Date.UTC(2026, 0, 1) };
  const open = () => openQdrantStore({ url: server.url }, MODELLED, { now: () => clock.now });
  await using store = await open();
  await store.put([file("stays", ["alpha"])], signal);
  const before = server.calls.length;
  // Its chunks arrive, the file's own point does not.
  server.fault = ({ operation, body }, number) =>
    number > before && operation === "upsert_points" && JSON.stringify(body).includes('"file"')
      ? "reset"
      : undefined;
  await assert.rejects(store.put([file("gone", ["beta"])], signal), HarnessError);
  server.fault = () => undefined;
  assert.deepEqual([...(await store.fileHashes(signal)).keys()], ["stays"]);
  assert.equal((await store.counts(signal)).chunks, 2, "somebody may still be writing it");
  clock.now += 16 * 60_000;
  await using again = await open();
  assert.deepEqual([...(await again.fileHashes(signal)).keys()], ["stays"]);
  assert.deepEqual(await again.counts(signal), { files: 1, chunks: 1, embedded: 0 });
});

test("a file of which somebody removes a chunk is no longer held", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const whole = file("a.ts", ["alpha", "beta"]);
  await store.put([whole, file("b.ts", ["gamma"])], signal);
  for (const collection of server.collections.values()) collection.remove([whole.chunks[1]?.id ?? ""]);
  assert.deepEqual([...(await store.fileHashes(signal)).keys()], ["b.ts"]);
  await store.put([whole], signal);
  assert.equal((await store.fileHashes(signal)).size, 2);
});

test("a file stored in another form is not held", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const files = [file("a.ts", ["alpha"]), file("b.ts", ["beta"])];
  await store.put(files, signal);
  const [, point] = [...server.collections.values()]
    .flatMap(({ points }) => points)
    .filter(({ payload }) => payload["what"] === "file");
  assert.ok(point);
  point.payload = { ...point.payload, form: 0 };
  assert.equal((await store.fileHashes(signal)).size, 1);
  await store.put(files, signal);
  assert.equal((await store.fileHashes(signal)).size, 2);
});

test("a collection that disappears while the store is open is an error, and is created again by the next put", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const files = [file("a.ts", ["alpha"]), file("b.md", ["alpha too"], { role: "docs" })];
  await store.put(files, signal);
  const both = [...server.collections.keys()];
  for (const gone of [[both[0]], [both[1]], both]) {
    for (const name of gone) server.collections.delete(name ?? "");
    await assert.rejects(chunksOf(store, files), /lost a collection: .*doesn't exist/);
    assert.equal(await store.fileCount(signal), 2 - gone.length);
    assert.equal((await store.fileHashes(signal)).size, 2 - gone.length);
    await store.put(files, signal);
    assert.equal((await store.fileHashes(signal)).size, 2);
    assert.equal((await chunksOf(store, files)).size, 2);
  }
});

test("two stores that create the same collections at once both get them, and keep their own data", async () => {
  await using server = await startQdrant();
  const both = await Promise.all(
    [MODELLED, OTHER].map(async (identity) => {
      const store = await openQdrantStore({ url: server.url }, identity);
      return { store, whole: file("a.ts", ["alpha"], { index: identity.index }) };
    }),
  );
  // Both have found no collection when the first one is created.
  server.fault = ({ operation }) => (operation === "create_collection" ? { delayMs: 50 } : undefined);
  await Promise.all(both.map(({ store, whole }) => store.put([whole], signal)));
  const made = server.calls.filter(({ operation }) => operation === "create_collection");
  assert.ok(made.length > 2, `${made.length} were made`);
  for (const { store, whole } of both) {
    assert.deepEqual([...(await store.fileHashes(signal))], [["a.ts", whole.hash]]);
    await store[Symbol.asyncDispose]();
  }
});

test("a server of version 1.13 is not sent any later request", async () => {
  await using server = await startQdrant({ version: "1.13.6" });
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const whole = file("a.ts", ["alpha", "beta"]);
  await store.put([whole], signal);
  await store.embed(new Map(whole.chunks.map(({ id }) => [id, axis(0)])), signal);
  const ids = [whole.chunks[0]?.id ?? ""];
  const found = await store.facts({ ids, vector: axis(0) }, 10, signal);
  assert.equal(found.chunks.size, 2);
  assert.equal(found.dense.size, 2);
});

test("a collection whose creator was killed before its indexes gets them later", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  for (const operation of ["create_field_index", "create_collection"]) {
    server.fault = (call) => (call.operation === operation ? "reset after" : undefined);
    await assert.rejects(store.put([file("a.ts", ["alpha"])], signal), HarnessError);
  }
  server.fault = () => undefined;
  await store.put([file("a.ts", ["alpha"])], signal);
  assert.equal((await store.fileHashes(signal)).size, 1);
  for (const { indexes } of server.collections.values()) {
    assert.ok(indexes.has("version"));
    indexes.clear();
  }
  assert.equal((await store.fileHashes(signal)).size, 1, "removed indexes are created again");
});

test("a chunk that disappears before its vector is written does not cost the others theirs", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const whole = file("a.ts", ["alpha", "beta", "gamma"]);
  await store.put([whole], signal);
  let gone = 0;
  server.fault = ({ operation, collection }) => {
    if (operation === "update_vectors" && gone < 2)
      server.collections.get(collection)?.remove([whole.chunks[gone++]?.id ?? ""]);
    return undefined;
  };
  await store.embed(new Map(whole.chunks.map(({ id }) => [id, axis(0)])), signal);
  assert.equal(gone, 2);
  assert.equal((await store.counts(signal)).embedded, 1);
});

test("clearing removes the index's data of other models, and keeps collections that others use", async () => {
  await using server = await startQdrant();
  server.collections.set("of-somebody-else", new Collection({}));
  const open = (identity: StoreIdentity) => openQdrantStore({ url: server.url }, identity);
  await using store = await open(MODELLED);
  await using before = await open(LEXICAL);
  await using other = await open(OTHER);
  for (const each of [store, before]) await each.put([file("a.ts", ["alpha"])], signal);
  await other.put([file("b.ts", ["beta"], { index: OTHER.index })], signal);
  await store.clear(signal);
  for (const each of [store, before]) assert.equal((await each.counts(signal)).files, 0);
  assert.equal((await other.counts(signal)).files, 1);
  const stay = ["of-somebody-else", "harness-code-toy-latest-1bec1f-4", "harness-docs-toy-latest-1bec1f-4"];
  assert.deepEqual(
    [...server.collections.keys()],
    stay,
    "both collections of a pair are removed, or neither",
  );
  await other.clear(signal);
  assert.deepEqual([...server.collections.keys()], ["of-somebody-else"]);
});

test("a chunk that stays keeps its vector through a put", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const before = file("a.ts", ["stays", "goes"]);
  await store.put([before], signal);
  await store.embed(new Map(before.chunks.map(({ id }) => [id, axis(0)])), signal);
  await store.put([file("a.ts", ["stays", "comes"])], signal);
  assert.deepEqual(await store.counts(signal), { files: 1, chunks: 2, embedded: 1 });
  assert.deepEqual(
    (await store.unembedded(9, signal)).map(({ text }) => text),
    ["comes"],
  );
});
