import assert from "node:assert/strict";
import { constants } from "node:os";
import test from "node:test";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import type { Command } from "../../src/boxes/runner-command.ts";
import {
  decodeFields,
  encodeFields,
  EXEC_EXACT,
  frameWriter,
  has,
  numberIn,
  REPLY,
  REQUEST,
  textIn,
} from "../../src/boxes/runner-protocol.ts";
import { KEY, type ScriptedRunner, scriptedRunner } from "./scripted-runner.ts";

interface Opened extends ScriptedRunner {
  readonly client: RunnerClient;
}

const opened = (): Opened => {
  const runner = scriptedRunner();
  return { ...runner, client: new RunnerClient(runner.stream, KEY) };
};

const command = (more: Partial<Command> = {}): Command => ({
  words: ["true"],
  folder: "/repo",
  env: {},
  timeoutMs: 0,
  head: 100,
  tail: 100,
  terminal: false,
  input: undefined,
  ...more,
});
const DEAF = { onOutput: () => undefined };
const isLoss = (thrown: unknown): boolean => thrown instanceof HarnessError && thrown.exit === EXIT.sandbox;
const sizesOf = ({ received }: Opened): readonly number[] =>
  received.filter(({ type }) => type === REQUEST.stdin).map(({ payload }) => payload.length);

test("a call gets its own output and end, in whatever order calls end", async () => {
  const { client, reply, exit, received, request } = opened();
  const heard: string[] = [];
  const listen = (name: string) => ({
    onOutput: (stream: string, part: string, bytes: Buffer) =>
      void heard.push([name, stream, part, bytes].join(" ")),
  });
  const [one, two] = [client.run(command(), listen("one")), client.run(command(), listen("two"))];
  await request(REQUEST.exec);
  const [first = 0, second = 0] = received.map(({ call }) => call);
  reply(REPLY.out, second, Buffer.from("b"));
  reply(REPLY.errTail, first, Buffer.from("a"));
  exit(second, [["c", 2]]);
  assert.equal((await two.ended).code, 2);
  exit(first, [["s", 9]]);
  assert.equal((await one.ended).signal, 9);
  assert.deepEqual(heard, ["two stdout head b", "one stderr tail a"]);
});

test("frames of unknown or ended calls and of unknown types are ignored", async () => {
  const { client, reply, exit, request } = opened();
  const running = client.run(command(), DEAF);
  const { call } = await request(REQUEST.exec);
  for (const [type, other] of [
    [REPLY.out, 77],
    [REPLY.exit, 78],
    [0x55, call],
    [REPLY.data, call],
  ] as const)
    reply(type, other, Buffer.from("x"));
  exit(call);
  assert.equal((await running.ended).code, 0);
  exit(call, [["c", 1]]);
  const next = client.run(command(), DEAF);
  await turn();
  exit(call + 1, [["c", 7]]);
  assert.equal((await next.ended).code, 7);
});

test("a forged frame loses the box for all current and later calls", async () => {
  const { client, raw, request } = opened();
  const running = client.run(command(), DEAF);
  const asking = assert.rejects(client.ask(REQUEST.stat, [["p", "/x"]]), isLoss);
  await request(REQUEST.stat);
  raw(Buffer.alloc(60, 1));
  await assert.rejects(running.ended, isLoss);
  await asking;
  assert.match(await client.gone, /frame/);
  await assert.rejects(client.run(command({ words: ["a\0b"] }), DEAF).ended, isLoss);
  await assert.rejects(client.ask(REQUEST.stat, []), isLoss);
  assert.ok(client.lost !== undefined);
});

test("an end reply of a command means that it could not be started", async () => {
  const { client, reply, request } = opened();
  const running = client.run(command(), DEAF);
  const { call } = await request(REQUEST.exec);
  reply(REPLY.end, call, [["e", constants.errno.EAGAIN]]);
  assert.equal((await running.ended).errno, constants.errno.EAGAIN);
});

test("impossible requests are answered locally, and nothing is sent", async () => {
  const { client, received } = opened();
  const errnoOf = async (more: Partial<Command>): Promise<number | null> =>
    (await client.run(command(more), DEAF).ended).errno;
  assert.equal(await errnoOf({ words: ["a\0b"] }), constants.errno.EINVAL);
  assert.equal(await errnoOf({ folder: "/a\0b" }), constants.errno.EINVAL);
  assert.equal(await errnoOf({ env: { "A\0": "b" } }), constants.errno.EINVAL);
  assert.equal(await errnoOf({ words: ["x".repeat(2 ** 20)] }), constants.errno.E2BIG);
  const { signal, resize } = client.run(command({ words: ["\0"] }), DEAF);
  signal(9);
  resize(80, 24);
  await turn();
  assert.deepEqual(received, []);
});

