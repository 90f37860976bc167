import assert from "node:assert/strict";
import test from "node:test";
import { slugify } from "./slug.js";

test("words are joined by single dashes, and none stands at an end", () => {
  assert.equal(slugify("Hello, World!"), "hello-world");
  assert.equal(slugify("  a  b "), "a-b");
});
