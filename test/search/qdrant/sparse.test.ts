import assert from "node:assert/strict";
import test from "node:test";
import { batches, sideBySide } from "../../../src/search/qdrant/qdrant-write.ts";
import { collectionName, sparseOf, sparseQuery, termOf } from "../../../src/search/qdrant/qdrant-points.ts";
import { WEIGHTS } from "../../../src/search/rank/weights.ts";
import { Tokenizer } from "../../../src/search/rank/tokens.ts";
import { chunk, wordFor } from "../../contract/search-store-words.ts";
import { fc } from "../../fixtures/property.ts";

const tokenizer = new Tokenizer();

test("the number of a word is written down in every collection: it never changes", () => {
  const terms = ["", "header", "größe", "日本"].map(termOf);
  assert.deepEqual(terms, [2_872_998_923, 2_896_851_678, 2_538_389_087, 236_567_117]);
});

test("terms are numbers of 32 bits, each once, and a hundred thousand words hardly ever meet", () => {
  const terms = Array.from({ length: 100_000 }, (_, number) => termOf(wordFor(number)));
  assert.ok(terms.every((term) => Number.isInteger(term) && term >= 0 && term <= 0xffffffff));
  assert.ok(new Set(terms).size > 99_985, `${new Set(terms).size}`);
});

test("any text makes a vector that a server takes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      const sparse = sparseOf(chunk("src/http.ts", 1, text), tokenizer);
      assert.ok(sparse !== null);
      assert.equal(new Set(sparse.indices).size, sparse.indices.length);
      assert.equal(sparse.values.length, sparse.indices.length);
      assert.ok(sparse.values.every((value) => Number.isFinite(value) && value > 0));
    }),
  );
});

const weigh = (text: string): number => {
  const sparse = sparseOf(chunk("x", 1, text), tokenizer);
  return sparse?.values[sparse.indices.indexOf(termOf("zebra"))] ?? 0;
};

test("once more of a word counts less and less, and in a longer text less", () => {
  const [once, twice, often] = [weigh("zebra"), weigh("zebra zebra"), weigh("zebra ".repeat(50))];
  assert.ok(once < twice && twice < often && twice - once < once && often < WEIGHTS.chunkK + 1);
  assert.ok(weigh(`zebra ${"lorem ".repeat(300)}`) < once);
});

test("a query without words is no vector", () => {
  for (const text of ["", "   ", "the of", "!?"]) assert.equal(sparseQuery(text, tokenizer), null, text);
  assert.deepEqual(sparseQuery("zebra", tokenizer)?.indices, [termOf("zebra")]);
});

const name = (model: string, dimension = 768): string =>
  collectionName("code", { index: "i", vectors: { model, dimension } });

test("two models never share a collection, nor does one with other dimensions", () => {
  assert.equal(name("nomic-embed-text"), "harness-code-nomic-embed-text-768");
  assert.equal(collectionName("docs", { index: "i", vectors: null }), "harness-docs-words");
  const models = ["a:b", "a-b", "a/b", "A-b", "a b", "a".repeat(90), "a".repeat(95), "ä", "ö", ""];
  const names = [...models.map((model) => name(model)), name("a-b", 4), name("words"), name("a-b-768", 4)];
  assert.equal(new Set(names).size, names.length);
  for (const each of names) assert.match(each, /^harness-code-[a-z0-9._-]{0,120}$/);
});

test("batches keep the order and the bounds, and what is too large for one is alone", () => {
  const all = Array.from({ length: 1000 }, (_, at) => at);
  const small = batches(all, () => 10);
  assert.deepEqual(small.flat(), all);
  assert.ok(small.every(({ length }) => length <= 256) && small.length === 4);
  assert.deepEqual(
    batches([1, 9, 1, 1], (megabytes) => megabytes * 2 ** 20),
    [[1], [9], [1, 1]],
  );
  assert.deepEqual(
    batches([], () => 1),
    [],
  );
});

test("after a failure nothing more is begun, and all that was begun is over", async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const act = async (item: number): Promise<void> => {
    begun.push(item);
    await new Promise((resolve) => setImmediate(resolve));
    ended.push(item);
    if (item === 1) throw new Error("one");
  };
  await assert.rejects(sideBySide([0, 1, 2, 3, 4, 5, 6, 7], act), /one/);
  assert.deepEqual(new Set(begun), new Set(ended));
  assert.ok(begun.length < 6, begun.join());
});
