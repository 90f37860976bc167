import assert from "node:assert/strict";
import test from "node:test";
import { equal } from "./equal.js";

test("nested", () => assert.equal(equal({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }), true));
test("another value", () => assert.equal(equal({ a: [1] }, { a: [2] }), false));
test("a key more", () => {
  assert.equal(equal({ a: 1 }, { a: 1, b: undefined }), false);
  assert.equal(equal({ a: 1, b: undefined }, { a: 1 }), false);
  assert.equal(equal({ a: undefined }, { b: undefined }), false);
});
test("null", () => {
  assert.equal(equal(null, null), true);
  assert.equal(equal(null, {}), false);
  assert.equal(equal({ a: null }, { a: {} }), false);
});
test("a list is no object", () => assert.equal(equal([], {}), false));