test("a pending promise of the listener holds everything back until it settles, even if it rejects", async () => {
  const { client, reply, exit, request } = opened();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let heard = 0;
  const running = client.run(command(), {
    onOutput: () => {
      heard += 1;
      if (heard === 3) throw new Error("a screen that fails at once");
      return gates[heard - 1]?.promise;
    },
  });
  let ended = false;
  void running.ended.then(() => (ended = true));
  const { call } = await request(REQUEST.exec);
  for (const text of ["a", "b", "c"]) reply(REPLY.out, call, Buffer.from(text));
  exit(call);
  await sleep(5);
  assert.deepEqual([heard, ended], [1, false]);
  gates[0]?.resolve();
  await sleep(5);
  assert.deepEqual([heard, ended], [2, false]);
  gates[1]?.reject(new Error("a screen that fails later"));
  assert.equal((await running.ended).code, 0);
  assert.equal(heard, 3);
});

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield await Promise.resolve(Buffer.alloc(100_000));
}

test("input is sent as the runner accepts it, and stops with the call", async () => {
  const box = opened();
  const { client, reply, exit, request } = box;
  const running = client.run(command({ input: endless() }), DEAF);
  const { call } = await request(REQUEST.exec);
  await sleep(20);
  const sent = (): number => sizesOf(box).reduce((sum, size) => sum + size, 0);
  assert.ok(sent() > 400_000 && sent() <= 512 * 1024, String(sent()));
  assert.ok(sizesOf(box).every((size) => size <= 64 * 1024));
  reply(REPLY.credit, call, [["n", 300_000]]);
  await sleep(20);
  assert.ok(sent() > 700_000 && sent() <= 512 * 1024 + 300_000, String(sent()));
  exit(call);
  await running.ended;
  const last = sent();
  await sleep(20);
  assert.equal(sent(), last);
});

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.alloc(0);
  await turn();
  throw new Error("gone");
}

test("failing input is ended without further harm", async () => {
  const { client, exit, request } = opened();
  const running = client.run(command({ input: failing() }), DEAF);
  const { call } = await request(REQUEST.stdinEnd);
  exit(call);
  assert.equal((await running.ended).code, 0);
});

test("a command is sent exactly as requested", async () => {
  const { client, exit, request } = opened();
  const running = client.run(
    command({ words: ["a", "", "ä\uDCFF"], env: { A: "b=c" }, timeoutMs: 1.5 }),
    DEAF,
  );
  const { call, payload } = await request(REQUEST.exec);
  const fields = decodeFields(payload);
  const words = fields.filter(({ name }) => name === "a").map(({ bytes }) => bytes.toString("latin1"));
  assert.deepEqual(words, ["a", "", "\u00C3\u00A4\u00FF"]);
  assert.deepEqual([textIn(fields, "e"), textIn(fields, "d")], ["A=b=c", "/repo"]);
  running.signal(15);
  running.resize(80, 24);
  await request(REQUEST.resize);
  exit(call);
  await running.ended;
});

test("when the stream ends at any byte of an answer, the call ends with the answer or as lost", async () => {
  const answer = frameWriter(KEY)({ type: REPLY.exit, call: 1, payload: encodeFields([["c", 0]]) });
  for (let length = 0; length <= answer.length; length += 1) {
    const { client, raw, hangUp, request } = opened();
    const ended = client.run(command(), DEAF).ended.then(
      ({ code }) => code,
      (thrown: unknown) => isLoss(thrown) && "lost",
    );
    await request(REQUEST.exec);
    raw(answer.subarray(0, length));
    hangUp();
    assert.equal(await ended, length === answer.length ? 0 : "lost");
    assert.equal(await client.gone, "the box has ended");
  }
});

test("a command that wants a file at its end and the exact folder tells the runner so", async () => {
  const { client, exit, request, received } = opened();
  const running = client.run(command({ exact: true, keepFile: { path: "/run/x", limit: 5 } }), DEAF);
  const { call, payload } = await request(REQUEST.exec);
  const fields = decodeFields(payload);
  assert.deepEqual(
    [numberIn(fields, "f"), textIn(fields, "k"), numberIn(fields, "n")],
    [EXEC_EXACT, "/run/x", 5],
  );
  exit(call, [
    ["c", 0],
    ["K", "left"],
  ]);
  assert.deepEqual((await running.ended).kept, { content: Buffer.from("left") });
  const plain = client.run(command(), DEAF);
  await turn();
  const last = decodeFields(received.at(-1)?.payload ?? Buffer.alloc(0));
  assert.ok(!has(last, "k") && numberIn(last, "f") === 0);
  exit(call + 1);
  await plain.ended;
});
