import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fetchAll } from "./all.js";

test("in the order of the names", async () => {
  const load = async (name) => {
    await sleep(name === "a" ? 20 : 1);
    return name.toUpperCase();
  };
  assert.deepEqual(await fetchAll(["a", "b"], load), ["A", "B"]);
});

test("all at once", async () => {
  let open = 0;
  let most = 0;
  await fetchAll(["a", "b", "c"], async () => {
    open += 1;
    most = Math.max(most, open);
    await sleep(5);
    open -= 1;
  });
  assert.equal(most, 3);
});

test("a failure is one", async () => {
  await assert.rejects(fetchAll(["a"], async () => Promise.reject(new Error("gone"))), /gone/);
});
