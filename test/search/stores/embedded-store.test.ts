import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { openEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { chunk, file, IDENTITY, NEVER } from "./words.ts";

const pathsFor = async (store: SearchStore, text: string): Promise<readonly string[]> =>
  (await store.candidates({ text, vector: null }, 50, NEVER)).map((found) => found.chunk.path);

test("what was put is found by its words, whole, and after it is opened again", async () => {
  await using place = await scratch();
  const whole = chunk("src/http/server.ts", "export class HTTPServer {\n  listen() {}\n}", {
    kind: "class",
    symbol: "HTTPServer",
    start: 7,
    trust: "untrusted",
  });
  const put = { path: whole.path, hash: "ab", chunks: [whole] };
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    await store.put([put, file("src/other.ts", "const nothing = 1;")], NEVER);
  }
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  for (const text of ["listening", "http", "HTTPServer", "server"]) {
    const [first] = await store.candidates({ text, vector: null }, 5, NEVER);
    assert.deepEqual(first?.chunk, whole, text);
    assert.ok((first?.lexical ?? 0) > 0);
    assert.equal(first?.dense, null);
  }
  assert.deepEqual(await store.counts(NEVER), { files: 2, chunks: 2, embedded: 0 });
  assert.equal((await store.held(NEVER)).get("src/http/server.ts"), "ab");
});

test("what was put again or removed is not found by what it was", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await store.put([file("a.ts", "zebra", "yak"), file("b.ts", "zebra")], NEVER);
  await store.put([file("a.ts", "lion")], NEVER);
  assert.deepEqual(await pathsFor(store, "zebra"), ["b.ts"]);
  assert.deepEqual(await pathsFor(store, "lion"), ["a.ts"]);
  await store.remove(["b.ts", "never there"], NEVER);
  assert.deepEqual(await pathsFor(store, "zebra yak"), []);
  assert.deepEqual([...(await store.held(NEVER)).keys()], ["a.ts"]);
  await store.clear(NEVER);
  assert.deepEqual(await store.counts(NEVER), { files: 0, chunks: 0, embedded: 0 });
  assert.deepEqual(await pathsFor(store, "lion"), []);
});

test("a file without chunks is held, and found by nothing", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await store.put([{ path: "logo.png", hash: "cd", chunks: [] }], NEVER);
  assert.equal((await store.held(NEVER)).get("logo.png"), "cd");
  assert.deepEqual(await pathsFor(store, "logo"), []);
});

test("one who reads beside the writer sees what was written", async () => {
  await using place = await scratch();
  await using writer = openEmbeddedStore(place.at("index"), IDENTITY);
  await using reader = openEmbeddedStore(place.at("index"), IDENTITY);
  assert.deepEqual(await pathsFor(reader, "okapi"), []);
  await writer.put([file("a.ts", "okapi")], NEVER);
  assert.deepEqual(await pathsFor(reader, "okapi"), ["a.ts"]);
  await writer.remove(["a.ts"], NEVER);
  assert.deepEqual(await pathsFor(reader, "okapi"), []);
});

test("an index of another identity is emptied, and its files are nobody else's", async () => {
  await using place = await scratch();
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    await store.put([file("a.ts", "okapi")], NEVER);
    for (const name of ["index.db", "index.db-wal"])
      assert.equal((await stat(place.at("index", name))).mode & 0o777, 0o600, name);
  }
  await using store = openEmbeddedStore(place.at("index"), { ...IDENTITY, index: "c3" });
  assert.deepEqual(await store.counts(NEVER), { files: 0, chunks: 0, embedded: 0 });
});

test("a symbol finds what it names, though the text does not say it", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  const middle = chunk("a.ts", "zebra = 1", { symbol: "Store.close" });
  await store.put([{ path: "a.ts", hash: "ab", chunks: [middle] }, file("b.ts", "zebra")], NEVER);
  for (let turn = 0; turn < 6; turn += 1) {
    assert.deepEqual(await pathsFor(store, "closing"), ["a.ts"]);
    // So that parts of the index are merged.
    await store.put([file(`c${turn}.ts`, "yak")], NEVER);
  }
});
