import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContainerInfo } from "dockerode";
import { engine } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/** Boxes that wait frozen, as a user has them. */

/** Counts in /tmp and, for the host to see, in the workspace for as long as it runs, and says each tenth. */
export const COUNTING =
  "n=0; while :; do n=$((n+1)); echo $n > /tmp/n.new; mv /tmp/n.new /tmp/n; echo $n > n; [ $((n % 10)) = 0 ] && echo at $n; sleep 0.05; done";

/** The containers over the place's workspace. */
export const boxesFor = (place: Scratch): Promise<readonly ContainerInfo[]> =>
  engine.api.listContainers({
    all: true,
    filters: { label: [`dev.harness.workspace=${place.at("work")}`] },
  });

/** The files that tell of frozen boxes. */
export const parkingsOf = (place: Scratch): Promise<readonly string[]> =>
  readdir(place.at(".local/state/harness/parked")).catch(() => []);

/** Of sandbox/runner/lease.h. */
export const LEASE_MS = 20_000;

/** Waits until no container over the workspace is left; how long that may take is the promise. */
export async function goneWithin(place: Scratch, ms: number): Promise<void> {
  const until = performance.now() + ms;
  while ((await boxesFor(place)).length > 0) {
    assert.ok(performance.now() < until, `a container is left after ${ms} ms`);
    await sleep(200);
  }
}
