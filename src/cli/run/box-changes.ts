import { changesIn, NO_CHANGES } from "../../agent/changes.ts";
import { handoffIn } from "../../agent/handoff.ts";
import type { Request } from "../../agent/run.ts";
import type { Box } from "../../core/ports.ts";
import type { LazyBox } from "./lazy-box.ts";

type Told = Awaited<ReturnType<Request["changes"]>>;

/** What a box that is lost had changed nobody can tell; one that no call has used has changed nothing. */
export async function boxChanges({ used, walls }: LazyBox, signal: AbortSignal): Promise<Told> {
  const box = used();
  if (box === undefined) return { changes: NO_CHANGES, handoff: [] };
  if (walls.aborted) return { changes: null, handoff: [] };
  const fresh = signal.aborted ? new AbortController().signal : signal;
  return box.then((ready) => told(ready, fresh)).catch(() => ({ changes: null, handoff: [] }));
}

async function told(box: Box, signal: AbortSignal): Promise<Told> {
  const seen = await box.changes();
  // One after the other: each reads all of them.
  const changes = await changesIn(box, seen, signal);
  return { changes, ...(await handoffIn(box, seen, signal)) };
}
