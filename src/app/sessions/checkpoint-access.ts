import { existsSync } from "node:fs";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { type Checkpoints, NO_CHECKPOINTS, type Session, type SessionStore } from "../../core/session.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import type { Emit } from "../../core/events.ts";
import type { SessionDiff, WholeStep } from "../../sessions/checkpoints/checkpoint-diff.ts";
import type { CheckpointStore } from "../../sessions/checkpoints/checkpoint-store.ts";
import { storeFolder } from "../../sessions/checkpoints/store-place.ts";
import { type Host, namedCluster } from "../host.ts";
import type { UndoneStep } from "../run/person-request.ts";

/** Opens the checkpoint stores of workspaces; their code is loaded on first use. */
export async function checkpointStores(): Promise<(place: CheckpointPlace) => CheckpointStore> {
  const { CheckpointStore } = await import("../../sessions/checkpoints/checkpoint-store.ts");
  return (place) => new CheckpointStore(place);
}

type CheckpointPlace = ConstructorParameters<typeof CheckpointStore>[0];

export interface CheckpointParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly session: Session;
  readonly store: SessionStore;
  readonly emit: Emit;
  readonly resumed: boolean;
  /** The last step before the session's box was opened; left out if unknown. */
  readonly since?: number | undefined;
}

type RunCheckpoints = Checkpoints & AsyncDisposable;

/** The checkpoints of a run's workspace; loaded when a call is about to write. */
export async function checkpointsFor(parts: CheckpointParts): Promise<RunCheckpoints> {
  const { host, settings, workspace, session, store, emit, resumed, since } = parts;
  const notice = (text: string): void => emit({ type: "notice", text });
  const bound = settings.isolation === "bind";
  if (bound && settings.mode === "read-only") return NONE;
  const { state } = host.places;
  if (existsSync(path.join(storeFolder({ stateDir: state, workspace }), "journal"))) {
    const { finishEarlierUndo } = await import("./session-changes.ts");
    await finishEarlierUndo(host, store, workspace, notice);
  }
  // A layer or a copy is its own record, and the workspace stays unchanged.
  if (!bound) return { ...NONE, before: (name) => textIn(workspace, name) };
  const began = session.info().workspace;
  if (began !== workspace) {
    notice(`This session began in ${began}: what it does in ${workspace} cannot be undone.`);
    return NONE;
  }
  if (resumed) await endDeadBoxes(host, session);
  return lazily(async () => {
    const [{ keepWithin, RunCheckpoints }, stores] = await Promise.all([
      import("../../sessions/checkpoints/recorder.ts"),
      checkpointStores(),
    ]);
    const open = () => stores({ stateDir: state, workspace });
    const makeRoom = (own: CheckpointStore): void => keepWithin(own, session.id, state);
    return new RunCheckpoints({ session: session.id, steps: session.steps, since, open, makeRoom, notice });
  });
}

const NONE: RunCheckpoints = { ...NO_CHECKPOINTS, [Symbol.asyncDispose]: () => Promise.resolve() };

const MAX_TEXT = 4 * 2 ** 20;

async function textIn(workspace: string, name: string): Promise<string | undefined> {
  const { readRegular } = await import("../../platform/safe-files.ts");
  const content = await readRegular(path.join(workspace, name), { links: "refuse", max: MAX_TEXT }).catch(
    () => undefined,
  );
  return content === undefined || content.includes(0) ? undefined : textOfBytes(content);
}

/** Lets the current request be sent before anything is read. */
const SOON_MS = 1;

