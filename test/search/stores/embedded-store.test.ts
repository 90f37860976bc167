import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { test } from "node:test";
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openEmbeddedStore, openStoreFor, readEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { chunk, file, IDENTITY, NEVER } from "./words.ts";
import { HarnessError } from "../../../src/core/errors.ts";
import { Catalog, NO_FACTS } from "../../../src/search/catalog.ts";
import { OpenedIndex, storeFolder } from "../../../src/search/open-index.ts";
import { meansOver } from "../../fixtures/index.ts";
import { IN_FOLDER, IN_NAME } from "../../../src/search/stores/segments.ts";
import { wordsOfFile } from "../../../src/search/stores/embedded-store.ts";
import { Tokenizer } from "../../../src/search/tokens.ts";

const pathsFor = async (store: SearchStore, text: string): Promise<readonly string[]> =>
  (await store.candidates({ text, vector: null }, 50, NEVER)).map((found) => found.chunk.path);

test("a file that was put is found by its words, complete, also after reopening", async () => {
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
  assert.equal((await store.fileHashes(NEVER)).get("src/http/server.ts"), "ab");
});

test("a replaced or removed file is not found by its old content", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await store.put([file("a.ts", "zebra", "yak"), file("b.ts", "zebra")], NEVER);
  await store.put([file("a.ts", "lion")], NEVER);
  assert.deepEqual(await pathsFor(store, "zebra"), ["b.ts"]);
  assert.deepEqual(await pathsFor(store, "lion"), ["a.ts"]);
  await store.remove(["b.ts", "never there"], NEVER);
  assert.deepEqual(await pathsFor(store, "zebra yak"), []);
  assert.deepEqual([...(await store.fileHashes(NEVER)).keys()], ["a.ts"]);
  await store.clear(NEVER);
  assert.deepEqual(await store.counts(NEVER), { files: 0, chunks: 0, embedded: 0 });
  assert.deepEqual(await pathsFor(store, "lion"), []);
});

test("a file without chunks is held, and found by nothing", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.at("index"), IDENTITY);
  await store.put([{ path: "logo.png", hash: "cd", chunks: [] }], NEVER);
  assert.equal((await store.fileHashes(NEVER)).get("logo.png"), "cd");
  assert.deepEqual(await pathsFor(store, "logo"), []);
});

test("a reader beside the writer sees what was written", async () => {
  await using place = await scratch();
  await using writer = openEmbeddedStore(place.at("index"), IDENTITY);
  await using reader = openEmbeddedStore(place.at("index"), IDENTITY);
  assert.deepEqual(await pathsFor(reader, "okapi"), []);
  await writer.put([file("a.ts", "okapi")], NEVER);
  assert.deepEqual(await pathsFor(reader, "okapi"), ["a.ts"]);
  await writer.remove(["a.ts"], NEVER);
  assert.deepEqual(await pathsFor(reader, "okapi"), []);
});

