import type { Engine } from "../engine.ts";
import { isBeingRemoved, isMissing } from "../failure.ts";
import { removeUnthawed } from "../life/frozen-container.ts";
import { boxFilter, boxOf } from "../labels.ts";
import { forget, type Standing, standingsOf } from "./files.ts";

export interface OfSession {
  readonly uid: number;
  readonly stateDir: string;
  readonly session: string;
}

/** Removes what waits frozen for a session, and what tells of it; its layer or copy stays. Whether there was anything. */
export async function discardParked(engine: Engine, of: OfSession): Promise<boolean> {
  const parked = (await standingsOf(of.stateDir, of.session)).filter(({ kind }) => kind === "parked");
  return parked.length === 0 ? false : discard(engine, of, parked);
}

async function discard(engine: Engine, of: OfSession, parked: readonly Standing[]): Promise<boolean> {
  await removeLeased(engine, of);
  for (const each of parked) await forget(each);
  return true;
}

/** The boxes that were made for a session to be parked, and their volumes. No other is meant by these labels. */
export async function removeLeased(engine: Engine, { uid, stateDir, session }: OfSession): Promise<void> {
  const filters = boxFilter(uid);
  const isMeant = ({ Labels }: { readonly Labels: Readonly<Record<string, string>> }): boolean => {
    const parks = boxOf(Labels)?.parks;
    return parks?.session === session && parks.stateDir === stateDir;
  };
  const boxes = (await engine.api.listContainers({ all: true, filters })).filter(isMeant);
  for (const { Id } of boxes) await removeUnthawed(engine.api.getContainer(Id)).catch(unlessGone);
  const { Volumes } = await engine.api.listVolumes({ filters });
  for (const { Name } of (Volumes ?? []).filter(isMeant))
    await engine.api.getVolume(Name).remove().catch(unlessGone);
}

function unlessGone(thrown: unknown): void {
  if (!isMissing(thrown) && !isBeingRemoved(thrown)) throw thrown;
}