function lazily(load: () => Promise<RunCheckpoints>): RunCheckpoints {
  const once: { loaded?: Promise<RunCheckpoints> } = {};
  const loaded = (): Promise<RunCheckpoints> => (once.loaded ??= load());
  return {
    prepare: () => void setTimeout(() => void loaded().then((own) => own.prepare()), SOON_MS),
    around: async (writing, work, signal) => (await loaded()).around(writing, work, signal),
    before: async (name) => (await (once.loaded ?? NO_CHECKPOINTS)).before(name),
    unchanged: async (paths) => (await (once.loaded ?? NO_CHECKPOINTS)).unchanged(paths),
    [Symbol.asyncDispose]: async () => (await once.loaded)?.[Symbol.asyncDispose](),
  };
}

/** What the work of a session has changed in its workspace; empty if no checkpoints were kept. */
export async function diffOfSession({ places }: Host, session: Session, from: number): Promise<SessionDiff> {
  const place = { stateDir: places.state, workspace: session.info().workspace };
  const { id, steps } = session;
  if (steps.all().length === 0) return { files: [], cut: false, lostFrom: null };
  await requireStore(storeFolder(place));
  const [open, { sessionDiff }] = await Promise.all([
    checkpointStores(),
    import("../../sessions/checkpoints/checkpoint-diff.ts"),
  ]);
  using store = open(place);
  return await sessionDiff(store, { session: id, steps, from });
}

/** Without its checkpoints nobody knows what a session changed, which is not the same as nothing. */
async function requireStore(folder: string): Promise<void> {
  const [{ readdir }, { errorCode, EXIT, HarnessError, reasonOf }] = await Promise.all([
    import("node:fs/promises"),
    import("../../core/errors.ts"),
  ]);
  await readdir(folder).catch((thrown: unknown) => {
    const gone = errorCode(thrown) === "ENOENT";
    const why = gone
      ? `the checkpoints of this session are gone: there is no ${folder}`
      : `the checkpoints of this session cannot be read: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.failed, why, `ls -ld ${gone ? path.dirname(folder) : folder}`, thrown);
  });
}

/** Undo and redo steps of a person that no later work of the session followed. */
export async function undoneSteps({ places }: Host, session: Session): Promise<readonly UndoneStep[]> {
  const all = session.steps.all();
  const last = all.findLastIndex(({ kind }) => kind === "call" || kind === "lost");
  const steps = all.slice(last + 1).flatMap((each) => {
    const { kind } = each;
    return kind === "undo" || kind === "redo" ? [{ ...each, kind }] : [];
  });
  if (steps.length === 0) return [];
  const pathsOf = await changedBetween({ stateDir: places.state, workspace: session.info().workspace });
  return steps.map(({ step, kind, before, after }) => {
    const paths = before === null || after === null ? [] : pathsOf({ step, before, after });
    return { step, kind, paths };
  });
}

/** Returns no paths if the checkpoints cannot be read. */
async function changedBetween(place: CheckpointPlace): Promise<(step: WholeStep) => readonly string[]> {
  const [open, { spansOf }] = await Promise.all([
    checkpointStores(),
    import("../../sessions/checkpoints/checkpoint-diff.ts"),
  ]);
  return (step) => {
    try {
      using store = open(place);
      return [...spansOf([step], store.trees).keys()];
    } catch {
      return [];
    }
  };
}

/** Ends the boxes of dead runs, because a command of such a box may still be writing. */
export async function endDeadBoxes(host: Host, { steps }: Session): Promise<void> {
  if (steps.all().some(({ kind, after }) => kind === "call" && after === null)) await endBoxes(host);
}

/** Ends the boxes of dead runs without looking at any session. */
export async function endBoxes(host: Host): Promise<void> {
  // A pod of a dead run cannot change anything on this machine.
  if ((await namedCluster(host)) !== undefined) return;
  const [{ lookForEngine }, { isEngine }, { reap }] = await Promise.all([
    import("../boxes/box-access.ts"),
    import("../../docker/engine.ts"),
    import("../../docker/box/reap.ts"),
  ]);
  const engine = await lookForEngine(host);
  // Without an engine nothing runs in any box.
  if (isEngine(engine)) await reap(engine, { uid: host.uid, stateDir: host.places.state });
}
