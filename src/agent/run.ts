import type { EventBody, Intent, RunChanges } from "../core/events.ts";
import type { Handoff } from "../core/handoff.ts";
import type { SessionRecord } from "../core/session.ts";
import { intentOf } from "./intent-of.ts";
import { signalOf } from "./interrupted.ts";
import { type LoopEnd, work } from "./loop.ts";
import { denialsOf, type Ending, outcomeOf } from "./outcome.ts";
import type { Seat } from "./seat.ts";

/** One request of the user. */
export interface Request {
  readonly prompt: string;
  /** For the model behind the prompt; it is no part of what is wanted. */
  readonly note?: string;
  /** Given by the user; guessed from the prompt when left out. */
  readonly intent?: Intent;
  readonly strict: boolean;
  readonly session: string;
  /** Somebody goes on from where they were: nothing stays of a request that was cancelled, or that nothing answered. */
  readonly takesBack?: boolean;
  /** What the workspace is like afterwards; null when nobody can tell. */
  readonly changes: () => Promise<{
    readonly changes: RunChanges | null;
    readonly handoff: readonly Handoff[];
  }>;
  readonly record: (record: SessionRecord) => void;
}

export type Finished = Extract<EventBody, { readonly type: "run.finished" }>;

/** From a request to its end, which is told whatever happens: what it came to, what was refused, what it cost. */
export async function runRequest(seat: Seat, request: Request, signal: AbortSignal): Promise<Finished> {
  const either = seat.limits.deadline(signal);
  await chooseTools(seat, request, either);
  const before = seat.history.count;
  seat.history.add({ role: "user", text: request.prompt + (request.note ?? "") });
  const ending = endingOf(await work(seat, either), { signal, seat });
  const unanswered = seat.history.count === before + 1;
  if (request.takesBack === true && (ending.how === "cancelled" || unanswered)) seat.rollBack(before);
  const { status, exit_code, reason } = outcomeOf(ending, seat.ended, request.strict);
  const finished: Finished = {
    type: "run.finished",
    status,
    exit_code,
    reason,
    turns: seat.limits.turns,
    tool_calls: seat.limits.calls,
    usage: seat.spent.usage,
    denials: denialsOf(seat.ended),
    ...(await request.changes()),
    session: request.session,
    answer: ending.how === "answered" ? ending.text : null,
  };
  request.record({ kind: "turn", result: resultOf(seat, finished) });
  seat.emit(finished);
  return finished;
}

async function chooseTools(seat: Seat, { prompt, intent }: Request, signal: AbortSignal): Promise<void> {
  const decided = await intentOf(seat, prompt, intent, signal);
  seat.emit({ type: "intent", ...decided.told });
  seat.offer.widen(decided.told.intent, decided.tools, decided.told.by === "flag");
  if (decided.told.intent !== "direct") seat.warm();
  if (decided.told.intent === "change") seat.checkpoints.prepare();
}

type Ended = Exclude<Ending, { readonly how: "answered" }> | Extract<LoopEnd, { readonly how: "answered" }>;

/** Of two reasons to be cancelled, the person's counts. */
function endingOf(
  end: LoopEnd,
  { signal, seat }: { readonly signal: AbortSignal; readonly seat: Seat },
): Ended {
  if (end.how !== "cancelled") return end;
  const spent = signal.aborted ? undefined : seat.limits.reached("turn");
  return spent === undefined ? { how: "cancelled", signal: signalOf(signal) } : { how: "limit", ...spent };
}

const resultOf = (
  seat: Seat,
  { status, reason, usage, turns, tool_calls, answer }: Finished,
): Extract<SessionRecord, { readonly kind: "turn" }>["result"] => ({
  intent: seat.offer.intent,
  status,
  reason,
  usage,
  turns,
  toolCalls: tool_calls,
  answer,
});