test("an index with another identity is emptied, and its files are private", async () => {
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

test("a symbol finds its chunk, even if the text does not contain it", async () => {
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

const isAnother = (thrown: unknown): boolean => {
  assert.ok(thrown instanceof HarnessError);
  assert.match(thrown.message, /cannot read it as it is/);
  return thrown.remedy === "harness index";
};

test("a read-only store finds what was written, and cannot write", async () => {
  await using place = await scratch();
  await using writer = openEmbeddedStore(place.at("index"), IDENTITY);
  await writer.put([file("a.ts", "alpha")], NEVER);
  await using reader = readEmbeddedStore(place.at("index"), IDENTITY);
  const [found] = await reader.candidates({ text: "alpha", vector: null }, 10, NEVER);
  assert.equal(found?.chunk.path, "a.ts");
  await assert.rejects(reader.put([file("b.ts", "beta")], NEVER), /is not writable/);
  await writer.put([file("c.ts", "gamma")], NEVER);
  assert.deepEqual([...(await reader.fileHashes(NEVER)).keys()], ["a.ts", "c.ts"]);
});

test("a read-only store leaves an index of another version or folder unchanged", async () => {
  await using place = await scratch();
  const database = place.at("index", "index.db");
  {
    await using writer = openEmbeddedStore(place.at("index"), IDENTITY);
    await writer.put([file("a.ts", "alpha")], NEVER);
  }
  {
    using sqlite = new DatabaseSync(database);
    sqlite.exec(`UPDATE about SET value = '["another form","${IDENTITY.index}"]'`);
  }
  const before = await readFile(database);
  assert.throws(() => readEmbeddedStore(place.at("index"), IDENTITY), isAnother);
  assert.throws(() => readEmbeddedStore(place.at("index"), { ...IDENTITY, index: "c3" }), isAnother);
  assert.deepEqual(await readFile(database), before);
  assert.throws(() => readEmbeddedStore(place.at("nowhere"), IDENTITY), isAnother);
  assert.equal(existsSync(place.at("nowhere")), false);
});

test("an index whose store has another version or is missing counts as none", async () => {
  await using place = await scratch({ "folder/keep": "" });
  const at = { id: IDENTITY.index, folder: place.at("folder"), workspace: place.at("work"), movedFrom: null };
  {
    using catalog = Catalog.open(at.folder, assert.fail);
    catalog.note({ ...NO_FACTS, whole: true, store: "embedded" });
  }
  const means = {
    ...meansOver(new Map()),
    openStore: (opening: Parameters<ReturnType<typeof meansOver>["openStore"]>[0]) =>
      openStoreFor({ ...opening, store: "embedded", server: { url: "" }, warn: assert.fail }),
  };
  assert.equal(await OpenedIndex.read(means, at, NEVER), undefined);
  assert.equal(existsSync(storeFolder(at)), false);
  {
    await using _ = openEmbeddedStore(storeFolder(at), { ...IDENTITY, index: "c3" });
  }
  assert.equal(await OpenedIndex.read(means, at, NEVER), undefined);
  {
    await using _ = openEmbeddedStore(storeFolder(at), IDENTITY);
  }
  await using there = await OpenedIndex.read(means, at, NEVER);
  assert.ok(there);
});

test("vectors of another length replace the old ones of the same model", async () => {
  await using place = await scratch();
  for (const dimension of [3, 4]) {
    const identity = { index: "a1b2", vectors: { model: "m", dimension } };
    await using store = openEmbeddedStore(place.path, identity);
    await store.put([file("a.ts", "alpha")], NEVER);
    const [{ id } = assert.fail("it has its vector already")] = await store.unembedded(9, NEVER);
    await store.embed(new Map([[id, new Float32Array(dimension).fill(1)]]), NEVER);
    assert.equal((await store.counts(NEVER)).embedded, 1);
    const vector = new Float32Array(dimension).fill(1);
    const [found] = await store.candidates({ text: "", vector }, 9, NEVER);
    assert.ok((found?.dense ?? 0) > 0.99);
  }
});

test("repeated puts leave no dead entries", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.path, IDENTITY);
  for (let at = 0; at < 40; at += 1) await store.put([file("a.ts", `alpha ${at}`)], NEVER);
  using sqlite = new DatabaseSync(place.at("index.db"), { readOnly: true });
  const rows = (table: string): number =>
    Number(sqlite.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]);
  assert.deepEqual([rows("files"), rows("chunks"), rows("dead")], [1, 1, 0]);
  assert.equal(rows("segments"), 1);
});

test("a word of a path is marked as part of the folder, of the name, or of both", () => {
  const words = wordsOfFile(
    file("store/cache/cache_size.ts", "x"),
    { number: 1, chunks: [1] },
    new Tokenizer(),
  );
  const [store, cache, size] = ["store", "cach", "size"].map((word) => words.path.get(word));
  assert.deepEqual([store, cache, size], [IN_FOLDER, IN_FOLDER | IN_NAME, IN_NAME]);
});
