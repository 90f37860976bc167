import type { Session, SessionStore } from "../../core/session.ts";
import { handoffOf } from "../../policy/handoff/handoff.ts";
import type { AppliedTold } from "../../render/tty/applied.ts";
import { standing } from "../../sessions/layers/chosen.ts";
import { move, prepareApply } from "../../sessions/layers/apply.ts";
import { factsOf } from "./facts.ts";
import { decide, isOf } from "./gate.ts";
import { withLayer } from "./layer.ts";
import { type AskPart, pickParts } from "./pick.ts";
import { stderr } from "../../render/tty/output.ts";

export interface ApplyOptions {
  /** Below the workspace; left out: all. */
  readonly only?: readonly string[];
  readonly accept: readonly string[];
  readonly dryRun: boolean;
  /** Asks for each part of what would be moved. */
  readonly ask?: AskPart;
  readonly say: (text: string) => void;
}

/** Moves what a session changed in its layer into the workspace, as far as it may be. */
export function applySession(
  sessions: SessionStore,
  session: Session,
  { only, accept, dryRun, ask, say }: ApplyOptions,
): Promise<AppliedTold> {
  return withLayer(sessions, session, { say, moves: !dryRun }, async ({ layer, store, giveUp }) => {
    if (layer.incomplete) say("a part of what the session changed cannot be read, and stays where it is");
    const wanted = { session: session.id, layer, ...(only === undefined ? {} : { only }) };
    const prepared = await prepareApply(store, wanted);
    const handoff = handoffOf(factsOf(prepared.ops, store), store.workspace);
    const told = { session: session.id, handoff, ...prepared };
    const { blocked, declined } = dryRun ? { blocked: [], declined: [] } : await decide(handoff, accept);
    if (dryRun || blocked.length > 0) return { ...told, blocked, done: false, whole: false };
    const allowedOps = prepared.ops.filter(({ path }) => !isOf(path, declined));
    const ops = standing(allowedOps, prepared.ops);
    const allowed = { ...prepared, ops };
    const chosen = ask === undefined ? allowed : await pickParts(allowed, store, { show: toStderr, ask });
    const moved = await move(store, { session: session.id, steps: session.steps }, chosen);
    const whole = moved.whole && !layer.incomplete;
    if (whole) await giveUp();
    return { ...told, ops: chosen.ops, blocked, done: true, whole };
  });
}

const toStderr = (text: string): void => void stderr.write(text);
