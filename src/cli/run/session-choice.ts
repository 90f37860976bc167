import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Settings } from "../../config/schema.ts";
import type { Session, SessionStore } from "../../core/session.ts";

export interface Choice {
  readonly continue: boolean;
  readonly resume?: string | undefined;
  /** A session of its own goes on from there; the earlier one stays as it is. */
  readonly fork?: boolean | undefined;
}

/** An earlier session, named or the folder's last; undefined when a new one is wanted. */
export function earlierSession(store: SessionStore, choice: Choice, workspace: string): Session | undefined {
  const open = (id: string): Session => (choice.fork === true ? store.fork(id) : store.open(id));
  if (choice.resume !== undefined) return open(choice.resume);
  if (!choice.continue) return undefined;
  const last = store.last(workspace);
  if (last !== undefined) return open(last);
  throw new HarnessError(
    EXIT.usage,
    `no session of ${workspace} to go on with`,
    "harness sessions list --all",
  );
}

export function newSession(
  store: SessionStore,
  { mode, provider, chat_model }: Settings,
  { workspace, prompt }: { readonly workspace: string; readonly prompt: string },
): Session {
  const [line = ""] = prompt.trimStart().split("\n", 1);
  const title = line.length <= TITLE ? line : `${line.slice(0, TITLE - 1).toWellFormed()}…`;
  return store.create({ workspace, mode, provider, model: chat_model, title });
}

const TITLE = 80;

/** One session may have many runs. */
export const runId = (session: Session): string =>
  `${session.id}.${session.records().filter(({ kind }) => kind === "turn").length + 1}`;
