import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { encodeFields, REPLY, REQUEST } from "../../src/boxes/runner-protocol.ts";
import { KEY, scriptedRunner } from "./scripted-runner.ts";

const KEY_TOO = Buffer.alloc(32, 9);
const COMMAND = {
  words: ["sleep"],
  folder: "/",
  env: {},
  timeoutMs: 0,
  head: 100,
  tail: 100,
  terminal: false,
  input: undefined,
};
const DEAF = { onOutput: () => undefined };

test("a hold names the next number, what continues and what was asked too late", async () => {
  const runner = scriptedRunner();
  const client = new RunnerClient(runner.stream, KEY, { onAsk: () => Promise.resolve(Buffer.alloc(0)) });
  const job = client.run(COMMAND, DEAF);
  job.ended.catch(() => undefined);
  const holding = client.hold(KEY_TOO, new Set([job.call]));
  const { call, payload } = await runner.request(REQUEST.hold);
  assert.deepEqual(payload, KEY_TOO);
  client.alive();
  runner.reply(REPLY.ask, 4, Buffer.from("commit"));
  runner.reply(REPLY.held, call);
  const { next, asks, going } = await holding;
  assert.deepEqual([next, [...going]], [call + 1, [job.call]]);
  assert.deepEqual(asks, [{ call: 4, payload: Buffer.from("commit") }]);
  await turn();
  assert.deepEqual(
    runner.received.map(({ type }) => type),
    [REQUEST.exec, REQUEST.hold],
  );
});

test("pending questions are answered before a hold, and running calls delay or refuse it", async () => {
  const runner = scriptedRunner();
  const gate = Promise.withResolvers<Buffer>();
  const client = new RunnerClient(runner.stream, KEY, { onAsk: () => gate.promise });
  runner.reply(REPLY.ask, 4, Buffer.from("commit"));
  await sleep(5);
  const holding = client.hold(KEY_TOO, new Set());
  await sleep(50);
  assert.deepEqual(runner.received, []);
  gate.resolve(Buffer.from("done"));
  const { call } = await runner.request(REQUEST.hold);
  assert.deepEqual(
    runner.received.map(({ type }) => type),
    [REQUEST.answer, REQUEST.hold],
  );
  runner.reply(REPLY.held, call);
  await holding;
  const busy = scriptedRunner();
  const other = new RunnerClient(busy.stream, KEY);
  const asked = other.ask(REQUEST.stat, [["p", "/x"]]);
  await assert.rejects(other.hold(KEY_TOO, new Set(), 40), /busy/);
  const patient = other.hold(KEY_TOO, new Set());
  busy.reply(REPLY.end, 1, encodeFields([["e", 0]]));
  await asked;
  const { call: later } = await busy.request(REQUEST.hold);
  busy.reply(REPLY.held, later);
  assert.deepEqual([...(await patient).going], []);
});

test("a sign of life is a frame of its own", async () => {
  const runner = scriptedRunner();
  new RunnerClient(runner.stream, KEY).alive();
  const { payload, call } = await runner.request(REQUEST.alive);
  assert.deepEqual([payload.length, call], [0, 0]);
});
