import { changesIn, NO_CHANGES } from "../../agent/changes.ts";
import type { RunChanges } from "../../core/events.ts";
import type { LazyBox } from "./lazy-box.ts";

/** What a box that is lost had changed nobody can tell; one that no call has used has changed nothing. */
export async function boxChanges({ used, walls }: LazyBox, signal: AbortSignal): Promise<RunChanges | null> {
  const box = used();
  if (box === undefined) return NO_CHANGES;
  if (walls.aborted) return null;
  const fresh = signal.aborted ? new AbortController().signal : signal;
  return box.then((ready) => changesIn(ready, fresh)).catch(() => null);
}
