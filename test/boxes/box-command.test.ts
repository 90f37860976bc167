import assert from "node:assert/strict";
import { constants } from "node:os";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { ExecRequest } from "../../src/core/ports.ts";
import {
  cancelledResult,
  LastBytes,
  OutputKeeper,
  startCommand,
  type StartedCommand,
} from "../../src/boxes/box-command.ts";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { decodeFields, numberIn, REPLY, REQUEST, textIn } from "../../src/boxes/runner-protocol.ts";
import { KEY, type ScriptedRunner, scriptedRunner } from "./scripted-runner.ts";

interface Opened extends ScriptedRunner {
  readonly started: StartedCommand;
  readonly call: number;
}

async function opened(more: Partial<ExecRequest> = {}): Promise<Opened> {
  const runner = scriptedRunner();
  const client = new RunnerClient(runner.stream, KEY);
  const request = { words: ["x"], timeoutMs: 5, keep: { head: 10, tail: 10 }, ...more };
  const started = startCommand(client, request, { workspace: "/repo" });
  return { ...runner, started, call: (await runner.request(REQUEST.exec)).call };
}

const KILLED = [["s", 9]] as const;
const isSandbox = (thrown: unknown): boolean =>
  thrown instanceof HarnessError && thrown.exit === EXIT.sandbox;

test("the request carries what was asked for, with the workspace as the default folder", async () => {
  const { received } = await opened();
  const fields = decodeFields(received[0]?.payload ?? Buffer.alloc(0));
  assert.deepEqual(
    [textIn(fields, "d"), ...["t", "h", "l", "f"].map((name) => numberIn(fields, name))],
    ["/repo", 5, 10, 10, 0],
  );
});

test("a result has the runner's numbers and both streams", async () => {
  const { reply, exit, call, started } = await opened();
  reply(REPLY.out, call, Buffer.from("head"));
  reply(REPLY.outTail, call, Buffer.from("tail"));
  exit(call, [
    ["c", 0],
    ["o", 20],
    ["O", 12],
    ["k", 2],
    ["m", 4096],
    ["p", 3],
  ]);
  const { stdout, leftovers, peak, killed } = await started.ended;
  assert.deepEqual(
    [String(stdout.head), String(stdout.tail), stdout.total, stdout.lost],
    ["head", "tail", 20, 12],
  );
  assert.deepEqual([leftovers, peak, killed], [2, { memory_bytes: 4096, pids: 3 }, false]);
  assert.equal(String(started.output().stdout), "headtail");
});

test("output passed to onOutput is not kept, except for the tail", async () => {
  const seen: string[] = [];
  const { reply, exit, call, started } = await opened({
    onOutput: (_, bytes) => void seen.push(String(bytes)),
  });
  reply(REPLY.out, call, Buffer.from("head"));
  reply(REPLY.outTail, call, Buffer.from("tail"));
  exit(call);
  const { stdout } = await started.ended;
  assert.deepEqual([seen, String(stdout.head), String(stdout.tail)], [["head"], "", "tail"]);
});

test("the first reason for ending a command is its cause, whatever the runner reports later", async () => {
  for (const [why, cause] of [
    ["cancelled", "user"],
    ["disk", "disk"],
  ] as const) {
    const { exit, call, started, request } = await opened();
    started.end(why);
    started.end("cancelled");
    assert.equal(numberIn(decodeFields((await request(REQUEST.kill)).payload), "s"), 9);
    exit(call, [...KILLED, ["t", 1]]);
    const { exit_code, cause: said, killed, timed_out } = await started.ended;
    assert.deepEqual([exit_code, said, killed, timed_out], [137, cause, true, false]);
  }
});

test("a kill from inside the box is distinguished from one of ours", async () => {
  const { exit, call, started } = await opened();
  exit(call, [...KILLED]);
  const { exit_code, cause, killed } = await started.ended;
  assert.deepEqual([exit_code, cause, killed], [137, "program", true]);
});

test("a command whose shell reports a process that was killed for its memory counts as killed", async () => {
  for (const [code, wanted] of [
    [137, true],
    [0, false],
    [1, false],
  ] as const) {
    const { exit, call, started } = await opened();
    exit(call, [
      ["c", code],
      ["x", 1],
    ]);
    const { exit_code, cause, killed } = await started.ended;
    assert.deepEqual([exit_code, cause, killed], [code, "memory", wanted]);
  }
});

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.alloc(0);
  throw await Promise.resolve(new Error("gone"));
}

test("failing input ends the command and is its cause", async () => {
  const { exit, call, started, request } = await opened({ input: failing() });
  await request(REQUEST.kill);
  exit(call, [["c", 0]]);
  const { exit_code, cause, killed } = await started.ended;
  assert.deepEqual([exit_code, cause, killed], [137, "user", true]);
});

test("a terminal gets its size at once", async () => {
  const { request, exit, call, started } = await opened({ terminal: { columns: 81, rows: 25 } });
  const fields = decodeFields((await request(REQUEST.resize)).payload);
  assert.deepEqual([numberIn(fields, "c"), numberIn(fields, "r")], [81, 25]);
  exit(call);
  await started.ended;
});

test("moved mounts and a process tree that cannot be ended lose the box", async () => {
  for (const fields of [
    [["E", constants.errno.ESTALE]],
    [
      ["c", 0],
      ["z", 1],
    ],
  ] as const) {
    const { exit, call, started } = await opened();
    exit(call, fields);
    await assert.rejects(started.ended, isSandbox);
  }
});

test("a command that never started has a result of the same shape", () => {
  const { exit_code, cause, killed, stdout, duration_ms } = cancelledResult();
  assert.deepEqual([exit_code, cause, killed, stdout.total, duration_ms], [137, "user", true, 0, 0]);
});

test("head and tail are kept separately, and shown together while the command runs", () => {
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

test("only the last bytes of a flood are kept", () => {
  const last = new LastBytes();
  last.add(Buffer.alloc(500_000, "a"));
  last.add(Buffer.from("the end"));
  assert.deepEqual([last.text.length, last.text.slice(-8)], [64 * 1024, "athe end"]);
});
