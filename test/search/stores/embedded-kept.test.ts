import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { openEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import { IN_FOLDER, IN_NAME } from "../../../src/search/stores/segments.ts";
import { wordsOfFile } from "../../../src/search/stores/embedded-store.ts";
import { Tokenizer } from "../../../src/search/tokens.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { file, IDENTITY, NEVER } from "./words.ts";

test("vectors of another length of the same model take the place of the old ones", async () => {
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

test("what was put again and again leaves nothing of the dead", async () => {
  await using place = await scratch();
  await using store = openEmbeddedStore(place.path, IDENTITY);
  for (let at = 0; at < 40; at += 1) await store.put([file("a.ts", `alpha ${at}`)], NEVER);
  using sqlite = new DatabaseSync(place.at("index.db"), { readOnly: true });
  const rows = (table: string): number =>
    Number(sqlite.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]);
  assert.deepEqual([rows("files"), rows("chunks"), rows("dead")], [1, 1, 0]);
  assert.equal(rows("segments"), 1);
});

test("a word of a path is known for its folder, for its name, and for both", () => {
  const words = wordsOfFile(
    file("store/cache/cache_size.ts", "x"),
    { number: 1, chunks: [1] },
    new Tokenizer(),
  );
  const [store, cache, size] = ["store", "cach", "size"].map((word) => words.path.get(word));
  assert.deepEqual([store, cache, size], [IN_FOLDER, IN_FOLDER | IN_NAME, IN_NAME]);
});
