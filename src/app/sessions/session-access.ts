import { readdirSync } from "node:fs";
import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent, CandidateReport, EventBody } from "../../core/events.ts";
import type { Session, SessionAbout, SessionStore } from "../../core/session.ts";
import { visible } from "../../core/visible.ts";
import { stderr } from "../../render/tty/output.ts";
import { openStore } from "../../sessions/session-store.ts";
import type { CopiedState, SavedState } from "../../sessions/checkpoints/saved-states.ts";
import type { Host } from "../host.ts";

/** Opens the sessions for one command. Damage is reported even if everything else is quiet. */
export async function withSessions<T>(host: Host, work: (store: SessionStore) => T | Promise<T>): Promise<T> {
  await clearPassingLeftovers(host);
  using store = openSessions(host, (text) => {
    stderr.write(`warning: ${visible(text)}\n`);
  });
  return await work(store);
}

/** The folder of sessions that leave nothing behind. */
export const passingFolder = (stateDir: string): string => path.join(stateDir, "passing");

/** Clears what killed commands left of such sessions, before sessions are read; usually there is nothing. */
export async function clearPassingLeftovers(host: Host): Promise<void> {
  if (!holdsAny(passingFolder(host.places.state))) return;
  const { clearPassingSessions } = await import("./session-changes.ts");
  await clearPassingSessions(host);
}

function holdsAny(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}

/** Logs an event after the last one of a session: what a person did when no run was active. */
export function logAfterEnd(session: Session, body: EventBody): void {
  let last: AgentEvent | undefined;
  for (const event of session.events()) last = event;
  if (last !== undefined) session.log({ ...body, run: last.run, seq: last.seq + 1 });
}

/** A workspace as sessions name it; a removed workspace still has sessions. */
export const sessionsWorkspace = (folder: string): Promise<string> =>
  realpath(folder).catch(() => path.resolve(folder));

/** The saved states of a folder, or of all: read without the session database. */
export async function savedStatesOf(
  { places }: Host,
  wanted: { readonly workspace: string | undefined; readonly warn: (text: string) => void },
): Promise<readonly SavedState[]> {
  const { savedStates } = await import("../../sessions/checkpoints/saved-states.ts");
  return savedStates(places.state, wanted);
}

export async function copyState({ places }: Host, state: string, into: string): Promise<CopiedState> {
  const { copySavedState } = await import("../../sessions/checkpoints/saved-states.ts");
  return copySavedState(places.state, state, into);
}

interface KeptLayer {
  readonly session: string;
  readonly workspace: string;
}

/** The sessions whose changes lie in a layer or a copy; read without the session database. */
export async function sessionsWithLayers(
  { places }: Host,
  workspace: string | undefined,
): Promise<readonly KeptLayer[]> {
  const { allLayers, layerOf } = await import("../../boxes/workspace/layer-record.ts");
  const kept = (await allLayers(places.state)).filter(({ state }) => state === "kept");
  const read = await Promise.all(
    kept.map(({ folder }) => layerOf(places.state, path.basename(folder)).catch(() => undefined)),
  );
  return read.filter(
    (each) => each !== undefined && (workspace === undefined || each.workspace === workspace),
  ) as readonly KeptLayer[];
}

/**
 * The changes in a layer outlive the session database. If that was lost, their session is recorded anew, so that they
 * can be shown, applied and removed.
 */
export async function recordLostSession(
  { places }: Host,
  store: SessionStore,
  id: string | undefined,
): Promise<void> {
  if (id === undefined || isKnown(store, id)) return;
  const { layerOf } = await import("../../boxes/workspace/layer-record.ts");
  const layer = await layerOf(places.state, id).catch(() => undefined);
  if (layer === undefined) return;
  const { workspace } = layer;
  const lost = { mode: "workspace-write", provider: "unknown", model: "unknown" } as const;
  store.create({ ...lost, workspace, title: "its records were lost" }, id);
}

function isKnown(store: SessionStore, id: string): boolean {
  try {
    store.open(id);
    return true;
  } catch {
    return false;
  }
}

/** The folder of a session: the settings of its project apply to a continuation of the session. */
export function folderOfSession({ places }: Host, id: string): string {
  using store = openStore(places.state, { warn: () => undefined });
  return store.open(id).info().workspace;
}

/** The named session, or the folder's last one; exit 2 if there is none. */
export async function namedSession(
  store: SessionStore,
  id: string | undefined,
  folder: string,
): Promise<Session> {
  if (id !== undefined) return store.open(id);
  const workspace = await sessionsWorkspace(folder);
  return store.open(lastOf(store, workspace, `there is no session of ${workspace}`));
}

/** One candidate of a run with `--attempts`, by number; any candidate's session identifies the run. */
export function attemptOf(store: SessionStore, session: Session, nth: number | undefined): Session {
  if (nth === undefined) return session;
  let all: readonly CandidateReport[] = [];
  for (const event of session.events()) if (event.type === "notice") all = event.attempts ?? all;
  const found = all[nth - 1];
  if (found !== undefined) return store.open(found.session);
  const { id } = session;
  const why =
    all.length === 0
      ? `${id} is not a candidate of a finished run with --attempts`
      : `the run of ${id} had ${all.length === 1 ? "one candidate" : `candidates 1 to ${all.length}`}`;
  throw new HarnessError(EXIT.usage, why, "harness sessions list   (each candidate is a session)");
}

function lastOf(store: SessionStore, workspace: string, none: string): string {
  const last = store.last(workspace);
  if (last === undefined) throw new HarnessError(EXIT.usage, none, "harness sessions list --all");
  return last;
}

export const openSessions = ({ places }: Host, warn: (text: string) => void): SessionStore =>
  openStore(places.state, { warn });

export interface SessionChoice {
  readonly continue: boolean;
  readonly resume?: string | undefined;
  /** Continue in a new session; the earlier one stays as it is. */
  readonly fork?: boolean | undefined;
}

/** An earlier session, named or the folder's last; undefined if a new one is wanted. */
export function earlierSession(
  store: SessionStore,
  choice: SessionChoice,
  workspace: string,
): Session | undefined {
  const open = (id: string): Session => (choice.fork === true ? store.fork(id) : store.open(id));
  if (choice.resume !== undefined) return open(choice.resume);
  if (!choice.continue) return undefined;
  return open(lastOf(store, workspace, `there is no session of ${workspace} to continue`));
}

type SessionSettings = Pick<Settings, "mode" | "chat_model"> & { readonly provider: string };

export const newSession = (
  store: SessionStore,
  settings: SessionSettings,
  { id, ...about }: { readonly workspace: string; readonly prompt: string; readonly id?: string },
): Session => store.create(aboutSession(settings, about), id);

export function aboutSession(
  { mode, provider, chat_model }: SessionSettings,
  { workspace, prompt }: { readonly workspace: string; readonly prompt: string },
): SessionAbout {
  const [line = ""] = prompt.trimStart().split("\n", 1);
  const title = line.length <= MAX_TITLE ? line : `${line.slice(0, MAX_TITLE - 1).toWellFormed()}…`;
  return { workspace, mode, provider, model: chat_model, title };
}

const MAX_TITLE = 80;

/** A session may have many runs. A killed run has no end, but its number is taken. */
export function runId(session: Session): string {
  const ended = session.records().filter(({ kind }) => kind === "turn").length;
  const last = Number(/\.(\d+)$/.exec(session.lastRun() ?? "")?.[1] ?? 0);
  return `${session.id}.${Math.max(ended, last) + 1}`;
}
