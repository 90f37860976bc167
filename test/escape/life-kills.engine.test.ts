// slow: it kills a run at many moments, one after the other
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { skip } from "../fixtures/engine.ts";
import { Room } from "../fixtures/escape.ts";
import { many } from "../fixtures/property.ts";
import { goneWithin, leftOn, startRun } from "./life-run.ts";

const KILLS = many(16);
/** A start takes about this long; most kills hit it, some a call. */
const MAX_MS = 420;

/** Kills runs at random moments, one after the other, then looks at what one more start leaves. */
async function lane(kills: number): Promise<void> {
  await using room = await Room.make();
  for (let kill = 0; kill < kills; kill += 1) {
    const run = startRun(room, "echo begun > mark; sleep 100");
    await sleep(randomInt(20, MAX_MS));
    run.child.kill("SIGKILL");
    await run.ended;
  }
  // What was asked of the engine last may still be in the making.
  await sleep(500);
  const next = startRun(room, "echo fine");
  assert.deepEqual([await next.ended, next.said()], [0, "fine\n"]);
  await goneWithin(room, 3000);
  assert.deepEqual(await leftOn(room), []);
  const state = path.join(room.root, "state", "harness");
  const odd = (await readdir(state, { recursive: true })).filter((name) =>
    /\.(lock|held|new)$|\/\./.test(name),
  );
  assert.deepEqual(odd, []);
}

test(`${KILLS} runs killed at random moments leave nothing behind`, { skip }, async () => {
  const half = Math.ceil(KILLS / 2);
  await Promise.all([lane(half), lane(KILLS - half)]);
});
