import { placesFrom } from "../config/places.ts";
import { type ProbeSubject, readProbes, recordOn } from "../models/capabilities/probes.ts";

/** Whether a probe saw native calls; null when none was made. */
export async function probed(subject: ProbeSubject): Promise<boolean | null> {
  return recordOn(await readProbes(placesFrom(process.env).state), subject)?.native ?? null;
}
