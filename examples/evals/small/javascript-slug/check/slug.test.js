import assert from "node:assert/strict";
import test from "node:test";
import { slugify } from "./slug.js";

test("every blank becomes a dash", () => assert.equal(slugify("A Tale of Two"), "a-tale-of-two"));
test("several blanks are one dash", () => assert.equal(slugify("a   b"), "a-b"));
test("no dash at an end", () => assert.equal(slugify(" a b "), "a-b"));
