import type { Audit } from "./audit.ts";
import type { Steps } from "./checkpoint-port.ts";
import type { Mode, Verdict } from "./decision.ts";
import type { AgentEvent, Denial, Intent, RunStatus } from "./events.ts";
import type { Message, Usage } from "./messages.ts";
import type { Question } from "./ports.ts";
import type { ToolResult } from "./tool.ts";

/** What a session consists of: records in their order. What a run knows is what they say, read from the first on. */
export type SessionRecord =
  /** The system prompt. There is one at most; it outlives everything but the session. */
  | { readonly kind: "pinned"; readonly text: string }
  | { readonly kind: "message"; readonly message: Message }
  /** The messages behind this count no longer are. */
  | { readonly kind: "rolled_back"; readonly to: number }
  | { readonly kind: "cleared" }
  | { readonly kind: "compacted"; readonly compaction: Compaction }
  /** The content of a file as the model knows it; null when it knows it no more. */
  | { readonly kind: "seen"; readonly path: string; readonly hash: string | null }
  | { readonly kind: "shell"; readonly folder: string; readonly env: Readonly<Record<string, string>> }
  | { readonly kind: "turn"; readonly result: TurnResult }
  /** The run stopped here: the calls of its last reply that have no result wait for a person. */
  | { readonly kind: "parked"; readonly parked: Parked }
  /** What was said to it. Whoever has written this goes on, and nobody else. */
  | { readonly kind: "answered"; readonly question: Question; readonly word: Word };

/**
 * How the messages are shown to the model from now on. It takes nothing away: they stay, so that going back to an
 * earlier count brings back what was shown then.
 */
export interface Compaction {
  /** The record count when it was made. */
  readonly at: number;
  /** Results of tools before this message are shown as a mark. */
  readonly pruneBefore: number;
  /** Messages before this one are shown as the first request and the artifact. 0: all are shown. */
  readonly keepFrom: number;
  readonly artifact: string;
}

/** How one request of the user ended. */
export interface TurnResult {
  readonly intent: Intent;
  readonly status: RunStatus;
  readonly reason: string;
  readonly usage: Usage;
  readonly turns: number;
  readonly toolCalls: number;
  readonly answer: string | null;
}

export interface SessionAbout {
  readonly workspace: string;
  readonly mode: Mode;
  readonly provider: string;
  readonly model: string;
  /** The first request's first line. */
  readonly title: string;
}

export interface SessionInfo extends SessionAbout {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly started: number;
  readonly changed: number;
  readonly messages: number;
  /** Of its last turn; null when none has ended, or a parked one goes on. */
  readonly status: RunStatus | null;
}

/** What a tool said in full, for as long as the session is kept. */
export interface Outputs {
  /** The name by which it is asked for. */
  keep(text: string): string;
  /** From this character on, at most so many; undefined when there is no such output. A character is never parted. */
  page(id: string, offset: number, limit: number): OutputPage | undefined;
}

export interface OutputPage {
  readonly text: string;
  readonly offset: number;
  /** Where the next page begins; the whole's length when this is the last. */
  readonly end: number;
  readonly total: number;
}

export interface Note {
  readonly title: string;
  readonly body: string;
  readonly tags: readonly string[];
  readonly written: number;
}

/** Of one workspace, over all its sessions. */
export interface Notes {
  write(note: Omit<Note, "written">): void;
  /** Newest first; a query is looked for in title, body and tags, whatever the case. */
  find(query: string, limit: number): readonly Note[];
}

/** What is remembered. Every call is durable when it returns, so that nothing is acted on before it is known. */
export interface SessionStore extends Disposable {
  create(about: SessionAbout): Session;
  /** A beginning of an id will do when only one session has it. Rejects an unknown one with exit 2. */
  open(id: string): Session;
  /** Another session that knows what this one does, outputs included, and goes its own way from here. */
  fork(id: string): Session;
  last(workspace: string): string | undefined;
  list(filter: SessionFilter): readonly SessionInfo[];
  remove(id: string): void;
  notes(workspace: string): Notes;
}

export interface SessionFilter {
  readonly workspace?: string;
  /** Looked for in titles and messages. */
  readonly query?: string;
  readonly limit?: number;
}

export interface Session {
  readonly id: string;
  readonly info: () => SessionInfo;
  readonly append: (record: SessionRecord) => void;
  /** The same only if that holds of the records that there are; nobody adds one in between. Whether it did. */
  readonly appendIf: (
    record: SessionRecord,
    holds: (records: readonly SessionRecord[]) => boolean,
  ) => boolean;
  readonly records: () => readonly SessionRecord[];
  readonly log: (event: AgentEvent) => void;
  readonly events: () => Iterable<AgentEvent>;
  /** The same with when each was logged, in milliseconds since 1970. */
  readonly timeline: () => Iterable<{ readonly at: number; readonly event: AgentEvent }>;
  readonly outputs: Outputs;
  readonly audit: Audit;
  readonly steps: Steps;
}

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
