import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { appendFileSync, readdirSync, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sourceTree } from "../../bench/source-tree.ts";
import { History } from "../../src/agent/context/history.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { household } from "../e2e/box-command.ts";
import { boxesFor, COUNTING, LEASE_MS, parkingsOf } from "../e2e/frozen.ts";
import { hasIndex, indexed, indexOf } from "../e2e/index-of.ts";
import { approve, FAR, FINE, park, sessionOf } from "../e2e/parked.ts";
import {
  bash,
  harness,
  type Model,
  type Ran,
  type RunStart,
  type Said,
  startModel,
} from "../e2e/run-command.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { countSeen, type Dice, killingItself, type Moment, type Tally } from "./killed.ts";

/** The same as typed by a user, with a real box; timed from the start of the program. */
export const startOf = (moment: Moment): RunStart => {
  if (moment.kind === "never") return {};
  return moment.kind === "time" ? { killAfterMs: moment.ms } : { env: { ...killingItself(moment) } };
};

const FILES = 400;

/**
 * `harness index`, killed repeatedly: the catalog is never ahead of the store, and the last run produces the same as a
 * fresh index.
 */
export async function indexLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await household();
  const work = place.at("work");
  await sourceTree(work, FILES);
  await giveAway(work);
  for (let kill = 0; kill < kills; kill += 1) {
    const moment = dice.moment({ steps: 45, ms: 1500 });
    const { code } = await harness(place, ["index", "--quiet", "--no-embed"], startOf(moment));
    if (code === null) tally.cut += 1;
    if (hasIndex(place)) countSeen(tally, (await indexOf(place)).facts.whole ? "whole" : "not whole");
    else countSeen(tally, "no index yet");
    if (dice.below(2) === 0) await indexed(place);
    disturb(path.join(work, "part0", `unit${dice.below(4)}`), dice);
  }
  await indexed(place);
  const { chunks, facts } = await indexOf(place);
  assert.equal(facts.whole, true);
  rmSync(place.at(".local/state/harness/search"), { recursive: true });
  await indexed(place);
  assert.deepEqual((await indexOf(place)).chunks, chunks);
  assert.deepEqual(await boxesOver(work), []);
}

function disturb(folder: string, dice: Dice): void {
  for (const name of readdirSync(folder)) {
    const what = dice.below(4);
    if (what === 0) rmSync(path.join(folder, name), { recursive: true });
    else if (what === 1) appendFileSync(path.join(folder, name), `\n// disturbed ${dice.below(1000)}\n`);
  }
}

const WHOLE = "a line of a file that is written whole or not at all\n".repeat(4000);

/** A model that writes files by tool and by command, endlessly. */
export const writer = (nth: number): Said =>
  nth % 2 === 0
    ? { calls: [["write_file", { path: `tool-${nth}.txt`, content: WHOLE }]] }
    : { calls: [["bash", { command: `echo ${nth} > shell-${nth}.txt; mkdir -p d${nth}` }]] };

/**
 * Checks that files written by tools are complete; redirections of a shell have their own rules. Returns their number.
 */
export async function wholeFiles(work: string): Promise<number> {
  const names = (await readdir(work)).filter((name) => name.startsWith("tool-"));
  for (const name of names) assert.equal(await readFile(path.join(work, name), "utf8"), WHOLE, name);
  return names.length;
}

/** Runs that write and are killed; then their changes are undone, and only the user's own files must be left. */
export async function runLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await household({ "own.txt": "the user's\n" });
  await using model = await startModel((_chat, nth) => writer(nth), 8_000_000);
  for (let kill = 0; kill < kills; kill += 1) {
    const moment = dice.moment({ steps: 180, ms: 2500 });
    const flags = ["run", "--quiet", ...model.flags, "--max-turns", "8", "--intent", "change", "write files"];
    const continues = dice.below(3) === 0 ? ["--continue"] : [];
    const ran = await harness(place, [...flags, ...continues], startOf(moment));
    if (ran.code === null) tally.cut += 1;
    countSeen(tally, `ended with ${ran.code}`);
    await wholeFiles(place.at("work"));
  }
  const ids = sessionsIn(place);
  await using last = await startModel([{ text: "It goes on." }]);
  const on = await harness(place, ["run", ...last.flags, "--intent", "direct", "go on"]);
  assert.equal(on.code, 0, on.stderr);
  for (const id of ids.toSorted().toReversed()) {
    const ran = await harness(place, ["undo", id]);
    assert.ok(
      ran.code === 0 || /nothing/i.test(ran.stderr + ran.stdout),
      `${ran.code} ${ran.stderr}${ran.stdout}`,
    );
  }
  const names = (await readdir(place.at("work"))).toSorted();
  assert.deepEqual(names, ["own.txt"]);
  assert.equal(await place.read("work/own.txt"), "the user's\n");
  assert.deepEqual(await boxesOver(place.at("work")), []);
}

