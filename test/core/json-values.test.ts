import assert from "node:assert/strict";
import test from "node:test";
import { asCount, asFields, asList, asText, fieldsIn, fieldsOf } from "../../src/core/raw-data.ts";

const OTHERS = [null, undefined, 1, "a", true, [1]];

test("what is no object has no fields", () => {
  assert.deepEqual(
    OTHERS.map(fieldsOf),
    OTHERS.map(() => ({})),
  );
  assert.deepEqual(
    OTHERS.map(asFields),
    OTHERS.map(() => undefined),
  );
  assert.deepEqual(fieldsOf({ a: 1 }), { a: 1 });
});

test("what is not of the asked kind counts as absent", () => {
  assert.deepEqual([asList([1]), asList({ 0: 1 }), asList("a")], [[1], [], []]);
  assert.deepEqual([asText("a"), asText(""), asText(1)], ["a", undefined, undefined]);
  assert.deepEqual(
    [asCount(0), asCount(-1), asCount(Number.NaN), asCount("1")],
    [0, undefined, undefined, undefined],
  );
});

test("the object of a text is read with and without a byte order mark; of anything else there is none", () => {
  assert.deepEqual(fieldsIn('\uFEFF{"a": 1}'), { a: 1 });
  assert.deepEqual(['{"a": 1', "[1]", "", "null"].map(fieldsIn), [{}, {}, {}, {}]);
});
