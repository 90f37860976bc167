import { sessionsWorkspace } from "../app/session-choice.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Session, SessionStore } from "../core/session.ts";
import { workspaceOf } from "./settings.ts";

/** The one that is named, or the last one of the folder. */
export async function sessionGiven(
  store: SessionStore,
  id: string | undefined,
  flags: Readonly<Record<string, unknown>>,
): Promise<Session> {
  if (id !== undefined) return store.open(id);
  const workspace = await sessionsWorkspace(workspaceOf(flags));
  const last = store.last(workspace);
  if (last !== undefined) return store.open(last);
  throw new HarnessError(EXIT.usage, `no session of ${workspace}`, "harness sessions list --all");
}
