import type { AgentContext } from "../../agent/agent-context.ts";
import type { Finished } from "../../agent/agent-run.ts";
import type { Limits } from "../../agent/limits.ts";
import { denialsOf, type Outcome, outcomeOf } from "../../agent/ending/outcome.ts";
import { EXIT, type ExitCode, Interrupted } from "../../core/errors.ts";
import type { RunStatus } from "../../core/events.ts";
import type { Session } from "../../core/session.ts";
import { visible } from "../../core/text/visible.ts";
import { NO_USAGE } from "../../models/usage.ts";
import { stderr } from "../../render/tty/output.ts";
import { describeFailure } from "../stderr-messages.ts";
import type { WaitingSink } from "./event-sink.ts";

/** How far a run has come. */
export interface RunProgress {
  readonly sink: WaitingSink;
  /** For whoever has to find out why. */
  readonly failed?: (thrown: unknown) => void;
  agent?: AgentContext;
  finished?: Finished;
}

/**
 * What a failure makes of a run that has begun: its last event is told all the same, and only once, also where it cannot be
 * written down. What fails behind that, as a box that cannot be put away, is said on stderr and by the exit code. A run that has not begun throws on.
 */
export function failedRun(
  thrown: unknown,
  { limits, session }: { readonly limits: Limits; readonly session: Session },
  { sink, agent, finished }: RunProgress,
): Finished {
  if (!sink.begun()) throw thrown;
  const outcome = outcomeAfter(thrown);
  if (finished !== undefined) {
    stderr.write(`error: ${visible(outcome.reason)}\n`);
    return { ...finished, exit_code: outcome.exit_code };
  }
  const failed: Finished = {
    type: "run.finished",
    ...outcome,
    turns: limits.turns,
    tool_calls: limits.calls,
    usage: agent?.spent.whole ?? NO_USAGE,
    denials: denialsOf(agent?.ended ?? []),
    changes: null,
    handoff: [],
    session: session.id,
    verified: null,
    grounded: null,
    answer: null,
  };
  const unwritten = new Set(sink.last(failed).map((each) => outcomeAfter(each).reason));
  unwritten.delete(outcome.reason);
  for (const reason of unwritten) stderr.write(`error: ${visible(reason)}\n`);
  return failed;
}

/** What a failure comes to, for the last event of a run. */
export function outcomeAfter(thrown: unknown): Outcome {
  // Of a failure and another one while things were put away behind it, the first counts.
  if (thrown instanceof SuppressedError) return outcomeAfter(thrown.suppressed);
  if (thrown instanceof Interrupted)
    return outcomeOf({ how: "cancelled", signal: thrown.signal }, [], { strict: false });
  const { exit, message, remedy } = describeFailure(thrown, []);
  const exit_code = exit as ExitCode;
  const reason = `${message}${remedy === "" ? "" : `; next: ${remedy}`}`;
  return { status: STATUS_OF.get(exit_code) ?? "failed", exit_code, reason };
}

const STATUS_OF: ReadonlyMap<ExitCode, RunStatus> = new Map([
  [EXIT.model, "model"],
  [EXIT.sandbox, "sandbox"],
  [EXIT.interrupted, "interrupted"],
  [EXIT.terminated, "interrupted"],
  [EXIT.hangup, "interrupted"],
]);
