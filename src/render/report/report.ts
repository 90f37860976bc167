import type { AuditVerdict } from "../../core/audit.ts";
import type { Mode } from "../../core/decision.ts";
import type { AgentEvent, Denial } from "../../core/events.ts";
import type { Usage } from "../../core/messages.ts";
import type { SessionInfo } from "../../core/session.ts";

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;
type Own<T extends AgentEvent["type"], K extends keyof Of<T>> = Pick<Of<T>, K>;

/** What a session did, for a person or, as it is, as JSON. Moments are milliseconds since 1970. */
export interface Report {
  readonly session: SessionInfo;
  readonly runs: readonly RunReport[];
  /** Whether the audit of the session holds; null when that was not looked at. */
  readonly audit: AuditVerdict | null;
  /** What the session changed, as a unified diff; null when it was not kept. */
  readonly diff: string | null;
}

/** One request of the user. */
export interface RunReport {
  readonly run: string;
  readonly task: string;
  readonly mode: Mode;
  readonly provider: string;
  readonly model: string;
  readonly resumed: boolean;
  readonly intent: string | null;
  readonly started: number;
  /** When its last event came. */
  readonly last: number;
  /** Null when it has no end: it was killed, or goes on. */
  readonly end: RunEnd | null;
  readonly turns: readonly TurnReport[];
  readonly refusals: readonly Denial[];
  readonly limits: readonly string[];
  readonly hosts: readonly HostTried[];
}

export type RunEnd = Own<
  "run.finished",
  "status" | "exit_code" | "reason" | "answer" | "turns" | "tool_calls" | "usage" | "changes" | "handoff"
> &
  Required<Own<"run.finished", "quarantined" | "quarantined_total" | "commits" | "commits_total" | "staged">>;

export interface HostTried {
  readonly host: string;
  readonly call: string;
  /** Whether the call was let run. What became of the connection, its result says. */
  readonly ran: boolean;
}

/** One request of the model, and what it called; turn 0 is what came before the first. */
export interface TurnReport {
  readonly turn: number;
  readonly at: number;
  readonly steps: readonly Step[];
}

export type Step = Said | CallReport | Remark;

interface Said {
  readonly kind: "said";
  readonly at: number;
  readonly agent: string | null;
  readonly text: string;
  readonly usage: Usage;
  readonly ms: number;
}

export interface CallReport {
  readonly kind: "call";
  readonly at: number;
  readonly agent: string | null;
  readonly call: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Null for a call that was never judged: its input was wrong. */
  readonly verdict: Own<"call.decided", "decision" | "contained" | "rules" | "runs" | "by" | "judged"> | null;
  /** Null when it has no end. */
  readonly end:
    | (Own<"call.ended", "kind" | "cause" | "text" | "full" | "ms"> & { readonly exit_code: number | null })
    | null;
}

export interface Remark {
  readonly kind: "remark";
  readonly at: number;
  readonly agent: string | null;
  readonly tone: "quiet" | "warning" | "error";
  readonly text: string;
}

/** All calls of a run, in order. */
export const callsOf = ({ turns }: RunReport): readonly CallReport[] =>
  turns.flatMap(({ steps }) => steps.filter((step) => step.kind === "call"));