/** Checks that every session can be read and its history sent. */
function sessionsIn(place: Scratch): readonly string[] {
  using store = openStore(place.at(".local/state/harness"), { warn: (text) => assert.fail(text) });
  const ids = store.list({ limit: 1000 }).map(({ id }) => id);
  for (const id of ids) {
    History.from(store.open(id).records(), () => undefined).view();
    assert.ok(store.open(id).audit.verify().ok, id);
  }
  return ids;
}

const replies = [
  { calls: [["bash", { command: COUNTING, background: true }]] },
  bash("cat /tmp/n > /tmp/kept"),
  bash(FAR),
  FINE,
] as const;

/** Checks that there are never two boxes, and that no box outlives its harness. */
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

/** Checks that the question is there, or the run had not come so far; continuing must come to an end. */
async function goesOn(place: Scratch, model: Model): Promise<string> {
  const session = await lastSession(place);
  if (session === undefined) return "no session yet";
  const more = await approve(place, session, ["--once"]);
  if (more.code === 0) {
    assert.equal(await ran(place), 1);
    return "the question was there";
  }
  assert.deepEqual([more.code, /waits for approval/.test(more.stderr)], [2, true], more.stderr);
  const on = await harness(place, ["run", "--continue", "--intent", "direct", ...model.flags, "and now?"]);
  assert.ok(on.code === 0 || on.code === 4, on.stderr);
  assert.ok((await ran(place)) <= 1);
  return "no question";
}

const LOOK_MS = 250;
const MOST_LOOKS = (LEASE_MS + 10_000) / LOOK_MS;

async function untilStill(place: Scratch): Promise<void> {
  for (let looks = 0; ; looks += 1) {
    const running = (await boxesFor(place)).filter(({ State }) => State !== "paused" && State !== "created");
    if (running.length === 0) return;
    assert.ok(looks < MOST_LOOKS, "a box outlives its harness");
    await sleep(LOOK_MS);
  }
}

/** The time around which the box of such a run is parked. */
const PARKING_MS = [700, 1900] as const;
const FREEZING_MS = 150;
const APPROVING_MS = [150, 900] as const;
const PARKING_STEPS = 115;
const APPROVING_STEPS = 72;

/** A third of the kills before a change, a third while the data for continuing is written, a third by the clock. */
function parkingStart(place: Scratch, dice: Dice): RunStart {
  const kind = dice.below(3);
  if (kind === 0)
    return startOf({ kind: "step", at: 1 + dice.below(PARKING_STEPS), half: dice.below(2) === 0 });
  if (kind === 1) return { killAfterMs: between(dice, PARKING_MS) };
  const ms = dice.below(FREEZING_MS);
  const soon = (child: ChildProcess): void => void setTimeout(() => child.kill("SIGKILL"), ms);
  return { whenMade: [place.at(".local/state/harness/parked"), soon] };
}

const between = (dice: Dice, [from, to]: readonly [number, number]): number => from + dice.below(to - from);

/** Kills a run while it parks. */
export async function parkingLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  for (let kill = 0; kill < kills; kill += 1) {
    await using place = await household();
    await using model = await startModel(replies);
    await watched(place, async () => {
      const words = ["run", "--on-ask", "park", ...model.flags, "do it"];
      count(tally, await harness(place, words, parkingStart(place, dice)));
      if (dice.below(3) === 0) await untilStill(place);
      countSeen(tally, await goesOn(place, model));
    });
    await untilStill(place);
    assert.deepEqual(
      (await parkingsOf(place)).filter((name) => !name.endsWith(".begun")),
      [],
    );
  }
}

/** Kills a run while it continues with an answer. */
export async function approvingLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  for (let kill = 0; kill < kills; kill += 1) {
    await using place = await household();
    await using model = await startModel(replies);
    await watched(place, async () => {
      const session = sessionOf(await park(place, model));
      const start =
        dice.below(2) === 0
          ? startOf({ kind: "step", at: 1 + dice.below(APPROVING_STEPS), half: dice.below(2) === 0 })
          : { killAfterMs: between(dice, APPROVING_MS) };
      count(tally, await approve(place, session, ["--once"], start));
      if (dice.below(3) === 0) await untilStill(place);
      countSeen(tally, await goesOn(place, model));
    });
    await untilStill(place);
  }
}

function count(tally: Tally, { code }: Ran): void {
  if (code === null) tally.cut += 1;
}
