import assert from "node:assert/strict";
import test from "node:test";
import { groupBy } from "./group.ts";

test("grouped", () => {
  const groups = groupBy(["apple", "bean", "avocado"], (word) => word[0] ?? "");
  assert.deepEqual([...groups], [["a", ["apple", "avocado"]], ["b", ["bean"]]]);
});
test("odd keys", () => {
  const groups = groupBy(["__proto__", "constructor", "__proto__"], (word) => word);
  assert.deepEqual([...groups], [["__proto__", ["__proto__", "__proto__"]], ["constructor", ["constructor"]]]);
});
