import assert from "node:assert/strict";
import test from "node:test";
import { CallQueue } from "../../src/app/serve-mcp.ts";

const never = new AbortController().signal;
const turns = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Calls in the order in which they started; each ends on request. */
function queued() {
  const queue = new CallQueue();
  const begun: string[] = [];
  const gates = new Map<string, () => void>();
  const add = (name: string, beside: boolean, signal = never): Promise<string> =>
    queue.run(beside, signal, () => {
      begun.push(name);
      return new Promise<string>((resolve) => void gates.set(name, () => resolve(name)));
    });
  const end = async (name: string): Promise<void> => {
    gates.get(name)?.();
    await turns();
  };
  return { queue, begun, add, end };
}

test("read-only calls run in parallel, all others alone, and all in order", async () => {
  const { begun, add, end } = queued();
  const all = [add("r1", true), add("r2", true), add("w1", false), add("r3", true), add("w2", false)];
  await turns();
  assert.deepEqual(begun, ["r1", "r2"]);
  await end("r1");
  assert.deepEqual(begun, ["r1", "r2"]);
  await end("r2");
  assert.deepEqual(begun, ["r1", "r2", "w1"]);
  await end("w1");
  assert.deepEqual(begun, ["r1", "r2", "w1", "r3"]);
  await end("r3");
  await end("w2");
  assert.deepEqual(await Promise.all(all), ["r1", "r2", "w1", "r3", "w2"]);
});

test("a call cancelled before its turn does not run and blocks nobody", async () => {
  const { begun, add, end } = queued();
  const given = new AbortController();
  const all = [add("w1", false), add("w2", false, given.signal), add("r1", true)];
  await turns();
  given.abort();
  assert.equal(await all[1], "cancelled");
  await end("w1");
  await end("r1");
  assert.deepEqual(begun, ["w1", "r1"]);
  assert.equal(await add("late", false, given.signal), "cancelled");
  await Promise.all(all);
});

test("after a failure the next call gets its turn", async () => {
  const { queue, begun, add, end } = queued();
  const broken = queue.run(false, never, () => Promise.reject(new Error("disk full")));
  const next = add("w1", false);
  await assert.rejects(broken, /disk full/);
  await turns();
  assert.deepEqual(begun, ["w1"]);
  await end("w1");
  await next;
});

test("the number of waiting calls is bounded, and the queue is idle when all have ended", async () => {
  const { queue, add, end } = queued();
  const all = Array.from({ length: 65 }, (_, at) => add(`w${at}`, false));
  await turns();
  assert.equal(queue.full, true);
  await end("w0");
  assert.equal(queue.full, false);
  const state = { idle: false };
  const idle = queue.idle().then(() => (state.idle = true));
  for (let at = 1; at < 64; at += 1) await end(`w${at}`);
  assert.equal(state.idle, false);
  await end("w64");
  await Promise.all([...all, idle]);
});
