import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RunnerClient } from "../../../src/boxes/runner-client.ts";
import { REPLY, REQUEST } from "../../../src/boxes/runner-protocol.ts";
import { keptAlive } from "../../../src/docker/box/container.ts";
import { KEY, scriptedRunner } from "../../boxes/scripted-runner.ts";

/** What the runner itself is compiled with. */
const LEASE_H = path.join(import.meta.dirname, "../../../sandbox/runner/lease.h");
const LEASE_MS = Number(/^#define LEASE_MS (\d+)$/m.exec(readFileSync(LEASE_H, "utf8"))?.[1]);

test("a runner with a lease gets ten signs of life per lease, idle or not, until it is held", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const runner = scriptedRunner();
  const client = new RunnerClient(runner.stream, KEY);
  const told = (): number => runner.received.filter(({ type }) => type === REQUEST.alive).length;
  const pass = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms);
    for (let step = 0; step < 8; step += 1) await turn();
  };
  {
    using _ = keptAlive(client);
    await pass(LEASE_MS);
    assert.equal(told(), 10);
    await pass(LEASE_MS);
    assert.equal(told(), 20);
    const holding = client.hold(Buffer.alloc(32, 9), new Set());
    const { call } = await runner.request(REQUEST.hold);
    runner.reply(REPLY.held, call);
    await holding;
    await pass(LEASE_MS);
    assert.equal(told(), 20, "a frame to a held runner would end it");
  }
  const other = scriptedRunner();
  keptAlive(new RunnerClient(other.stream, KEY))[Symbol.dispose]();
  await pass(LEASE_MS);
  assert.equal(other.received.length, 0);
});
