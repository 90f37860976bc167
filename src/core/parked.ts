import type { Verdict } from "./decision.ts";
import type { Denial, Intent } from "./events.ts";
import type { Usage } from "./messages.ts";
import type { Question } from "./ports.ts";
import type { SessionRecord } from "./session.ts";
import type { ToolResult } from "./tool.ts";

/** A run that waits for a person's word, with all that it takes to go on where it stopped. */

/** Of the record; one of another form is not gone on with. */
export const PARKED_FORM = 1;

export interface Parked {
  readonly form: number;
  readonly question: Question;
  /** Calls of the reply that could not be read: the model is told with the last result. */
  readonly malformed: readonly { readonly id: string; readonly name: string; readonly reason: string }[];
  /** Subagents that stopped with it, in the order of the calls that they work for. */
  readonly children: readonly ParkedChild[];
  readonly intent: Intent;
  /** The user has said it. */
  readonly fixed: boolean;
  readonly strict: boolean;
  readonly spent: SpentBefore;
  readonly ended: readonly EndedCall[];
  readonly given: RunGiven;
  /** Its box is kept frozen until then: milliseconds since 1970. Without it none is. */
  readonly kept?: number;
}

/** A subagent as it stood. It is told apart by what it was asked, as two of the same are of one kind. */
export interface ParkedChild {
  readonly prompt: string;
  readonly maxTurns: number;
  readonly turns: number;
  readonly malformed: Parked["malformed"];
  readonly records: readonly SessionRecord[];
  /** By which its jobs are told from those of others. */
  readonly name?: string;
}

/** What a run has used before it was parked; the person's time is not its own. */
export interface SpentBefore {
  readonly turns: number;
  readonly ms: number;
  readonly tokens: number;
  readonly cost: number;
  readonly calls: number;
  /** Of limits that the model has been told of. */
  readonly told: readonly string[];
  readonly usage: Usage;
}

/** What its command line and settings said. */
export interface RunGiven {
  readonly task: string;
  readonly limits: Partial<Record<"turns" | "ms" | "tokens" | "cost" | "calls", number>>;
  /** Each setting, and who set it. */
  readonly settings: Readonly<Record<string, { readonly value: unknown; readonly origin: string }>>;
  readonly runtime: string | null;
  /** Absolute; null without one. */
  readonly schema: string | null;
}

/** A call of the run that is over, whatever became of it. */
export interface EndedCall extends Pick<Denial, "call" | "tool" | "target" | "rule" | "reason"> {
  /** The command, or the path; empty when it has neither. */
  readonly target: string;
  readonly kind: ToolResult["kind"];
  /**
   * Denied by policy, a person or nobody; or blocked by a tool that refuses a path outside of the workspace or a
   * protected file. What a running command was blocked from is reported on its result, and is none.
   */
  readonly refused: boolean;
  readonly decision: Verdict;
  /** It succeeded, and something is other than before. */
  readonly changes: boolean;
}

/** `never`: somebody went on with the session without a word on it. */
export const WORDS = ["once", "session", "always", "deny", "never"] as const;
export type Word = (typeof WORDS)[number];

/** Records behind which a question no longer waits. */
const PAST: ReadonlySet<SessionRecord["kind"]> = new Set(["message", "rolled_back", "cleared", "answered"]);

/** What waits in a session; undefined when nothing does. */
export function parkedIn(records: readonly SessionRecord[]): Parked | undefined {
  const last = records.findLast(({ kind }) => kind === "parked" || PAST.has(kind));
  return last?.kind === "parked" ? last.parked : undefined;
}

/** Whether nothing has happened between the two: a run may park twice at one question. */
export const isSameParking = (one: Parked, other: Parked): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/** Questions that a person has said yes to for the rest of the session. */
export function settledIn(records: readonly SessionRecord[]): readonly Question[] {
  return records.flatMap((each) =>
    each.kind === "answered" && (each.word === "session" || each.word === "always") ? [each.question] : [],
  );
}

/** The same text may mean another thing in another folder, in another mode, or by what the policy sees in it now. */
export function isSameQuestion(one: Question, other: Question): boolean {
  return keyOf(one) === keyOf(other);
}

const keyOf = ({ tool, text, folder, mode, decision: { contained, rules } }: Question): string =>
  JSON.stringify([
    tool,
    text,
    folder ?? null,
    mode,
    contained,
    rules.map(({ id, reason, span: [from, to] }) => [id, reason, from, to]),
  ]);
