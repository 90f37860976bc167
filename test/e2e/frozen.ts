import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContainerInfo } from "dockerode";
import type { Scratch } from "../fixtures/scratch.ts";
import { standingBoxes } from "../fixtures/standing-boxes.ts";

/** Boxes that wait frozen, as a user would have them. */

/** Counts in /tmp and, visible to the host, in the workspace for as long as it runs, and prints every tenth number. */
export const COUNTING =
  "n=0; while :; do n=$((n+1)); echo $n > /tmp/n.new; mv /tmp/n.new /tmp/n; echo $n > n.new; mv n.new n; [ $((n % 10)) = 0 ] && echo at $n; sleep 0.05; done";

/** Waits until the counter runs. */
export const COUNTS = "until [ -s /tmp/n ]; do sleep 0.1; done";

/** Prints the present count, and prints it again once it has grown by ten. */
export const COUNTS_ON = `${COUNTS}; at=$(cat /tmp/n); echo $at; until n=$(cat /tmp/n); [ $n -ge $((at + 10)) ]; do sleep 0.1; done; echo $n`;

/** The containers over the place's workspace. */
export const boxesFor = (place: Scratch): Promise<readonly ContainerInfo[]> =>
  standingBoxes(`dev.harness.workspace=${place.at("work")}`);

/** The files that record frozen boxes. */
export const parkingsOf = (place: Scratch): Promise<readonly string[]> =>
  readdir(place.at(".local/state/harness/parked")).catch(() => []);

/** The value from sandbox/runner/lease.h. */
export const LEASE_MS = 20_000;

const LOOK_MS = 200;

/** Checks until no container over the workspace is left, at most as often as fits into `ms`. */
export async function goneWithin(place: Scratch, ms: number): Promise<void> {
  const most = Math.ceil(ms / LOOK_MS);
  for (let looks = 0; (await boxesFor(place)).length > 0; looks += 1) {
    assert.ok(looks < most, `a container is left after ${looks} looks`);
    await sleep(LOOK_MS);
  }
}
