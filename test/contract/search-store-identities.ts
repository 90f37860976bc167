import assert from "node:assert/strict";
import type { AddSearch } from "./search-store-suite.ts";
import { axis, byVector, byWords, file, MODELLED, OTHER, textsOf } from "./search-store-words.ts";

export function identityCases(add: AddSearch): void {
  add("two indexes side by side do not share anything", async ({ store, open, signal }) => {
    const other = await open(OTHER);
    const [mine, theirs] = [
      file("a.ts", ["alpha shared"]),
      file("a.ts", ["beta shared"], { index: OTHER.index }),
    ];
    await store.put([mine], signal);
    await other.put([theirs, file("b.ts", ["gamma"], { index: OTHER.index })], signal);
    await other.embed(new Map(theirs.chunks.map(({ id }) => [id, axis(0)])), signal);
    assert.deepEqual(textsOf(await byWords(store, "shared")), ["alpha shared"]);
    assert.deepEqual(textsOf(await byWords(other, "shared")), ["beta shared"]);
    assert.deepEqual(await byVector(store, axis(0)), []);
    assert.deepEqual(await store.fileHashes(signal), new Map([["a.ts", mine.hash]]));
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 1, embedded: 0 });
    assert.deepEqual(await other.counts(signal), { files: 2, chunks: 2, embedded: 1 });
  });

  add("removing and clearing do not affect other indexes", async ({ store, open, signal }) => {
    const other = await open(OTHER);
    const mine = [file("a.ts", ["alpha"]), file("b.ts", ["beta"])];
    await store.put(mine, signal);
    await other.put([file("a.ts", ["alpha"], { index: OTHER.index })], signal);
    await other.remove(["a.ts", "b.ts"], signal);
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 2, embedded: 0 });
    await other.put([file("a.ts", ["alpha"], { index: OTHER.index })], signal);
    await store.clear(signal);
    assert.deepEqual(await other.counts(signal), { files: 1, chunks: 1, embedded: 0 });
    assert.deepEqual(textsOf(await byWords(other, "alpha")), ["alpha"]);
  });

  add("vectors are stored only for chunks of the same index", async ({ store, open, signal }) => {
    const other = await open(OTHER);
    const mine = file("a.ts", ["alpha"]);
    await store.put([mine], signal);
    await other.embed(new Map(mine.chunks.map(({ id }) => [id, axis(0)])), signal);
    assert.equal((await store.counts(signal)).embedded, 0);
  });

  add("stored data is there after reopening", async ({ store, open, signal }) => {
    const whole = file("a.ts", ["alpha", "beta"]);
    await store.put([whole, file("b.md", ["gamma"], { role: "docs" })], signal);
    await store.embed(new Map(whole.chunks.slice(0, 1).map(({ id }) => [id, axis(0)])), signal);
    const query = { text: "alpha beta gamma", vector: axis(0) };
    const found = await store.candidates(query, 10, signal);
    await store[Symbol.asyncDispose]();
    const again = await open(MODELLED);
    assert.deepEqual(await again.counts(signal), { files: 2, chunks: 3, embedded: 1 });
    assert.equal((await again.fileHashes(signal)).get("a.ts"), whole.hash);
    assert.deepEqual(await again.candidates(query, 10, signal), found);
  });

  add(
    "data stored through one handle is visible through another opened before",
    async ({ store, open, signal }) => {
      const other = await open(MODELLED);
      assert.deepEqual(await byVector(other, axis(0)), []);
      const whole = file("a.ts", ["alpha"]);
      await store.put([whole], signal);
      await store.embed(new Map(whole.chunks.map(({ id }) => [id, axis(0)])), signal);
      assert.deepEqual(textsOf(await byWords(other, "alpha")), ["alpha"]);
      assert.deepEqual(textsOf(await byVector(other, axis(0))), ["alpha"]);
      await other.remove(["a.ts"], signal);
      assert.deepEqual(await byVector(store, axis(0)), []);
      assert.deepEqual([...(await store.fileHashes(signal))], []);
    },
  );

  add("closing twice is fine", async ({ store }) => {
    await store[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
}
