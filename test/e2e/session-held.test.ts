import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { openStore } from "../../src/sessions/session-store.ts";
import { COMPILED } from "../fixtures/cli.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { noTerminal, onTerminal } from "./terminal.ts";
import { harness, type Ran, type Said, startModel } from "./run-command.ts";

/** A session is for one process alone, as long as that works on it. */

/** A model that answers on request, and reports when it is asked. */
async function heldModel() {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Said>();
  const model = await startModel((_chat, nth) => {
    if (nth > 0) return { text: "Another answer." };
    asked.resolve();
    return answer.promise;
  });
  return { model, asked: asked.promise, answer: () => answer.resolve({ text: "The first answer." }) };
}

const direct = (flags: readonly string[], ...words: readonly string[]): readonly string[] => [
  "run",
  "--intent",
  "direct",
  ...flags,
  ...words,
];

function started(place: Scratch, words: readonly string[]): { child: ChildProcess; ended: Promise<unknown> } {
  const child = spawn(path.join(ROOT, "bin/harness"), words, {
    cwd: place.at("work"),
    env: { PATH: process.env["PATH"], HOME: place.path, ...COMPILED },
    stdio: ["pipe", "ignore", "ignore"],
  });
  return { child, ended: once(child, "exit") };
}

const PROMPT = /harness> $/;

const idsIn = (place: Scratch): readonly string[] => {
  using store = openStore(place.at(".local/state/harness"), { warn: (text) => assert.fail(text) });
  return store.list({}).map(({ id }) => id);
};

const auditOf = (place: Scratch, id: string): string => place.at(`.local/state/harness/audit/${id}.jsonl`);

function assertRefused({ code, stderr }: Ran, id: string, pid: number | undefined): void {
  assert.equal(code, 2, stderr);
  assert.match(stderr, new RegExp(`the session ${id} is in use by another harness \\(pid ${pid}, since `));
}

test("a session in use cannot be removed or continued by another, and a kill frees it", async () => {
  await using place = await household();
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  const { child, ended } = started(place, direct(model.flags, "wait for me"));
  try {
    await asked;
    const [id = ""] = idsIn(place);
    const before = (await harness(place, ["sessions", "show", id, "--json"])).stdout;
    assertRefused(await harness(place, ["sessions", "rm", id]), id, child.pid);
    assertRefused(await harness(place, direct(model.flags, "--continue", "me too")), id, child.pid);
    assertRefused(await harness(place, direct(model.flags, "--resume", id, "me too")), id, child.pid);
    assert.ok(existsSync(auditOf(place, id)));
    assert.equal((await harness(place, ["sessions", "show", id, "--json"])).stdout, before);
    // A copy can be continued meanwhile.
    const fork = await harness(place, direct(model.flags, "--resume", id, "--fork", "me too"));
    assert.equal(fork.code, 0, fork.stderr);
    child.kill("SIGKILL");
    await ended;
    const on = await harness(place, direct(model.flags, "--resume", id, "go on"));
    assert.equal(on.code, 0, on.stderr);
    const gone = await harness(place, ["sessions", "rm", id]);
    assert.equal(gone.code, 0, gone.stderr);
    assert.ok(!existsSync(auditOf(place, id)));
  } finally {
    answer();
    child.kill("SIGKILL");
  }
});

test("when one of several sessions is in use, none is removed", async () => {
  await using place = await household();
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  const { child, ended } = started(place, direct(model.flags, "wait for me"));
  try {
    await asked;
    const [busy = ""] = idsIn(place);
    const other = await harness(place, direct(model.flags, "an answer"));
    assert.equal(other.code, 0, other.stderr);
    const all = idsIn(place);
    const idle = all.filter((id) => id !== busy);
    assertRefused(await harness(place, ["sessions", "rm", ...idle, busy]), busy, child.pid);
    assert.deepEqual(idsIn(place), all);
    answer();
    await ended;
    assert.equal((await harness(place, ["sessions", "rm", ...idle, busy])).code, 0);
    assert.deepEqual(idsIn(place), []);
  } finally {
    answer();
    child.kill("SIGKILL");
  }
});

test("a chat holds its session until it ends, even while idle", { skip: noTerminal }, async () => {
  await using place = await household();
  await using model = await startModel([{ text: "An answer." }]);
  await using terminal = onTerminal(place, ["--mode", "read-only", ...model.flags]);
  await terminal.until(PROMPT);
  terminal.type("say an answer\r");
  await terminal.until(/An answer\.[^]*harness> $/);
  const [id = ""] = idsIn(place);
  const pid = await terminal.pid();
  assertRefused(await harness(place, ["sessions", "rm", id]), id, pid);
  assertRefused(await harness(place, direct(model.flags, "--continue", "me too")), id, pid);
  await using other = onTerminal(place, ["resume", id, ...model.flags]);
  assert.equal(await other.ended, 2);
  assert.match(other.screen(), /is in use by another harness/);
  // A chat that cannot have it stays with what it had.
  await using beside = onTerminal(place, ["--mode", "read-only", ...model.flags]);
  await beside.until(PROMPT);
  beside.type(`/resume ${id}\r`);
  await beside.until(/is in use by another harness[^]*harness> $/);
  beside.type("say an answer\r");
  await beside.until(/An answer\.[^]*harness> $/);
  assert.equal(idsIn(place).length, 2);
  // A new session has started: the previous one is free.
  terminal.type("/new\r");
  await terminal.until(PROMPT);
  const gone = await harness(place, ["sessions", "rm", id]);
  assert.equal(gone.code, 0, gone.stderr);
  terminal.type("\u0004");
  assert.equal(await terminal.ended, 0);
});
