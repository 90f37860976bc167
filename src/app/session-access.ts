import { realpath } from "node:fs/promises";
import path from "node:path";
import { workspaceOf } from "../cli/settings.ts";
import { placesFrom } from "../config/places.ts";
import type { Settings } from "../config/settings-schema.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Session, SessionStore } from "../core/session.ts";
import { visible } from "../core/visible.ts";
import { stderr } from "../render/tty/output.ts";
import { openStore } from "../sessions/session-store.ts";

/** For one command. What was lost is said whatever else is to be quiet. */
export async function withSessions<T>(work: (store: SessionStore) => T | Promise<T>): Promise<T> {
  using store = openSessions((text) => {
    stderr.write(`warning: ${visible(text)}\n`);
  });
  return await work(store);
}

/** A workspace as sessions name it; one that is gone by now still has sessions. */
export const sessionsWorkspace = (folder: string): Promise<string> =>
  realpath(folder).catch(() => path.resolve(folder));

/** The session that was named, or the folder's last one; exit 2 when there is none. */
export function sessionFor(store: SessionStore, id: string | undefined, workspace: string): Session {
  const known = id ?? store.last(workspace);
  if (known !== undefined) return store.open(known);
  throw new HarnessError(EXIT.usage, `there is no session of ${workspace}`, "harness sessions list --all");
}

/** Constructs what remembers. */
export const openSessions = (warn: (text: string) => void): SessionStore =>
  openStore(placesFrom(process.env).state, { warn });

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
  const title = line.length <= MAX_TITLE ? line : `${line.slice(0, MAX_TITLE - 1).toWellFormed()}…`;
  return store.create({ workspace, mode, provider, model: chat_model, title });
}

const MAX_TITLE = 80;

/** One session may have many runs. */
export const runId = (session: Session): string =>
  `${session.id}.${session.records().filter(({ kind }) => kind === "turn").length + 1}`;

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
