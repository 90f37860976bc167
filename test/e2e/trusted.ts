import { hostFrom, runWorkspace } from "../../src/app/host.ts";
import { revokeTrust, readTrust, type ShownTrust, trustByHash } from "../../src/app/project/project-trust.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/**
 * Does in this process what `harness trust` does: for tests in which the command is only a preparation. trust.test.ts
 * tests the command itself.
 */
async function seenIn(place: Scratch, folder: string) {
  const host = hostFrom({ HOME: place.path });
  return [host, await readTrust(host, runWorkspace(place.at(folder)))] as const;
}

/** The output of `trust --show --json`. */
export const toldTrust = async (place: Scratch, folder = "work"): Promise<ShownTrust> =>
  (await seenIn(place, folder))[1].shown;

/** Trusts everything in the project. */
export async function trustAll(place: Scratch, folder = "work"): Promise<void> {
  const [host, seen] = await seenIn(place, folder);
  await trustByHash(host, seen, seen.shown.hash);
}

export async function trustNothing(place: Scratch): Promise<void> {
  await revokeTrust(...(await seenIn(place, "work")));
}
