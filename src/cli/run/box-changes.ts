import { changesIn, NO_CHANGES } from "../../agent/changes.ts";
import type { RunChanges } from "../../core/events.ts";
import type { LazyBox } from "./lazy-box.ts";

/** What a box that is lost had changed nobody can tell. */
export async function boxChanges({ begun, walls }: LazyBox, signal: AbortSignal): Promise<RunChanges | null> {
  const box = begun();
  if (box === undefined) return NO_CHANGES;
  if (walls.aborted) return null;
  const fresh = signal.aborted ? new AbortController().signal : signal;
  return box.then((ready) => changesIn(ready, fresh)).catch(() => null);
}
