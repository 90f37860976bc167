import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { encodeFields, REPLY, REQUEST } from "../../src/boxes/runner-protocol.ts";
import { KEY, type ScriptedRunner, scriptedRunner } from "./scripted-runner.ts";

const COMMAND = {
  words: ["true"],
  folder: "/",
  env: {},
  timeoutMs: 0,
  head: 100,
  tail: 0,
  terminal: false,
  input: undefined,
};

const DEAF = { onOutput: () => undefined };

/** So many looks, each with time for what was sent to arrive. */
async function looks(t: TestContext, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    t.mock.timers.tick(1000);
    for (let step = 0; step < 4; step += 1) await turn();
  }
}

const pings = ({ received }: ScriptedRunner): number =>
  received.filter(({ type }) => type === REQUEST.ping).length;

function opened(t: TestContext): { readonly runner: ScriptedRunner; readonly client: RunnerClient } {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const runner = scriptedRunner();
  return { runner, client: new RunnerClient(runner.stream, KEY) };
}

test("a runner that stays silent while calls wait is given up, with all its calls", async (t) => {
  const { runner, client } = opened(t);
  const calls = [client.run(COMMAND, DEAF).ended, client.ask(REQUEST.stat, [["p", "/"]])];
  const lost = calls.map((call) => assert.rejects(call, /has not answered for 30 seconds/));
  await looks(t, 29);
  assert.equal(client.lost, undefined);
  assert.ok(pings(runner) > 20);
  await looks(t, 3);
  await Promise.all(lost);
  assert.match(await client.gone, /^it has not answered/);
});

test("a runner that answers is waited for, whatever its command does", async (t) => {
  const { runner, client } = opened(t);
  const { ended } = client.run(COMMAND, DEAF);
  const { call } = await runner.request(REQUEST.exec);
  for (let i = 0; i < 100; i += 1) {
    await looks(t, 1);
    runner.reply(REPLY.pong, 0);
  }
  runner.exit(call);
  assert.equal((await ended).code, 0);
});

test("a call that should have ended shortens the wait", async (t) => {
  const { client } = opened(t);
  const running = client.run(COMMAND, DEAF);
  const lost = assert.rejects(running.ended, /has not answered for 5 seconds/);
  await looks(t, 3);
  running.signal(9);
  await looks(t, 8);
  await lost;
});

test("an idle box is not pinged, and silence caused by the listener is ignored", async (t) => {
  const { runner, client } = opened(t);
  await looks(t, 60);
  assert.deepEqual([pings(runner), client.lost], [0, undefined]);
  const state = { free: (): void => undefined };
  const running = client.run(COMMAND, {
    onOutput: () => new Promise<void>((resolve) => (state.free = resolve)),
  });
  const { call } = await runner.request(REQUEST.exec);
  runner.reply(REPLY.out, call, Buffer.from("held back"));
  await turn();
  await looks(t, 60);
  assert.equal(client.lost, undefined);
  state.free();
  runner.exit(call);
  assert.equal((await running.ended).code, 0);
});

test("a protected path that the box found replaced ends the box and is named", async () => {
  const runner = scriptedRunner();
  const client = new RunnerClient(runner.stream, KEY);
  const { ended } = client.run(COMMAND, DEAF);
  await runner.request(REQUEST.exec);
  runner.reply(REPLY.unguarded, 0, encodeFields([["p", "/w/.git"]]));
  await assert.rejects(ended, /replaced from outside[^]*: \/w\/\.git\./);
  assert.deepEqual(client.unguarded, ["/w/.git"]);
});

test("a runner that is slow to hold is sent nothing more, and is waited for as usual", async (t) => {
  const { runner, client } = opened(t);
  const job = client.run(COMMAND, DEAF);
  job.ended.catch(() => undefined);
  const { call: begun } = await runner.request(REQUEST.exec);
  const holding = client.hold(Buffer.alloc(32, 9), new Set([begun]));
  const { call } = await runner.request(REQUEST.hold);
  await looks(t, 20);
  job.signal(9);
  client.alive();
  await looks(t, 1);
  assert.equal(runner.received.at(-1)?.type, REQUEST.hold);
  runner.reply(REPLY.held, call);
  assert.deepEqual([...(await holding).going], [begun]);
});

test("a runner that is told to hold and stays silent is given up", async (t) => {
  const { runner, client } = opened(t);
  const lost = assert.rejects(client.hold(Buffer.alloc(32, 9), new Set()), /has not answered for 30 seconds/);
  await runner.request(REQUEST.hold);
  await looks(t, 32);
  await lost;
});
