import { readdir } from "node:fs/promises";
import type { ContainerInfo } from "dockerode";
import { engine } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/** Boxes that wait frozen, as a user has them. */

/** Counts in /tmp for as long as it runs, and says each tenth. */
export const COUNTING =
  "n=0; while :; do n=$((n+1)); echo $n > /tmp/n.new; mv /tmp/n.new /tmp/n; [ $((n % 10)) = 0 ] && echo at $n; sleep 0.05; done";

/** The containers over the place's workspace. */
export const boxesFor = (place: Scratch): Promise<readonly ContainerInfo[]> =>
  engine.api.listContainers({
    all: true,
    filters: { label: [`dev.harness.workspace=${place.at("work")}`] },
  });

/** The files that tell of frozen boxes. */
export const parkingsOf = (place: Scratch): Promise<readonly string[]> =>
  readdir(place.at(".local/state/harness/parked")).catch(() => []);
