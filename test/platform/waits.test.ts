import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import test from "node:test";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterWaiting, SharedWait, unlessAborted, waitingTimeout } from "../../src/platform/waits.ts";
import { scratch } from "../fixtures/scratch.ts";

const never = new Promise<string>(() => undefined);

test("a result or a failure is passed on, and no listener remains", async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve("done"), signal), "done");
  await assert.rejects(unlessAborted(Promise.reject(new Error("no luck")), signal), /no luck/);
  assert.deepEqual(getEventListeners(signal, "abort"), []);
});

test("a promise that is still pending when the signal aborts is abandoned with the signal's reason", async () => {
  const controller = new AbortController();
  const left = unlessAborted(never, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(left, /enough/);
  await assert.rejects(unlessAborted(never, controller.signal), /enough/);
  assert.deepEqual(getEventListeners(controller.signal, "abort"), []);
});

/** Nothing in this process runs meanwhile, but other processes do. */
const busy = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test("what arrived while this process was busy is read before a wait ends", async () => {
  const child = spawn("cat", { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.write("ready");
  await once(child.stdout, "data");
  const events: string[] = [];
  child.stdout.once("data", () => events.push("answer"));
  child.stdin.end("answer");
  const ended = Promise.withResolvers<void>();
  afterWaiting(1, () => ended.resolve(void events.push("given up")));
  busy(300);
  await ended.promise;
  assert.deepEqual(events, ["answer", "given up"]);
});

test("a process that is busy for longer than the whole wait has noticed only a part of it", async () => {
  let turns = 0;
  const looking = setInterval(() => (turns += 1), 1);
  const ended = Promise.withResolvers<void>();
  afterWaiting(40, ended.resolve);
  busy(200);
  await ended.promise;
  clearInterval(looking);
  assert.ok(turns >= 5, `${turns} turns`);
});

test("a cancelled wait calls nothing, and a signal fires with the reason of a timeout", async () => {
  const calls: string[] = [];
  afterWaiting(1, () => calls.push("called"))();
  const signal = waitingTimeout(5);
  // The signal alone does not keep the process running.
  const alive = setInterval(() => undefined, 1);
  await once(signal, "abort");
  clearInterval(alive);
  assert.equal((signal.reason as Error).name, "TimeoutError");
  assert.deepEqual(calls, []);
});

const LONGEST_MS = 120_000;

test("a wait that a server requests holds for all clients of that server, and of no other", async () => {
  await using folder = await scratch();
  let now = 1_000_000;
  const at = (server: string): SharedWait => new SharedWait(folder.path, server, LONGEST_MS, () => now);
  const [one, two, other] = [at("http://a"), at("http://a"), at("http://b")];
  assert.deepEqual([one.pending(), two.pending()], [0, 0]);
  one.hold(5000);
  assert.deepEqual([one.pending(), two.pending(), other.pending()], [5000, 5000, 0]);
  now += 3000;
  assert.deepEqual([two.pending(), at("http://a").pending()], [2000, 2000]);
  two.hold(1000);
  assert.equal(one.pending(), 2000, "a shorter wait changes nothing");
  two.hold(4000);
  assert.equal(one.pending(), 4000);
  now += 4000;
  assert.deepEqual([one.pending(), two.pending()], [0, 0]);
});

test("no wait exceeds the maximum, and none is left after the clock was set back", async () => {
  await using folder = await scratch();
  let now = 1_000_000;
  const wait = new SharedWait(folder.path, "http://a", LONGEST_MS, () => now);
  wait.hold(10 * LONGEST_MS);
  assert.equal(wait.pending(), LONGEST_MS);
  now -= 5000;
  assert.equal(wait.pending(), 0);
});

test("an unreadable file and an unwritable folder do not stop anything", async () => {
  await using folder = await scratch();
  const state = path.join(folder.path, "state");
  const first = new SharedWait(state, "http://a", LONGEST_MS, () => 1000);
  first.hold(10);
  const [name = ""] = await readdir(path.join(state, "waits"));
  const file = path.join(state, "waits", name);
  assert.equal(await readFile(file, "utf8"), "1010");
  for (const text of ["", "soon", "-7", "9".repeat(40)]) {
    await writeFile(file, text);
    assert.equal(new SharedWait(state, "http://a", LONGEST_MS, () => 1000).pending(), 0);
  }
  const plain = path.join(folder.path, "plain");
  await writeFile(plain, "");
  const alone = new SharedWait(plain, "http://a", LONGEST_MS, () => 1000);
  alone.hold(10);
  assert.equal(alone.pending(), 10);
});
