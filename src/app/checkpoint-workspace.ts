import { lstat } from "node:fs/promises";
import { placesFrom } from "../config/places.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { Session, SessionStore } from "../core/session.ts";
import { lockWorkspace } from "../docker/life/workspace-lock.ts";
import { CheckpointStore } from "../sessions/checkpoints/checkpoint-store.ts";
import { checkpointsIn } from "../sessions/checkpoints/store-place.ts";
import { finishUndo } from "../sessions/checkpoints/undo-changes.ts";

/** Works on the states of a workspace that no box is over, and no other undo. */
export async function aloneIn<T>(
  workspace: string,
  work: (store: CheckpointStore) => Promise<T>,
): Promise<T> {
  const { state } = placesFrom(process.env);
  const { dev, ino } = await folderOf(workspace);
  await using _lock = await lockWorkspace({ path: workspace, dev, ino, write: true, stateDir: state });
  try {
    using store = new CheckpointStore({ stateDir: state, workspace });
    return await work(store);
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
    const message = `checkpoints in ${checkpointsIn(state)} cannot be used: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.failed, message, `df -h ${state}; ls -ld ${state}`, thrown);
  }
}

async function folderOf(workspace: string): Promise<{ readonly dev: number; readonly ino: number }> {
  const found = await lstat(workspace).catch(() => undefined);
  if (found?.isDirectory() === true) return found;
  throw new HarnessError(
    EXIT.usage,
    `the folder of this session is gone, or is no folder any more: ${workspace}`,
    "put it back where it was, then type the same again",
  );
}

/** An undo that was killed, before anything else is done to the workspace. */
export async function finishEarlierUndo(
  sessions: SessionStore,
  workspace: string,
  say: (text: string) => void,
): Promise<void> {
  const told = await aloneIn(workspace, (store) => finishUndo(store, (id) => stepsOf(sessions, id)));
  if (told !== undefined) say(told);
}

/** undefined for one that was removed since. */
export function stepsOf(sessions: SessionStore, id: string): Session["steps"] | undefined {
  try {
    return sessions.open(id).steps;
  } catch {
    return undefined;
  }
}

/** Ends the boxes of runs that are dead: what one was told to do may still be writing. */
export async function endDeadBoxes({ steps }: Session): Promise<void> {
  if (steps.all().some(({ kind, after }) => kind === "call" && after === null)) await endBoxes();
}

/** The same whatever is known of any run. */
export async function endBoxes(): Promise<void> {
  const [{ lookForEngine, uid }, { isEngine }, { reap }] = await Promise.all([
    import("./open-box.ts"),
    import("../docker/engine.ts"),
    import("../docker/life/reap.ts"),
  ]);
  const engine = await lookForEngine();
  // Without an engine nothing runs in any box.
  if (isEngine(engine)) await reap(engine, { uid: uid(), stateDir: placesFrom(process.env).state });
}
