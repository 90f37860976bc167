import { parkedIn } from "../../core/parked.ts";
import type { Session } from "../../core/session.ts";

/** Somebody goes on without a word on what waits: the box that waits for it goes. */
export async function giveUpFrozen(session: Session): Promise<void> {
  if (parkedIn(session.records())?.kept === undefined) return;
  const { dropFrozen } = await import("../frozen.ts");
  await dropFrozen(session.id);
}
