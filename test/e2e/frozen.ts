import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContainerInfo } from "dockerode";
import type { Scratch } from "../fixtures/scratch.ts";
import { standingBoxes } from "../fixtures/standing-boxes.ts";

/** Boxes that wait frozen, as a user has them. */

/** Counts in /tmp and, for the host to see, in the workspace for as long as it runs, and says each tenth. */
export const COUNTING =
  "n=0; while :; do n=$((n+1)); echo $n > /tmp/n.new; mv /tmp/n.new /tmp/n; echo $n > n.new; mv n.new n; [ $((n % 10)) = 0 ] && echo at $n; sleep 0.05; done";

/** Waits until somebody counts. */
export const COUNTS = "until [ -s /tmp/n ]; do sleep 0.1; done";

/** Says how far it has counted, and again when it has gone on from there to where it says so itself. */
export const COUNTS_ON = `${COUNTS}; at=$(cat /tmp/n); echo $at; until n=$(cat /tmp/n); [ $n -ge $((at + 10)) ]; do sleep 0.1; done; echo $n`;

/** The containers over the place's workspace. */
export const boxesFor = (place: Scratch): Promise<readonly ContainerInfo[]> =>
  standingBoxes(`dev.harness.workspace=${place.at("work")}`);

/** The files that tell of frozen boxes. */
export const parkingsOf = (place: Scratch): Promise<readonly string[]> =>
  readdir(place.at(".local/state/harness/parked")).catch(() => []);

/** Of sandbox/runner/lease.h. */
export const LEASE_MS = 20_000;

const LOOK_MS = 200;

/** Looks until no container over the workspace is left, as often as fits into so long a wait. */
export async function goneWithin(place: Scratch, ms: number): Promise<void> {
  const most = Math.ceil(ms / LOOK_MS);
  for (let looks = 0; (await boxesFor(place)).length > 0; looks += 1) {
    assert.ok(looks < most, `a container is left after ${looks} looks`);
    await sleep(LOOK_MS);
  }
}
