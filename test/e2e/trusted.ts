import { hostFrom, runWorkspace } from "../../src/app/host.ts";
import { revokeTrust, seenTrust, type ToldTrust, trustByHash } from "../../src/app/project/project-trust.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/**
 * What `harness trust` does, in this process: for tests to which the command is a step on the way. That the command
 * itself does it is for trust.test.ts to show.
 */
async function seenIn(place: Scratch, folder: string) {
  const host = hostFrom({ HOME: place.path });
  return [host, await seenTrust(host, await runWorkspace(place.at(folder)))] as const;
}

/** As `trust --show --json` tells it. */
export const toldTrust = async (place: Scratch, folder = "work"): Promise<ToldTrust> =>
  (await seenIn(place, folder))[1].told;

/** A yes to all that is there. */
export async function trustAll(place: Scratch, folder = "work"): Promise<void> {
  const [host, seen] = await seenIn(place, folder);
  await trustByHash(host, seen, seen.told.hash);
}

export async function trustNothing(place: Scratch): Promise<void> {
  await revokeTrust(...(await seenIn(place, "work")));
}
