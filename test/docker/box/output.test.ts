import assert from "node:assert/strict";
import test from "node:test";
import { OutputKeeper } from "../../../src/docker/box/output.ts";

test("head and tail are kept apart, and seen together meanwhile", () => {
  const keeper = new OutputKeeper();
  assert.equal(keeper.soFar().length, 0);
  keeper.add("head", Buffer.from("one "));
  keeper.add("head", Buffer.from("two"));
  assert.equal(keeper.soFar().toString(), "one two");
  keeper.add("tail", Buffer.from(" the end"));
  assert.equal(keeper.soFar().toString(), "one two the end");
  const { head, tail, total, lost } = keeper.kept({ total: 100, lost: 85 });
  assert.deepEqual([String(head), String(tail), total, lost], ["one two", " the end", 100, 85]);
});
