import { EXIT, HarnessError } from "../core/errors.ts";
import type { Session, SessionStore } from "../core/session.ts";

/** The session that was named, or the folder's last one; exit 2 when there is none. */
export function sessionFor(store: SessionStore, id: string | undefined, workspace: string): Session {
  const known = id ?? store.last(workspace);
  if (known !== undefined) return store.open(known);
  throw new HarnessError(EXIT.usage, `there is no session of ${workspace}`, "harness sessions list --all");
}
