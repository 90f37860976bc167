import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { household } from "../e2e/box-command.ts";
import { boxesFor, COUNTING, LEASE_MS, parkingsOf } from "../e2e/frozen.ts";
import { approve, bash, FAR, FINE, park, sessionOf } from "../e2e/parked.ts";
import { harness, type Model, type RunStart, startModel } from "../e2e/run-command.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/** Of each kind. */
const KILLS = Number(process.env["HARNESS_KILLS"] ?? 24);
const LANES = 3;

const replies = [
  { calls: [["bash", { command: COUNTING, background: true }]] },
  bash("cat /tmp/n > /tmp/kept"),
  bash(FAR),
  FINE,
] as const;

/** Never two boxes, and none that runs on once its harness is gone. */
async function watched(place: Scratch, work: () => Promise<void>): Promise<void> {
  const seen = { most: 0 };
  const look = setInterval(() => {
    void boxesFor(place).then(({ length }) => (seen.most = Math.max(seen.most, length)));
  }, 50);
  await work().finally(() => clearInterval(look));
  assert.ok(seen.most <= 1, `${seen.most} boxes at once`);
}

const ran = async (place: Scratch): Promise<number> =>
  (await place.read("work/ran").catch(() => "")).split("\n").length - 1;

async function lastSession(place: Scratch): Promise<string | undefined> {
  const { stdout } = await harness(place, ["sessions", "list", "--json"]);
  const [line = ""] = stdout.split("\n");
  return line === "" ? undefined : (JSON.parse(line) as { readonly id: string }).id;
}

/** The question is there, or the run was not so far; whoever goes on comes to an end. */
async function goesOn(place: Scratch, model: Model): Promise<void> {
  const session = await lastSession(place);
  if (session === undefined) return;
  const more = await approve(place, session, ["--once"]);
  if (more.code === 0) return assert.equal(await ran(place), 1);
  assert.deepEqual([more.code, /nothing waits/.test(more.stderr)], [2, true], more.stderr);
  const on = await harness(place, ["run", "--continue", ...model.flags, "and now?"]);
  assert.ok(on.code === 0 || on.code === 4, on.stderr);
  assert.ok((await ran(place)) <= 1);
}

async function untilStill(place: Scratch): Promise<void> {
  const until = performance.now() + LEASE_MS + 10_000;
  for (;;) {
    const running = (await boxesFor(place)).filter(({ State }) => State !== "paused" && State !== "created");
    if (running.length === 0) return;
    assert.ok(performance.now() < until, "a box outlives its harness");
    await sleep(250);
  }
}

/** About when the box of such a run is parked. */
const PARKING_MS = [700, 1900] as const;
const FREEZING_MS = 150;
const APPROVING_MS = [150, 900] as const;

const soon = (child: ChildProcess): void =>
  void setTimeout(() => child.kill("SIGKILL"), randomInt(0, FREEZING_MS));

async function killedParking(nth: number): Promise<void> {
  await using place = await household();
  await using model = await startModel(replies);
  await watched(place, async () => {
    const words = ["run", "--on-ask", "park", ...model.flags, "do it"];
    // Half of the kills come when what it takes to go on is being written, and the box is about to be frozen.
    const start: RunStart =
      nth % 2 === 0
        ? { whenMade: [place.at(".local/state/harness/parked"), soon] }
        : { killAfterMs: randomInt(...PARKING_MS) };
    await harness(place, words, start);
    if (nth % 3 === 0) await untilStill(place);
    await goesOn(place, model);
  });
  await untilStill(place);
  assert.deepEqual(
    (await parkingsOf(place)).filter((name) => !name.endsWith(".begun")),
    [],
  );
}

async function killedApproving(nth: number): Promise<void> {
  await using place = await household();
  await using model = await startModel(replies);
  await watched(place, async () => {
    const session = sessionOf(await park(place, model));
    await approve(place, session, ["--once"], { killAfterMs: randomInt(...APPROVING_MS) });
    if (nth % 3 === 0) await untilStill(place);
    await goesOn(place, model);
  });
  await untilStill(place);
}

async function inLanes(kills: number, kill: (nth: number) => Promise<void>): Promise<void> {
  const next = { nth: 0 };
  const lane = async (): Promise<void> => {
    while (next.nth < kills) await kill((next.nth += 1));
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

test(`${KILLS} harnesses killed while they park leave one box at most, and the question`, { skip }, () =>
  inLanes(KILLS, killedParking),
);

test(`${KILLS} harnesses killed while they go on leave one box at most, and no doubt`, { skip }, () =>
  inLanes(KILLS, killedApproving),
);
