import assert from "node:assert/strict";
import { HarnessError } from "../../src/core/errors.ts";
import type { AddSearch } from "./search-store-suite.ts";
import { axis, byVector, byWords, file, LEXICAL, textsOf } from "./search-store-words.ts";

/** A question with such a vector may be refused; at least it must find nothing. */
const refusedByUs = (thrown: unknown): readonly [] => {
  assert.ok(thrown instanceof HarnessError, String(thrown));
  return [];
};

const UNKNOWN = "00000000-0000-5000-8000-000000000000";

export function vectorCases(add: AddSearch): void {
  embedCases(add);
  refusalCases(add);
  keepCases(add);
}

function embedCases(add: AddSearch): void {
  add("chunks without a vector are listed once each until they get one", async ({ store, signal }) => {
    const code = file("a.ts", ["one", "two", "three", "four"]);
    const docs = file("b.md", ["five", "six", "seven"], { role: "docs" });
    await store.put([code, docs], signal);
    const seen: string[] = [];
    for (;;) {
      const next = await store.unembedded(2, signal);
      if (next.length === 0) break;
      assert.ok(next.length <= 2);
      seen.push(...next.map(({ text }) => text));
      await store.embed(new Map(next.map(({ id }) => [id, axis(0)])), signal);
      assert.equal((await store.counts(signal)).embedded, seen.length);
    }
    assert.deepEqual(seen.toSorted(), [...code.chunks, ...docs.chunks].map(({ text }) => text).toSorted());
  });

  add("the list of chunks without a vector is stable", async ({ store, signal }) => {
    await store.put(
      [file("a.ts", ["one", "two", "three"]), file("b.md", ["four"], { role: "docs" })],
      signal,
    );
    const all = await store.unembedded(100, signal);
    assert.equal(all.length, 4);
    assert.deepEqual(await store.unembedded(2, signal), all.slice(0, 2));
    assert.deepEqual(await store.unembedded(0, signal), []);
    const second = all[1];
    assert.ok(second);
    await store.embed(new Map([[second.id, axis(1)]]), signal);
    assert.deepEqual(await store.unembedded(100, signal), all.toSpliced(1, 1));
  });

  add("a vector for a removed chunk is dropped, and the others are stored", async ({ store, signal }) => {
    const [before, after] = [file("a.ts", ["old"]), file("a.ts", ["new"])];
    await store.put([before, file("b.md", ["docs"], { role: "docs" })], signal);
    await store.put([after], signal);
    const ids = [...before.chunks, ...after.chunks].map(({ id }) => id);
    await store.embed(new Map([UNKNOWN, ...ids].map((id) => [id, axis(3)])), signal);
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 2, embedded: 1 });
    assert.deepEqual(textsOf(await byVector(store, axis(3))), ["new"]);
  });

  add("a later vector replaces an earlier one", async ({ store, signal }) => {
    const { chunks, ...rest } = file("a.ts", ["one"]);
    await store.put([{ ...rest, chunks }], signal);
    for (const which of [0, 1]) await store.embed(new Map(chunks.map(({ id }) => [id, axis(which)])), signal);
    const [found] = await byVector(store, axis(1));
    assert.ok(Math.abs(Number(found?.dense) - 1) < 1e-4);
    assert.equal((await store.counts(signal)).embedded, 1);
  });

  add("hundreds of vectors at once are all stored", async ({ store, signal }) => {
    const long = file(
      "long.ts",
      Array.from({ length: 700 }, (_, line) => `line ${line}`),
    );
    await store.put([long], signal);
    await store.embed(new Map(long.chunks.map(({ id }, at) => [id, axis(at % 4)])), signal);
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 700, embedded: 700 });
    assert.deepEqual(await store.unembedded(5, signal), []);
  });
}

function refusalCases(add: AddSearch): void {
  const wrong = {
    "too short": new Float32Array(3).fill(1),
    "too long": new Float32Array(5).fill(1),
    empty: new Float32Array(0),
    "not a number": Float32Array.of(1, Number.NaN, 0, 0),
    infinite: Float32Array.of(1, 0, Number.POSITIVE_INFINITY, 0),
  };
  for (const [what, vector] of Object.entries(wrong))
    add(
      `a vector that is ${what} is refused, along with the others of the call`,
      async ({ store, signal }) => {
        const { chunks, ...rest } = file("a.ts", ["one", "two"]);
        await store.put([{ ...rest, chunks }], signal);
        const vectors = new Map(chunks.map(({ id }, at) => [id, at === 0 ? axis(0) : vector]));
        await assert.rejects(store.embed(vectors, signal), HarnessError);
        assert.deepEqual(await byVector(store, vector).catch(refusedByUs), []);
        assert.deepEqual(await store.counts(signal), { files: 1, chunks: 2, embedded: 0 });
      },
    );

  add("without a model no vectors are missing and none is accepted", async ({ open, signal }) => {
    const store = await open(LEXICAL);
    const { chunks, ...rest } = file("a.ts", ["alpha"]);
    await store.put([{ ...rest, chunks }], signal);
    assert.deepEqual(await store.unembedded(10, signal), []);
    await assert.rejects(store.embed(new Map(chunks.map(({ id }) => [id, axis(0)])), signal), HarnessError);
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 1, embedded: 0 });
    assert.deepEqual(textsOf(await byWords(store, "alpha")), ["alpha"]);
  });
}

function keepCases(add: AddSearch): void {
  add("after another put a chunk keeps its vector or is listed, and a new one is listed", async (context) => {
    const { store, signal } = context;
    const before = file("a.ts", ["stays", "goes"]);
    await store.put([before], signal);
    await store.embed(new Map(before.chunks.map(({ id }) => [id, axis(0)])), signal);
    await store.put([file("a.ts", ["stays", "comes"])], signal);
    const listed = (await store.unembedded(10, signal)).map(({ text }) => text);
    const found = textsOf(await byVector(store, axis(0)));
    assert.deepEqual([...found, ...listed].toSorted(), ["comes", "stays"]);
    assert.ok(listed.includes("comes"));
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 2, embedded: found.length });
  });

  add("removing a file removes its vectors, and they do not return", async ({ store, signal }) => {
    const whole = file("a.ts", ["alpha"]);
    await store.put([whole], signal);
    await store.embed(new Map(whole.chunks.map(({ id }) => [id, axis(0)])), signal);
    await store.remove(["a.ts"], signal);
    assert.deepEqual(await byVector(store, axis(0)), []);
    await store.put([whole], signal);
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 1, embedded: 0 });
  });
}
