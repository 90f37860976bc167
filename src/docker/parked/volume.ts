import type { Engine } from "../engine.ts";
import { boxFilter, boxOf } from "../labels.ts";
import type { OfSession } from "./discard.ts";

/** The layers of a frozen box are mounted already, and bear no second mount: by this volume they can be looked into. */
export async function frozenVolume(
  engine: Engine,
  { uid, stateDir, session }: OfSession,
): Promise<string | undefined> {
  const { Volumes } = await engine.api.listVolumes({ filters: boxFilter(uid) });
  const own = (Volumes ?? []).find(({ Labels }) => {
    const parks = boxOf(Labels)?.parks;
    return parks?.session === session && parks.stateDir === stateDir;
  });
  return own?.Name;
}
