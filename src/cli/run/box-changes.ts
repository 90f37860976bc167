import { changesIn, NO_CHANGES } from "../../agent/changes.ts";
import { handoffIn } from "../../agent/handoff.ts";
import type { Request } from "../../agent/run.ts";
import type { Box } from "../../core/ports.ts";
import type { LazyBox } from "./lazy-box.ts";

type Told = Awaited<ReturnType<Request["changes"]>>;

/** `last`: no command of it counts any more, so nothing is committed for one from here on. What a box that is lost had changed nobody can tell; one that no call has used has changed nothing. */
export async function boxChanges(
  { used, walls, settle }: LazyBox,
  signal: AbortSignal,
  last = false,
): Promise<Told> {
  const box = used();
  if (box === undefined) return { changes: NO_CHANGES, handoff: [] };
  if (last) await settle();
  const unknown = { changes: null, handoff: [] };
  const fresh = signal.aborted ? new AbortController().signal : signal;
  const seen = walls.aborted ? unknown : await box.then((ready) => told(ready, fresh)).catch(() => unknown);
  const outside = await box.then(replacedIn).catch(() => []);
  const others = seen.handoff.filter(({ path }) => !outside.some((one) => one.path === path));
  return { ...seen, handoff: [...outside, ...others] };
}

/** What lost its protection may hold anything. */
async function replacedIn(box: Box): Promise<Told["handoff"]> {
  const paths = (await box.replaced?.()) ?? [];
  const reason = "replaced from outside while the box was open, which left it unprotected";
  return paths.map((path) => ({ path, tier: "dangerous", reason }));
}

async function told(box: Box, signal: AbortSignal): Promise<Told> {
  const seen = await box.changes();
  // One after the other: each reads all of them.
  const changes = await changesIn(box, seen, signal);
  return { changes, ...(await handoffIn(box, seen, signal)) };
}
