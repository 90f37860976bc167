import { EXIT, HarnessError } from "../core/errors.ts";
import type { Session, SessionStore } from "../core/session.ts";
import { finishUndo, undo, type Undone, type UndoRequest } from "../sessions/checkpoints/undo-changes.ts";
import { aloneIn, endDeadBoxes, stepsOf } from "./checkpoint-workspace.ts";

export interface Wanted extends Omit<UndoRequest, "session" | "steps"> {
  readonly say: (text: string) => void;
}

const NOTHING: Undone = { ops: [], merged: [], refused: [], left: [], done: false, notes: [] };

export async function undoSession(
  sessions: SessionStore,
  session: Session,
  { say, ...wanted }: Wanted,
): Promise<Undone> {
  const { id, steps } = session;
  const all = steps.all();
  const last = all.at(-1)?.step ?? 0;
  if (wanted.target > last)
    throw new HarnessError(
      EXIT.usage,
      `the session ${id} has ${last === 0 ? "no steps" : `steps 1 to ${last}`}`,
      `harness diff ${id} --steps`,
    );
  if (all.length === 0 && !wanted.redo) return NOTHING;
  return aloneIn(session.info().workspace, async (store) => {
    await endDeadBoxes(session);
    const finished = await finishUndo(store, (each) => stepsOf(sessions, each));
    if (finished !== undefined) say(finished);
    return undo(store, { ...wanted, session: id, steps });
  });
}
