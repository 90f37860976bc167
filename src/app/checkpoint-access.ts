import { existsSync } from "node:fs";
import path from "node:path";
import { placesFrom } from "../config/places.ts";
import type { Settings } from "../config/settings-schema.ts";
import { type Checkpoints, NO_CHECKPOINTS } from "../core/checkpoint-port.ts";
import type { Emit } from "../core/events.ts";
import type { Session, SessionStore } from "../core/session.ts";
import type { SessionDiff } from "../sessions/checkpoints/checkpoint-diff.ts";
import type { CheckpointStore } from "../sessions/checkpoints/checkpoint-store.ts";
import { storeFolder } from "../sessions/checkpoints/store-place.ts";
import { endDeadBoxes } from "./session-changes.ts";

export interface CheckpointParts {
  readonly settings: Settings;
  readonly workspace: string;
  readonly session: Session;
  readonly store: SessionStore;
  readonly emit: Emit;
  readonly resumed: boolean;
}

type RunCheckpoints = Checkpoints & AsyncDisposable;

/** What keeps the states of the workspace of a run; loaded when a call is about to write. */
export async function checkpointsFor(parts: CheckpointParts): Promise<RunCheckpoints> {
  const { settings, workspace, session, store, emit, resumed } = parts;
  const notice = (text: string): void => emit({ type: "notice", text });
  const bound = settings.isolation === "bind";
  if (bound && settings.mode === "read-only") return NONE;
  const { state } = placesFrom(process.env);
  if (existsSync(path.join(storeFolder({ stateDir: state, workspace }), "journal"))) {
    const { finishEarlierUndo } = await import("./session-changes.ts");
    await finishEarlierUndo(store, workspace, notice);
  }
  // A layer or a copy is its own record.
  if (!bound) return NONE;
  const began = session.info().workspace;
  if (began !== workspace) {
    notice(`This session began in ${began}: what it does in ${workspace} cannot be undone.`);
    return NONE;
  }
  if (resumed) await endDeadBoxes(session);
  return lazily(async () => {
    const [{ RunCheckpoints }, { CheckpointStore }, { keepWithin }] = await Promise.all([
      import("../sessions/checkpoints/recorder.ts"),
      import("../sessions/checkpoints/checkpoint-store.ts"),
      import("../sessions/checkpoints/checkpoint-quota.ts"),
    ]);
    const open = () => new CheckpointStore({ stateDir: state, workspace });
    const makeRoom = (own: CheckpointStore): void => keepWithin(own, session.id, state);
    return new RunCheckpoints({ session: session.id, steps: session.steps, open, makeRoom, notice });
  });
}

const NONE: RunCheckpoints = { ...NO_CHECKPOINTS, [Symbol.asyncDispose]: () => Promise.resolve() };

/** So that the request that is on its way has left before anything is read. */
const SOON_MS = 1;

function lazily(load: () => Promise<RunCheckpoints>): RunCheckpoints {
  const held: { loaded?: Promise<RunCheckpoints> } = {};
  const loaded = (): Promise<RunCheckpoints> => (held.loaded ??= load());
  return {
    prepare: () => void setTimeout(() => void loaded().then((own) => own.prepare()), SOON_MS),
    around: async (writing, work) => (await loaded()).around(writing, work),
    [Symbol.asyncDispose]: async () => (await held.loaded)?.[Symbol.asyncDispose](),
  };
}

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
