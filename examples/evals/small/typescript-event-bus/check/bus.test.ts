import assert from "node:assert/strict";
import test from "node:test";
import { Bus } from "./bus.ts";

test("one that removes itself", () => {
  const bus = new Bus();
  const seen: string[] = [];
  const off = bus.on(() => {
    seen.push("first");
    off();
  });
  bus.on(() => void seen.push("second"));
  bus.emit("x");
  bus.emit("x");
  assert.deepEqual(seen, ["first", "second", "second"]);
});

test("removing twice removes nobody else", () => {
  const bus = new Bus();
  const seen: string[] = [];
  const off = bus.on(() => void seen.push("first"));
  bus.on(() => void seen.push("second"));
  off();
  off();
  bus.emit("x");
  assert.deepEqual(seen, ["second"]);
});
