import { lstat, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { lastStep, type Session, type SessionAbout, type SessionStore } from "../../core/session.ts";
import { errorCode, EXIT, HarnessError, Interrupted, reasonOf } from "../../core/errors.ts";
import type { LayerChanges } from "../../core/ports.ts";
import { isEngine } from "../../docker/engine.ts";
import { changesOfLayer, clearGivenUp } from "../../docker/box/layer-volumes.ts";
import { changesOfReturned, foldPieces, holdExisting, isEmpty } from "../../boxes/workspace/session-layer.ts";
import { clearReturned, giveUpLayer, type Layer, layerOf } from "../../boxes/workspace/layer-record.ts";
import { frozenVolume } from "../../docker/box/parked-boxes.ts";
import { lockWorkspace } from "../../boxes/workspace/workspace-lock.ts";
import { forgetBase, prepareApply } from "../../sessions/apply-layer.ts";
import { filesOf, type SessionDiff } from "../../sessions/checkpoints/checkpoint-diff.ts";
import type { CheckpointStore } from "../../sessions/checkpoints/checkpoint-store.ts";
import { checkpointsIn, storeFolder } from "../../sessions/checkpoints/store-place.ts";
import {
  finishUndo,
  hasJournal,
  undo,
  type Undone,
  type UndoRequest,
} from "../../sessions/checkpoints/undo-changes.ts";
import { dropFrozen, hasFrozen, lookForEngine, requireEngine } from "../boxes/box-access.ts";
import { checkpointStores, endBoxes, endDeadBoxes } from "./checkpoint-access.ts";
import { type Host, hostAt, namedCluster } from "../host.ts";
import { logAfterEnd, passingFolder } from "./session-access.ts";
import { holdSessions } from "./session-hold.ts";
import { isAlive, type Owner, thisProcess } from "../../boxes/box-record.ts";
import { openStore } from "../../sessions/session-store.ts";
import { makeFolder } from "../../platform/folders.ts";

/** Works on the states of a workspace while no box holds it, and no other undo is in progress. */
async function aloneIn<T>(
  host: Host,
  workspace: string,
  work: (store: CheckpointStore) => Promise<T>,
): Promise<T> {
  const { state } = host.places;
  const { dev, ino } = await folderOf(workspace);
  await using _lock = await lockWorkspace({ path: workspace, dev, ino, write: true, stateDir: state });
  try {
    using store = (await checkpointStores())({ stateDir: state, workspace });
    return await work(store);
  } catch (thrown) {
    if (thrown instanceof HarnessError || thrown instanceof Interrupted) throw thrown;
    const message = `checkpoints in ${checkpointsIn(state)} cannot be used: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.failed, message, `df -h ${state}; ls -ld ${state}`, thrown);
  }
}

async function folderOf(workspace: string): Promise<{ readonly dev: number; readonly ino: number }> {
  const found = await lstat(workspace).catch(() => undefined);
  if (found?.isDirectory() === true) return found;
  throw new HarnessError(
    EXIT.usage,
    `the folder of this session no longer exists, or is not a folder: ${workspace}`,
    "put it back where it was, then run the same command again",
  );
}

/** Finishes an undo that was killed, before anything else is done to the workspace. */
export async function finishEarlierUndo(
  host: Host,
  sessions: SessionStore,
  workspace: string,
  say: (text: string) => void,
): Promise<void> {
  const finished = await aloneIn(host, workspace, (store) =>
    finishUndo(store, (id) => stepsOf(sessions, id)),
  );
  if (finished !== undefined) say(finished);
}

/** Undefined for a session that was removed since. */
function stepsOf(sessions: SessionStore, id: string): Session["steps"] | undefined {
  try {
    return sessions.open(id).steps;
  } catch {
    return undefined;
  }
}

interface OpenLayer {
  readonly layer: LayerChanges;
  readonly store: CheckpointStore;
  /** Marks the layer for removal. */
  readonly giveUp: () => Promise<void>;
}

/** Whether the session's changes are kept elsewhere than in the folder itself. */
const hasLayer = async ({ places }: Host, session: Session): Promise<boolean> =>
  (await layerOf(places.state, session.id)) !== undefined;

/** A layer that came back from pods lies in the state folder, and belongs to no engine. */
const engineOf = (layer: Layer | undefined): Layer | undefined =>
  layer?.engine === undefined ? layer : undefined;

export interface LayerUse {
  readonly say: (text: string) => void;
  /** A part of the layer is moved into the folder, or the whole layer is given up. */
  readonly moves: boolean;
}

/** A frozen box will continue with its layer: the layer can be looked at, but not taken away. */
async function inFrozen(host: Host, session: Session, moves: boolean): Promise<string | undefined> {
  if (!(await hasFrozen(host, session.id))) return undefined;
  if (moves)
    throw new HarnessError(
      EXIT.usage,
      `a frozen box holds the changes of ${session.id}: it continues once its question is answered`,
      `harness approve ${session.id}   (or give the box up: harness sandbox ls, harness sandbox rm)`,
    );
  const about = { uid: host.uid, stateDir: host.places.state, session: session.id };
  return frozenVolume(await requireEngine(host), about);
}

/** Works on the changes in a session's layer, while nobody else works on the layer or the folder. */
export async function withLayer<T>(
  asking: Host,
  sessions: SessionStore,
  session: Session,
  { say, moves }: LayerUse,
  work: (open: OpenLayer) => Promise<T>,
): Promise<T> {
  const { state } = asking.places;
  const found = await layerOf(state, session.id);
  if (found === undefined) throw noLayer(session);
  const host = await hostAt(asking, engineOf(found));
  await finishEarlierUndo(host, sessions, found.workspace, say);
  const done = await aloneIn(host, found.workspace, async (store) => {
    await using locked = (await holdExisting(state, session.id)) ?? refuse(session);
    await endBoxes(host);
    const mounted = await inFrozen(host, session, moves);
    const reading = { engine: () => requireEngine(host), uid: host.uid, mounted };
    if (locked.layer.engine !== undefined) await foldPieces(locked.layer);
    const giveUp = async (): Promise<void> => {
      await giveUpLayer(state, session.id);
      forgetBase(store, session.id);
    };
    if (locked.layer.engine !== undefined)
      return await work({ layer: await changesOfReturned(locked.layer), store, giveUp });
    using layer = await changesOfLayer(locked.layer, reading);
    return await work({ layer, store, giveUp });
  });
  // A layer that was given up is only cleared when nobody holds it any more.
  if ((await layerOf(state, session.id)) === undefined) await clearGivenUpLayers(host);
  return done;
}

function refuse(session: Session): never {
  throw noLayer(session);
}

const noLayer = ({ id }: Session): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `the session ${id} has nothing to apply: it changed nothing, or its changes are already applied`,
    `harness diff ${id}`,
  );

/**
 * Removes the unapplied changes of a session, and the frozen box that waits for it. What cannot be removed now is
 * removed with the next box.
 */
export async function removeLayer(asking: Host, session: Session): Promise<void> {
  const stateDir = asking.places.state;
  const found = await layerOf(stateDir, session.id);
  const host = await hostAt(asking, engineOf(found));
  await dropFrozen(host, session.id);
  {
    await using locked = await holdExisting(stateDir, session.id);
    if (locked === undefined) return;
    await giveUpLayer(stateDir, session.id);
    using store = (await checkpointStores())({ stateDir, workspace: locked.layer.workspace });
    forgetBase(store, session.id);
  }
  await clearGivenUpLayers(host);
}

/** Removes a layer without anything to apply; a layer that cannot be read now stays. */
export async function dropEmptyLayer(host: Host, sessions: SessionStore, session: Session): Promise<void> {
  if (!(await hasLayer(host, session))) return;
  const use = { say: () => undefined, moves: true };
  await withLayer(host, sessions, session, use, async ({ layer, store, giveUp }) => {
    const { made } = await prepareApply(store, { session: session.id, layer });
    if (!layer.incomplete && made.length === 0) await giveUp();
  }).catch(() => undefined);
}

/** Removes sessions, and reports each one; removes none if one of them is in use. */
export async function removeSessions(
  host: Host,
  sessions: SessionStore,
  ids: readonly string[],
  { removed, say }: { readonly removed: (id: string) => void; readonly say: (text: string) => void },
): Promise<void> {
  await using _held = await holdSessions(host, ids, () => ENDS_FIRST);
  for (const id of ids) {
    await finishOwnUndo(host, sessions, id, say);
    await removeSession(host, sessions, id);
    removed(id);
  }
}

/** Nobody would be told of a folder that is half undone once the session is gone. */
async function finishOwnUndo(
  host: Host,
  sessions: SessionStore,
  id: string,
  say: (text: string) => void,
): Promise<void> {
  const { workspace } = sessions.open(id).info();
  const folder = storeFolder({ stateDir: host.places.state, workspace });
  const isThere = (await lstat(workspace).catch(() => undefined))?.isDirectory() === true;
  if (isThere && hasJournal(folder)) await finishEarlierUndo(host, sessions, workspace, say);
}

const ENDS_FIRST = "wait for it to end, or end it; then run the same command again";

/**
 * Removes a session that the caller holds, or that nobody else uses, with everything that only it kept: its layer, its
 * frozen box, its checkpoints.
 */
async function removeSession(host: Host, sessions: SessionStore, id: string): Promise<void> {
  const session = sessions.open(id);
  const { workspace } = session.info();
  await removeLayer(host, session);
  const { forgetSession } = await import("../../sessions/checkpoints/recorder.ts");
  const { removeProposal } = await import("../project/policy-context.ts");
  await removeProposal(host, id);
  // The session itself is removed last: after a kill, the same command can be typed again.
  forgetSession({ stateDir: host.places.state, workspace }, id);
  sessions.remove(id);
}

/** Removes the content of layers that were given up. */
export async function clearGivenUpLayers(host: Host): Promise<void> {
  await clearReturned(host.places.state);
  if ((await namedCluster(host)) !== undefined) return;
  const engine = await lookForEngine(host);
  if (isEngine(engine)) await clearGivenUp(engine, { uid: host.uid, stateDir: host.places.state });
}

/** What applying would do to the workspace; undefined if the session has nothing to apply. */
export async function diffOfLayer(
  host: Host,
  sessions: SessionStore,
  session: Session,
  say: (text: string) => void,
): Promise<SessionDiff | undefined> {
  if (!(await hasLayer(host, session))) return undefined;
  return withLayer(host, sessions, session, { say, moves: false }, async ({ layer, store }) => {
    const { ops, refused } = await prepareApply(store, { session: session.id, layer });
    for (const { path, reason } of refused) say(`${path} would not be applied: ${reason}`);
    if (layer.incomplete) say("some of the session's changes cannot be read, and are not shown");
    const changes = ops
      .filter(({ from, to }) => from !== to)
      .map(({ path, from, to }) => ({ path, from: from ?? undefined, to: to ?? undefined }));
    if (changes.length > 0) say(`none of this is in the folder itself yet: harness apply ${session.id}`);
    const files = filesOf(changes, store.packs);
    const isNothing = files.length === 0 && refused.length === 0 && !layer.incomplete;
    return isNothing ? undefined : { files, cut: false, lostFrom: null };
  });
}

interface UndoOptions extends Omit<UndoRequest, "session" | "steps"> {
  readonly say: (text: string) => void;
}

const NOTHING: Undone = { ops: [], merged: [], refused: [], left: [], done: false, notes: [] };

/** A session with a layer has no steps: its changes are in no folder yet. */
export function requireStep({ id, steps }: Session, step: number): void {
  const last = lastStep(steps);
  if (step <= last) return;
  throw new HarnessError(
    EXIT.usage,
    `the session ${id} has ${last === 0 ? "no steps" : `steps 1 to ${last}`}`,
    `harness diff ${id} --steps`,
  );
}

/** Changes that were never applied to the folder cannot be undone there. */
async function unappliedNote({ places }: Host, { id }: Session): Promise<readonly string[]> {
  const layer = await layerOf(places.state, id);
  if (layer === undefined || (await isEmpty(layer))) return [];
  return [
    `the changes of ${id} are not in the folder: harness diff ${id} shows them, harness sessions rm ${id} discards them`,
  ];
}

/** An undo of any session of the folder that was cut short: whoever undoes something there finishes it first. */
const isUndoOpen = ({ places }: Host, session: Session): boolean =>
  hasJournal(storeFolder({ stateDir: places.state, workspace: session.info().workspace }));

export async function undoSession(
  host: Host,
  sessions: SessionStore,
  session: Session,
  { say, ...wanted }: UndoOptions,
): Promise<Undone> {
  const { id, steps } = session;
  requireStep(session, wanted.target);
  const all = steps.all();
  if (all.length === 0 && !wanted.redo && !isUndoOpen(host, session))
    return { ...NOTHING, notes: await unappliedNote(host, session) };
  return aloneIn(host, session.info().workspace, async (store) => {
    await endDeadBoxes(host, session);
    const finished = await finishUndo(store, (each) => stepsOf(sessions, each));
    if (finished !== undefined) say(finished);
    const undone = await undo(store, { ...wanted, session: id, steps });
    const whole = undone.refused.length === 0;
    if (undone.done)
      logAfterEnd(session, { type: "files.undone", to: wanted.redo ? null : wanted.target, whole });
    return undone;
  });
}

/**
 * A session that leaves nothing behind. Its records lie in `<state>/passing/<session>.<owner>/`, which no other command
 * reads, so it is never anybody's last session, not even while it runs. The folder's name is enough to clear up after a
 * kill: it names the owner, and the session whose layer and first tree lie beside those of others.
 */
export interface PassingSession extends AsyncDisposable {
  readonly session: Session;
  /** For files that are removed with the session. */
  readonly folder: string;
}

export async function passingSession(
  host: Host,
  store: SessionStore,
  about: SessionAbout,
): Promise<PassingSession> {
  const id = store.reserve();
  const { pid, start, boot } = await thisProcess();
  const folder = path.join(passingFolder(host.places.state), `${id}.${pid}-${start}-${boot}`);
  makeFolder(folder);
  const own = openStore(folder);
  return {
    session: own.create(about, id),
    folder,
    [Symbol.asyncDispose]: async () => {
      try {
        await removeSession(host, own, id);
      } finally {
        own[Symbol.dispose]();
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

interface Leftover {
  readonly folder: string;
  readonly session: string;
  readonly owner: Owner;
}

/**
 * Clears what killed processes left of such sessions; the engine's part of a layer is removed with the next box. What
 * cannot be cleared now is left to the next command.
 */
export async function clearPassingSessions({ places }: Host): Promise<void> {
  const root = passingFolder(places.state);
  const names = await readdir(root).catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  });
  for (const name of names) {
    const left = leftoverOf(root, name);
    if (left === undefined || (await isAlive(left.owner))) continue;
    await clearLeftover(places.state, left).catch(() => undefined);
  }
}

function leftoverOf(root: string, name: string): Leftover | undefined {
  const [, session, pid, start = "", boot = ""] = /^(\w+)\.(\d+)-(\d+)-([\w-]+)$/.exec(name) ?? [];
  if (session === undefined) return undefined;
  return { folder: path.join(root, name), session, owner: { pid: Number(pid), start, boot } };
}

/** The folder is removed last, so that a clearing that is killed can start again. */
async function clearLeftover(stateDir: string, { folder, session }: Leftover): Promise<void> {
  const workspace = workspaceOf(folder, session);
  await giveUpLayer(stateDir, session);
  if (workspace !== undefined) {
    const { forgetSession } = await import("../../sessions/checkpoints/recorder.ts");
    {
      using store = (await checkpointStores())({ stateDir, workspace });
      forgetBase(store, session);
    }
    forgetSession({ stateDir, workspace }, session);
  }
  await rm(folder, { recursive: true, force: true });
}

/** Undefined if the session was killed before it began. */
function workspaceOf(folder: string, session: string): string | undefined {
  try {
    using store = openStore(folder);
    return store.open(session).info().workspace;
  } catch {
    return undefined;
  }
}
