import assert from "node:assert/strict";
import test from "node:test";
import { range } from "./range.js";

test("up", () => assert.deepEqual(range(1, 3), [1, 2, 3]));
test("down", () => assert.deepEqual(range(3, 1), [3, 2, 1]));
test("one", () => assert.deepEqual(range(2, 2), [2]));
