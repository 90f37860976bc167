import type { AgentContext } from "../../agent/agent-context.ts";
import type { Finished, WorkspaceOutcome } from "../../agent/agent-run.ts";
import type { Limits } from "../../agent/limits.ts";
import { denialsOf, type Outcome, outcomeOf } from "../../agent/ending/outcome.ts";
import { EXIT, type ExitCode, Interrupted } from "../../core/errors.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { RunChanges, RunStatus } from "../../core/events.ts";
import type { Session } from "../../core/session.ts";
import { visible } from "../../core/visible.ts";
import { NO_USAGE } from "../../models/model-api.ts";
import { stderr } from "../../render/tty/output.ts";
import { describeFailure } from "../stderr-messages.ts";
import { hasChanges } from "./attempt-plan.ts";
import type { WaitingSink } from "./event-sink.ts";

const NO_OUTCOME: WorkspaceOutcome = { changes: null, handoff: [] };

/** How far a run has come. */
export interface RunProgress {
  readonly sink: WaitingSink;
  /** Records the failure for diagnosis. */
  readonly failed?: (thrown: unknown) => void;
  agent?: AgentContext;
  finished?: Finished;
  /** The run's changes at the time of the failure. */
  seen?: WorkspaceOutcome | undefined;
  /** Where a person finds those changes, and what can be done with them. */
  where?: string;
}

/**
 * Ends a failed run with one last event, even if the event cannot be stored. A failure after the last event (a box that
 * cannot be removed, say) only shows on stderr and in the exit code. A run that has not begun throws.
 */
export function failedRun(
  thrown: unknown,
  { limits, session }: { readonly limits: Limits; readonly session: Session },
  { sink, agent, finished, seen = NO_OUTCOME, where }: RunProgress,
): Finished {
  if (!sink.begun()) throw thrown;
  const outcome = outcomeAfter(thrown);
  if (finished !== undefined) {
    stderr.write(`error: ${visible(outcome.reason)}\n`);
    return { ...finished, exit_code: outcome.exit_code };
  }
  const { untouched: _, ...told } = seen;
  const failed: Finished = {
    type: "run.finished",
    ...outcome,
    reason: where === undefined ? outcome.reason : `${outcome.reason}; ${where}`,
    turns: limits.turns,
    tool_calls: limits.calls,
    usage: agent?.spent.whole ?? NO_USAGE,
    denials: denialsOf(agent?.ended ?? []),
    ...told,
    session: session.id,
    verified: null,
    grounded: null,
    answer: null,
  };
  if (agent !== undefined) recordEnd(session, agent, failed);
  const unwritten = new Set(sink.last(failed).map((each) => outcomeAfter(each).reason));
  unwritten.delete(outcome.reason);
  for (const reason of unwritten) stderr.write(`error: ${visible(reason)}\n`);
  return failed;
}

interface FailedAt {
  readonly flags: { readonly passing?: boolean };
  readonly settings: Pick<Settings, "isolation">;
  readonly session: Session;
  readonly workspace: string;
}

/** Where a person finds the changes that a run had made when it failed. */
export function whereLeft(
  { flags, settings, session: { id }, workspace }: FailedAt,
  changes: RunChanges | null,
): string {
  if (changes !== null && !hasChanges(changes)) return "nothing had been changed";
  if (flags.passing === true) return "its changes are removed with its folder";
  const shows = `harness diff ${id} shows them`;
  return settings.isolation === "bind"
    ? `its changes so far are in ${workspace}: ${shows}, harness undo ${id} takes them back`
    : `its changes so far are kept beside ${workspace}: ${shows}, harness apply ${id} applies them`;
}

/**
 * Stores the end for lists of sessions, if possible. If it is not possible, the run's own failure has the same reason.
 */
function recordEnd(
  session: Session,
  { intent: { intent }, spent: { usage } }: AgentContext,
  { status, reason, turns, tool_calls: toolCalls }: Finished,
): void {
  const result = { intent, status, reason, usage, turns, toolCalls, answer: null };
  try {
    session.append({ kind: "turn", result });
  } catch {
    // The end is shown anyway.
  }
}

/** The outcome of a run that failed with this error. */
export function outcomeAfter(thrown: unknown): Outcome {
  // If the clean-up failed too, the first failure counts.
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
