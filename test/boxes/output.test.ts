import assert from "node:assert/strict";
import test from "node:test";
import { LastBytes, OutputKeeper } from "../../src/boxes/box-command.ts";

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

test("of a flood only the last bytes are held", () => {
  const last = new LastBytes();
  last.add(Buffer.alloc(500_000, "a"));
  last.add(Buffer.from("the end"));
  assert.deepEqual([last.text.length, last.text.slice(-8)], [64 * 1024, "athe end"]);
});
