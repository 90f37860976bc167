import { setTimeout as sleep } from "node:timers/promises";
import { type Holder, lockSession } from "../../boxes/workspace/workspace-lock.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type Host, hostAt, isDefaultEngine, namedCluster } from "../host.ts";
import { isEmpty } from "../../boxes/workspace/session-layer.ts";
import { type Layer, layerOf } from "../../boxes/workspace/layer-record.ts";
import type { ConfigRequest } from "../../config/load-config.ts";
import type { Session } from "../../core/session.ts";
import type { SettingKey } from "../../config/settings-schema.ts";
import { type ModelFlags, modelOfSession } from "./last-run.ts";
import { openSessions, type SessionChoice, sessionsWorkspace } from "./session-access.ts";

/** Another process has the session. */
class SessionBusy extends HarnessError {}

/**
 * Holds a session for this process while it works on the session: two writers would mix up their records, and a session
 * that is removed in between loses its audit and its undo. A kill frees the hold. Reading needs none.
 */
export async function holdSession(
  host: Host,
  session: string,
  next = `wait for it to end, or continue in a copy: harness run --resume ${session} --fork "…"`,
): Promise<AsyncDisposable> {
  const busy = ({ pid, since }: Holder): SessionBusy => {
    const who = pid === process.pid ? "this harness" : "another harness";
    const message = `the session ${session} is in use by ${who} (pid ${pid}, since ${since})`;
    return new SessionBusy(EXIT.usage, message, next);
  };
  try {
    return await lockSession(host.places.state, session, busy);
  } catch (thrown) {
    if (thrown instanceof SessionBusy || !(thrown instanceof HarnessError)) throw thrown;
    throw new HarnessError(
      EXIT.failed,
      `the session ${session}: ${thrown.message}`,
      thrown.remedy,
      thrown.cause,
    );
  }
}

const POLL_MS = 100;

/** Like holdSession, but waits for a holder that is about to finish, as long as `waits` returns true. */
export async function holdWhenFree(
  host: Host,
  session: string,
  waits: () => boolean,
  next: string,
): Promise<AsyncDisposable> {
  for (;;) {
    try {
      return await holdSession(host, session, next);
    } catch (thrown) {
      if (!(thrown instanceof SessionBusy) || !waits()) throw thrown;
    }
    await sleep(POLL_MS);
  }
}

/** Holds several sessions at once: all or none. */
export async function holdSessions(
  host: Host,
  sessions: Iterable<string>,
  next: (session: string) => string,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  for (const session of sessions) stack.use(await holdSession(host, session, next(session)));
  return stack.move();
}

/**
 * What a continued session says of the settings: its model; its copy lies on one engine, or came back from pods of one
 * cluster, and the session continues there without a flag. Flags take precedence; a contradicting flag is refused where the box
 * is made.
 */
export interface TakenUp {
  /** The host that uses that engine. */
  readonly host: Host;
  /** Applied as if they were flags. */
  readonly overrides: ConfigRequest["flags"];
  /** Where the session continues, if that differs from the place of a new session. */
  readonly note?: string;
}

/** The same for the session that a run continues; undefined if the run begins a new one. */
export async function hostForChoice(
  host: Host,
  flags: SessionChoice & ModelFlags,
  folder: string,
): Promise<TakenUp | undefined> {
  const { resume, fork, continue: last } = flags;
  if (resume === undefined && !last) return undefined;
  using store = openSessions(host, () => undefined);
  const id = resume === undefined ? store.last(await sessionsWorkspace(folder)) : store.open(resume).id;
  return id === undefined
    ? undefined
    : hostForSession(host, store.open(id), { ...flags, fork: fork === true });
}

/** The same for a session that is found already. A copy of a session has no part in its changes. */
export async function hostForSession(
  host: Host,
  session: Session,
  flags: ModelFlags & { readonly fork: boolean },
): Promise<TakenUp> {
  const model = await modelOfSession(host.places.state, session.id, flags);
  const taken = flags.fork ? undefined : await hostForCopy(host, session.id);
  return { host, ...taken, overrides: new Map([...model, ...(taken?.overrides ?? [])]) };
}

/** Undefined: the session has no copy that waits to be applied. */
export async function hostForCopy(host: Host, id: string): Promise<TakenUp | undefined> {
  const layer = await copyOf(host, id);
  if (layer === undefined) return undefined;
  const taken = await hostOf(host, layer);
  const overrides = new Map<string, { readonly key: SettingKey; readonly value: unknown }>();
  overrides.set(`the copy of ${id}`, { key: "isolation", value: "copy" });
  if (taken.engine === host.engine) return { host, overrides };
  overrides.set(`the engine of ${id}`, { key: "engine", value: taken.engine });
  return { host: taken, overrides, note: `continues at ${taken.engine}, where the changes of ${id} are` };
}

/** The place of the session's copy, if that is not the engine that is used anyway. */
export async function copyElsewhere(host: Host, id: string): Promise<string | undefined> {
  const layer = await copyOf(host, id);
  if (layer === undefined) return undefined;
  const { engine: kind, at } = layer;
  const isCluster = (await namedCluster(host)) !== undefined;
  if (kind !== undefined) return isCluster ? undefined : (at ?? "a cluster");
  return at === undefined || (!isCluster && (await isDefaultEngine(host, at))) ? undefined : at;
}

async function copyOf({ places }: Host, id: string): Promise<Layer | undefined> {
  const layer = await layerOf(places.state, id);
  return layer?.isolation === "copy" && !(await isEmpty(layer)) ? layer : undefined;
}

/** A copy that came back from pods may go into pods of any named cluster. */
async function hostOf(host: Host, layer: Layer): Promise<Host> {
  if (layer.engine === undefined) return hostAt(host, layer);
  if (host.engine !== null || (await namedCluster(host)) !== undefined) return host;
  return { ...host, engine: layer.at ?? "kubernetes:" };
}
