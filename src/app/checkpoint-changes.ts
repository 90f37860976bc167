import { existsSync } from "node:fs";
import { placesFrom } from "../config/places.ts";
import type { Session } from "../core/session.ts";
import type { SessionDiff } from "../sessions/checkpoints/checkpoint-diff.ts";
import { storeFolder } from "../sessions/checkpoints/store-place.ts";

/** What the work of a session has made of its workspace; nothing where none was kept. */
export async function diffOfSession(session: Session, from: number): Promise<SessionDiff> {
  const place = { stateDir: placesFrom(process.env).state, workspace: session.info().workspace };
  const { id, steps } = session;
  if (steps.all().length === 0 || !existsSync(storeFolder(place)))
    return { files: [], cut: false, lostFrom: null };
  const [{ CheckpointStore }, { sessionDiff }] = await Promise.all([
    import("../sessions/checkpoints/checkpoint-store.ts"),
    import("../sessions/checkpoints/checkpoint-diff.ts"),
  ]);
  using store = new CheckpointStore(place);
  return await sessionDiff(store, { session: id, steps, from });
}
