import { EXIT, HarnessError } from "../core/errors.ts";
import { ask, type Reply } from "./ask.ts";
import { escalated } from "./escalation.ts";
import type { Ending } from "./outcome.ts";
import { type Round, runRound } from "./round.ts";
import type { Seat } from "./seat.ts";
import type { Waiting } from "./stopped.ts";

export type LoopEnd =
  | { readonly how: "answered"; readonly text: string }
  | { readonly how: "cancelled" }
  | { readonly how: "parked"; readonly reason: string; readonly waiting: Waiting }
  | Exclude<Ending, { readonly how: "answered" | "cancelled" | "parked" }>;

/** Of a reply that was parked: its calls without a result are in the history. */
export type Left = Omit<Round, "calls">;

/**
 * Asks the model, runs what it calls, shows it the results, until it answers or something ends it. Cancelled, the
 * history goes back to where the turn began; what finished calls did to files stays. With `left` it goes on with what is
 * left of the last reply.
 */
export async function work(seat: Seat, signal: AbortSignal, left?: Left): Promise<LoopEnd> {
  const either = AbortSignal.any([signal, seat.walls]);
  let next = left === undefined ? undefined : reprise(seat, left, either);
  for (;;) {
    const { mark, run } = next ?? newTurn(seat, either);
    next = undefined;
    const end = await run().catch((thrown: unknown) => {
      if (!either.aborted) return boxLost(thrown);
      return undefined;
    });
    if (either.aborted) seat.rollBack(mark);
    if (signal.aborted) return { how: "cancelled" };
    if (seat.walls.aborted) return boxLost(seat.walls.reason);
    if (end !== undefined) return end;
  }
}

interface Step {
  /** Where the history goes back to when it is cancelled. */
  readonly mark: number;
  readonly run: () => Promise<LoopEnd | undefined>;
}

function newTurn(seat: Seat, signal: AbortSignal): Step {
  const spent = seat.limits.reached("turn");
  const end = spent && ({ how: "limit", ...spent } as const);
  return {
    mark: seat.history.count,
    run: () => (end === undefined ? turn(seat, signal) : Promise.resolve(end)),
  };
}

/** The turn that was parked; a new one where nothing of it is left. */
function reprise(seat: Seat, left: Left, signal: AbortSignal): Step | undefined {
  const open = seat.history.openReply;
  return open && { mark: open.at, run: () => runRound(seat, { ...left, calls: open.calls }, signal) };
}

/** One request of the model and what it calls. Undefined when there is more to do. */
async function turn(seat: Seat, signal: AbortSignal): Promise<LoopEnd | undefined> {
  const { history, limits, compactor } = seat;
  limits.turn();
  seat.emit({ type: "turn.started", turn: limits.turns, record_count: history.count });
  const fitted = await compactor.fit(signal);
  if (fitted.kind === "too_long") return { how: "too_long", reason: tooLong(fitted) };
  const reply = escalated(seat, await ask(seat, signal, seat.answer.format()));
  if (reply.kind === "failed") return failed(seat, reply, signal);
  const { message, malformed, stop } = reply;
  history.add(message);
  if (message.calls.length + malformed.length > 0)
    return runRound(seat, { calls: message.calls, malformed }, signal);
  const taken = seat.answer.take(message.text, stop === "length");
  if ("how" in taken) return taken;
  history.add(taken);
  return undefined;
}

/** A window that the server finds too small is made room in, once more than was thought necessary. */
async function failed(
  seat: Seat,
  { failure: { kind, reason } }: Extract<Reply, { readonly kind: "failed" }>,
  signal: AbortSignal,
): Promise<LoopEnd | undefined> {
  if (kind === "cancelled") return { how: "cancelled" };
  if (kind !== "too_long") return { how: "model_failed", kind, reason };
  const shorter = await seat.compactor.now("refused", signal);
  return shorter ? undefined : { how: "too_long", reason };
}

const tooLong = ({ tokens, window }: { readonly tokens: number; readonly window: number }): string =>
  `the conversation does not fit the model's window: about ${tokens} of ${window} tokens`;

/** The only thing that a call may throw; anything else, as a disk that takes no record, ends more than the loop. */
function boxLost(thrown: unknown): LoopEnd {
  if (!(thrown instanceof HarnessError) || thrown.exit !== EXIT.sandbox) throw thrown;
  return { how: "sandbox_lost", reason: `${thrown.message}${thrown.remedy && `; next: ${thrown.remedy}`}` };
}
