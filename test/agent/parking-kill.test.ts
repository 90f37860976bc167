// slow: it kills a run before each lasting change, one after the other
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import test from "node:test";
import { parkedIn } from "../../src/core/session.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { killingItself } from "../kills/killed.ts";

const RUN = path.join(import.meta.dirname, "../fixtures/parking-writer.ts");
const SIDE_BY_SIDE = 3;

interface Left {
  /** Of the events that were shown, or are in the session. */
  readonly told: boolean;
  readonly kept: boolean;
  readonly ended: boolean;
}

/** A run that is killed right before its nth lasting change, and what is left of it. */
async function killedAt(place: Scratch, at: number): Promise<Left> {
  const state = place.at(`state-${at}`);
  const id = made(state);
  const env = { ...process.env, ...killingItself({ kind: "step", at, half: false }) };
  const child = spawn(process.execPath, [RUN, state, id], { stdio: ["ignore", "pipe", "inherit"], env });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  assert.ok(signal === "SIGKILL" || code === 0, said);
  using store = openStore(state, { warn: (text) => assert.fail(text) });
  const session = store.open(id);
  const told = [...session.events()].some(({ type }) => type === "call.parked");
  return {
    told: told || said.includes("call.parked\n"),
    kept: parkedIn(session.records()) !== undefined,
    ended: signal === null,
  };
}

function made(state: string): string {
  using store = openStore(state);
  return store.create(ABOUT).id;
}

test("wherever a run is killed, a call reported as parked has its question stored", async () => {
  await using place = await scratch();
  const all: Left[] = [];
  for (let from = 1; all.at(-1)?.ended !== true; from += SIDE_BY_SIDE) {
    const steps = Array.from({ length: SIDE_BY_SIDE }, (_, nth) => from + nth);
    all.push(...(await Promise.all(steps.map((at) => killedAt(place, at)))));
  }
  for (const [at, { told, kept }] of all.entries())
    assert.ok(kept || !told, `killed before change ${at + 1}: told as parked, and the question is lost`);
  // It was killed before the question was stored, between that and its report, and after both.
  const kinds = all.map(({ told, kept }) => (told ? "told" : kept ? "kept" : "neither"));
  assert.deepEqual([...new Set(kinds)], ["neither", "kept", "told"]);
});
