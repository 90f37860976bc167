import assert from "node:assert/strict";
import test from "node:test";
import { Queue } from "./queue.ts";

test("first in, first out", () => {
  const queue = new Queue<number>();
  queue.put(1);
  queue.put(2);
  assert.equal(queue.take(), 1);
  queue.put(3);
  assert.deepEqual([queue.take(), queue.take(), queue.take()], [2, 3, undefined]);
  assert.equal(queue.size, 0);
});
