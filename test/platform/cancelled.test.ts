import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { unlessAborted } from "../../src/platform/cancelled.ts";

const never = new Promise<string>(() => undefined);

test("what is done comes through, a failure too, and nothing listens any more", async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve("done"), signal), "done");
  await assert.rejects(unlessAborted(Promise.reject(new Error("no luck")), signal), /no luck/);
  assert.deepEqual(getEventListeners(signal, "abort"), []);
});

test("what is not done when the signal comes, or has come, is left for the signal's reason", async () => {
  const controller = new AbortController();
  const left = unlessAborted(never, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(left, /enough/);
  await assert.rejects(unlessAborted(never, controller.signal), /enough/);
  assert.deepEqual(getEventListeners(controller.signal, "abort"), []);
});
