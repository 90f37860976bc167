import assert from "node:assert/strict";
import test from "node:test";
import { Cache } from "./lru.ts";

test("the oldest goes", () => {
  const cache = new Cache<number>(2);
  cache.set("a", 1);
  cache.set("b", 2);
  cache.set("c", 3);
  assert.deepEqual([cache.get("a"), cache.get("b"), cache.get("c")], [undefined, 2, 3]);
});

test("what was read stays", () => {
  const cache = new Cache<number>(2);
  cache.set("a", 1);
  cache.set("b", 2);
  cache.get("a");
  cache.set("c", 3);
  assert.deepEqual([cache.get("a"), cache.get("b"), cache.get("c")], [1, undefined, 3]);
});

test("what was written again stays", () => {
  const cache = new Cache<number>(2);
  cache.set("a", 1);
  cache.set("b", 2);
  cache.set("a", 4);
  cache.set("c", 3);
  assert.deepEqual([cache.get("a"), cache.get("b")], [4, undefined]);
});

test("undefined is a value", () => {
  const cache = new Cache<number | undefined>(2);
  cache.set("a", undefined);
  cache.set("b", 2);
  cache.get("a");
  cache.set("c", 3);
  assert.equal(cache.get("b"), undefined);
});
