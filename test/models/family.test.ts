import assert from "node:assert/strict";
import test from "node:test";
import { familyName, ownRowOf, rowOf } from "../../src/models/capabilities.ts";
import { FAMILIES } from "../../src/models/model-families.generated.ts";

test("a name of no family has no row", () => {
  assert.deepEqual(["my-own-model", ""].map(rowOf), [undefined, undefined]);
});

test("every row is reached by its own prefix, and none stands twice", () => {
  for (const row of FAMILIES) assert.equal(rowOf(row.prefix), row, row.prefix);
  assert.equal(new Set(FAMILIES.map(({ prefix }) => prefix)).size, FAMILIES.length);
  for (const { prefix } of FAMILIES) assert.equal(familyName(prefix), prefix);
});

test("the user may write the whole name, its last part, or the family; the longest prefix counts, then the last", () => {
  const rows = ["qwen3", "hf.co/unsloth/", "Qwen3-8B", "qwen3"].map((prefix, index) => ({ prefix, index }));
  const found = (model: string): number | undefined => ownRowOf(rows, model)?.index;
  assert.deepEqual(["hf.co/unsloth/Qwen3-8B-GGUF", "qwen3:4b", "hf.co/x/Qwen3-8B", "llama3"].map(found), [
    1,
    3,
    2,
    undefined,
  ]);
});
