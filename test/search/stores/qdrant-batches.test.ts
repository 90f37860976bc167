import assert from "node:assert/strict";
import test from "node:test";
import { collectionName } from "../../../src/search/stores/qdrant-collections.ts";
import { batches, sideBySide } from "../../../src/search/stores/qdrant-write.ts";

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
