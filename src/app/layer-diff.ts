import type { Session, SessionStore } from "../core/session.ts";
import { filesOf, type SessionDiff } from "../sessions/checkpoints/checkpoint-diff.ts";
import { prepareApply } from "../sessions/apply-layer.ts";
import { hasLayer, withLayer } from "./session-layer.ts";

/** What applying would do to the workspace; undefined when the session has nothing that waits for it. */
export async function diffOfLayer(
  sessions: SessionStore,
  session: Session,
  say: (text: string) => void,
): Promise<SessionDiff | undefined> {
  if (!(await hasLayer(session))) return undefined;
  return withLayer(sessions, session, { say, moves: false }, async ({ layer, store }) => {
    const { ops, refused } = await prepareApply(store, { session: session.id, layer });
    for (const { path, reason } of refused) say(`${path} would not be applied: ${reason}`);
    const changes = ops
      .filter(({ from, to }) => from !== to)
      .map(({ path, from, to }) => ({ path, from: from ?? undefined, to: to ?? undefined }));
    if (changes.length > 0) say(`none of this is in the folder itself yet: harness apply ${session.id}`);
    const files = filesOf(changes, store.packs);
    return files.length === 0 && refused.length === 0 ? undefined : { files, cut: false, lostFrom: null };
  });
}
