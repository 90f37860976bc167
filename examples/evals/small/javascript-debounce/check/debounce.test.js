import assert from "node:assert/strict";
import test from "node:test";
import { debounce } from "./debounce.js";

test("only the last one counts", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const seen = [];
  const late = debounce((...args) => seen.push(args), 50);
  late(1);
  t.mock.timers.tick(40);
  late(2, 3);
  t.mock.timers.tick(40);
  assert.deepEqual(seen, []);
  t.mock.timers.tick(10);
  assert.deepEqual(seen, [[2, 3]]);
});

test("cancel", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const seen = [];
  const late = debounce(() => seen.push(1), 50);
  late();
  late.cancel();
  t.mock.timers.tick(100);
  assert.deepEqual(seen, []);
});
