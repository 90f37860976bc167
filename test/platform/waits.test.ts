import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { SharedWait, unlessAborted } from "../../src/platform/waits.ts";
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
