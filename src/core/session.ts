import type { Mode, Verdict } from "./decision.ts";
import type { AgentEvent, Denial, RunStatus } from "./events.ts";
import type { Intent, Message, Usage } from "./model-provider.ts";
import type { AnswerGrant } from "./network.ts";
import type { Plan } from "./run-record.ts";
import type { Question } from "./ports.ts";
import type { ToolResult } from "./tool.ts";

/** A session is a list of records in order; they alone determine the state of a run, read from the first on. */
export type SessionRecord =
  /** The system prompt. There is at most one; it outlives everything but the session. */
  | { readonly kind: "pinned"; readonly text: string }
  | { readonly kind: "message"; readonly message: Message }
  /** Messages after this count are removed. */
  | { readonly kind: "rolled_back"; readonly to: number }
  | { readonly kind: "cleared" }
  | { readonly kind: "compacted"; readonly compaction: Compaction }
  /** The content of a file as the model last saw it; null when it must be read again. */
  | { readonly kind: "seen"; readonly path: string; readonly hash: string | null }
  | { readonly kind: "shell"; readonly folder: string; readonly env: Readonly<Record<string, string>> }
  /** Replaces the earlier plan. */
  | { readonly kind: "plan"; readonly plan: Plan }
  /** Background tasks whose end the model does not know yet. */
  | { readonly kind: "tasks"; readonly open: readonly OpenTask[] }
  | { readonly kind: "turn"; readonly result: TurnResult }
  /** The run stopped here: the calls of its last reply without a result wait for a person. */
  | { readonly kind: "parked"; readonly parked: Parked }
  /** The answer to a parked question. Only the process that wrote this record resumes the run. */
  | {
      readonly kind: "answered";
      readonly question: Question;
      readonly word: AnswerWord;
      /** What was granted with the answer. */
      readonly grant?: AnswerGrant;
    };

/**
 * How the messages are shown to the model from now on. Nothing is deleted, so that returning to an earlier count
 * restores what was shown then.
 */
export interface Compaction {
  /** The record count when it was made. */
  readonly at: number;
  /** Tool results before this message are shown as a placeholder. */
  readonly pruneBefore: number;
  /** Messages before this one are shown as the first request and the summary. 0: all are shown. */
  readonly keepFrom: number;
  readonly artifact: string;
  /** Shown word for word beside the summary: the plan, and the tasks that ran. */
  readonly kept?: string;
}

export interface OpenTask {
  /** t1, t2 and so on; each number occurs once in a session. */
  readonly id: string;
  /** The head of its prompt. */
  readonly prompt: string;
}

/** How one request of the user ended. */
interface TurnResult {
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
  /** The first line of the first request. */
  readonly title: string;
}

export interface SessionInfo extends SessionAbout {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly started: number;
  readonly changed: number;
  readonly messages: number;
  /** Status of its last turn; null when none has ended, or a parked one continues. */
  readonly status: RunStatus | null;
}

/** Full outputs of tools, kept as long as the session. */
export interface Outputs {
  /** Returns the id under which the output is kept. */
  keep(text: string): string;
  /** At most `limit` characters from `offset` on; undefined for an unknown output. A character is never split. */
  page(id: string, offset: number, limit: number): OutputPage | undefined;
}

export interface OutputPage {
  readonly text: string;
  readonly offset: number;
  /** Where the next page begins; the whole length on the last page. */
  readonly end: number;
  readonly total: number;
}

/** Limits of one note, whoever writes it. */
export const NOTE_BOUNDS = { title: 200, body: 10_000, tags: 10, tag: 50 } as const;

/** The text of a note. */
export interface NoteText {
  readonly title: string;
  readonly body: string;
  readonly tags: readonly string[];
}

export interface Note extends NoteText {
  /** Names the note; no other note ever has this number. */
  readonly number: number;
  /** When it was written or last changed, in milliseconds since 1970. */
  readonly written: number;
}

/** Notes of one workspace, over all its sessions. */
export interface Notes {
  write(note: NoteText): Note;
  /** Newest first; a query is searched in title, body and tags, ignoring case. */
  find(query: string, limit: number): readonly Note[];
  get(number: number): Note | undefined;
  /** Replaces the note that `before` describes; changes nothing and returns false if it has changed or is gone. */
  replace(before: Note, text: NoteText): boolean;
  /** Returns whether it existed. */
  remove(number: number): boolean;
}

/** The store of sessions. Every call is durable when it returns, so that nothing is acted on before it is recorded. */
export interface SessionStore extends Disposable {
  /** `id`: one returned by `reserve`. */
  create(about: SessionAbout, id?: string): Session;
  /** An id for a session that may follow; nothing is stored for it. */
  reserve(): string;
  /** The beginning of an id is enough if only one session has it. Throws for an unknown id with exit 2. */
  open(id: string): Session;
  /** A copy of this session, outputs included, that continues on its own. */
  fork(id: string): Session;
  last(workspace: string): string | undefined;
  list(filter: SessionFilter): readonly SessionInfo[];
  remove(id: string): void;
  notes(workspace: string): Notes;
}

export interface SessionFilter {
  readonly workspace?: string;
  /** Searched in titles and messages. */
  readonly query?: string;
  readonly limit?: number;
}

export interface Session {
  readonly id: string;
  readonly info: () => SessionInfo;
  readonly append: (record: SessionRecord) => void;
  /** Appends only if the condition holds for the present records, atomically. Returns whether it did. */
  readonly appendIf: (
    record: SessionRecord,
    holds: (records: readonly SessionRecord[]) => boolean,
  ) => boolean;
  readonly records: () => readonly SessionRecord[];
  /** Stores an event, unless it is a piece of a reply. */
  readonly log: (event: AgentEvent) => void;
  /** All that `work` writes to this session is durable when it returns, or nothing of it is. */
  readonly atomically: <T>(work: () => T) => T;
  readonly events: () => Iterable<AgentEvent>;
  /** The run of its last event; undefined when it has none. */
  readonly lastRun: () => string | undefined;
  /** The events, each with the time it was logged, in milliseconds since 1970. */
  readonly timeline: () => Iterable<{ readonly at: number; readonly event: AgentEvent }>;
  readonly outputs: Outputs;
  readonly audit: Audit;
  readonly steps: StepStore;
}

/** Pieces of a reply are only shown, never stored: its message contains them. */
export const isReplyPiece = ({ type }: AgentEvent): boolean => type === "text" || type === "thinking";

/** Version of the record of a parked run; another version is not resumed. */
export const PARKED_FORM = 2;

/** A run that waits for a person, with everything needed to resume where it stopped. */
export interface Parked {
  readonly form: number;
  readonly question: Question;
  /** Calls of the reply that could not be read: the model is told with the last result. */
  readonly malformed: readonly { readonly id: string; readonly name: string; readonly reason: string }[];
  /** Subagents that stopped with the run, in the order of the calls that they work for. */
  readonly children: readonly ParkedChild[];
  readonly intent: Intent;
  /** The user has set the intent. */
  readonly fixed: boolean;
  readonly strict: boolean;
  readonly spent: SpentBefore;
  readonly ended: readonly EndedCall[];
  readonly given: RunOptions;
  /** Until when its box is kept frozen, in milliseconds since 1970; left out when no box is kept. */
  readonly kept?: number;
}

/** A parked subagent, identified by its prompt. */
export interface ParkedChild {
  readonly prompt: string;
  readonly maxTurns: number;
  readonly turns: number;
  readonly malformed: Parked["malformed"];
  readonly records: readonly SessionRecord[];
  /** Prefix of its job names, different from that of any other subagent. */
  readonly name?: string;
  /** It ran in the background, under this id. */
  readonly task?: string;
  /** The subagent had already ended, and the model was not told how. */
  readonly report?: ToolResult;
}

/** What a run had used before it was parked; waiting for the person does not count. */
export interface SpentBefore {
  readonly turns: number;
  readonly ms: number;
  readonly tokens: number;
  readonly cost: number;
  readonly calls: number;
  /** Limits that the model was already warned of. */
  readonly told: readonly string[];
  readonly usage: Usage;
}

/** The command line and settings of the run. */
export interface RunOptions {
  readonly task: string;
  readonly limits: Partial<Record<"turns" | "ms" | "tokens" | "cost" | "calls", number>>;
  /** Each setting and its origin. */
  readonly settings: Readonly<Record<string, { readonly value: unknown; readonly origin: string }>>;
  readonly runtime: string | null;
  /** Absolute; null without one. */
  readonly schema: string | null;
  /** The session's last checkpoint before the run began; left out by older versions. */
  readonly steps?: number;
  /** No check is run. */
  readonly unverified?: true;
}

/** A finished call of the run, however it ended. */
export interface EndedCall extends Pick<Denial, "call" | "tool" | "target" | "rule" | "reason"> {
  /** The command, or the path; empty when it has neither. */
  readonly target: string;
  readonly kind: ToolResult["kind"];
  /**
   * Denied by policy, a person or nobody; or blocked by a tool that refuses a path outside of the workspace or a
   * protected file. What a running command was blocked from is reported on its result, and does not count as refused.
   */
  readonly refused: boolean;
  readonly decision: Verdict;
  /** The call succeeded and changed something. */
  readonly changes: boolean;
  /** Such a call does no work, however it ends. */
  readonly idle?: true;
}

/** `never`: the session was continued without an answer. */
export const WORDS = ["once", "session", "always", "deny", "never"] as const;
export type AnswerWord = (typeof WORDS)[number];

/** Records after which a question is no longer open. */
const PAST: ReadonlySet<SessionRecord["kind"]> = new Set(["message", "rolled_back", "cleared", "answered"]);

/** The parked run of a session; undefined when there is none. */
export function parkedIn(records: readonly SessionRecord[]): Parked | undefined {
  const last = records.findLast(({ kind }) => kind === "parked" || PAST.has(kind));
  return last?.kind === "parked" ? last.parked : undefined;
}

/** Whether both are the same parking: a run may park twice at one question. */
export const isSameParking = (one: Parked, other: Parked): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/** Questions that a person approved for the rest of the session. */
export function settledIn(records: readonly SessionRecord[]): readonly Question[] {
  return records.flatMap((each) =>
    each.kind === "answered" && (each.word === "session" || each.word === "always") ? [each.question] : [],
  );
}

/** What a person granted for the rest of the session, or for longer. */
export const grantedIn = (records: readonly SessionRecord[]): readonly string[] =>
  records.flatMap((each) =>
    each.kind === "answered" && each.grant !== undefined && each.grant.for !== "call"
      ? each.grant.domains
      : [],
  );

/** The same text may mean another thing in another folder or mode, or if the policy now sees more in it. */
export function isSameQuestion(one: Question, other: Question): boolean {
  return keyOf(one) === keyOf(other);
}

const keyOf = ({ tool, text, shown, folder, mode, decision: { contained, rules } }: Question): string =>
  JSON.stringify([
    tool,
    text,
    folder ?? null,
    mode,
    contained,
    rules.map(({ id, reason, span: [from, to] }) => [id, reason, from, to]),
    ...(shown === undefined ? [] : [shown]),
  ]);

/** One line of the audit log; `kind` says what happened. Values are JSON. */
export interface AuditEntry {
  readonly kind: string;
  readonly [key: string]: unknown;
}

/** The audit log of a session: an append-only record that can be verified later. */
export interface Audit {
  /** Durable when it returns, all entries or none, so that the announced action may follow. Throws on failure. */
  readonly write: (entries: readonly AuditEntry[]) => void;
  /** Whether every line of the file is as it was written. */
  readonly verify: () => AuditVerdict;
}

export interface AuditVerdict {
  readonly file: string;
  readonly ok: boolean;
  readonly lines: number;
  /** The first line that was altered (from 1), and why it counts as altered. */
  readonly broken: { readonly line: number; readonly why: string } | null;
  /** Findings that break nothing: runs that were killed. */
  readonly notes: readonly string[];
}

/** Identifies a call that may write. */
export interface WritingCall {
  readonly call: string;
  readonly turn: number;
  /** Processes started by the call may keep writing after it has ended. */
  readonly lasting: boolean;
}

/** Records the workspace before and after each piece of work. Rejects only with what `work` throws. */
export interface Checkpoints {
  /** Scans the workspace ahead of time, so that the first call does not wait for it. */
  prepare(): void;
  /** `signal` ends the scan before the work, which then starts anyway and has to check the signal. */
  around<T>(writing: WritingCall, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /**
   * The paths that are the same as before the run: kind, mode and content, whatever their times and inodes say. Empty
   * when that is unknown.
   */
  unchanged(paths: readonly string[]): Promise<ReadonlySet<string>>;
  /** The text that a workspace file had before the run; undefined when it did not exist or is unknown. */
  before(path: string): Promise<string | undefined>;
}

/** For read-only workspaces, and for workspaces whose changes are recorded elsewhere. */
export const NO_CHECKPOINTS: Checkpoints = {
  prepare: () => undefined,
  around: (_, work) => work(),
  unchanged: () => Promise.resolve(new Set()),
  before: () => Promise.resolve(undefined),
};

/** The number of the last step so far; 0 when there is none. */
export const lastStep = (steps: StepStore): number => steps.all().at(-1)?.step ?? 0;

/** lost: from this step on nothing could be recorded. */
const STEP_KINDS = ["call", "undo", "redo", "lost"] as const;

/** A piece of work on the workspace, between two of its states. */
export interface Step {
  /** Counted from 1, in order. */
  readonly step: number;
  readonly kind: (typeof STEP_KINDS)[number];
  readonly call: string | null;
  readonly turn: number | null;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Tree ids. `after` is null while the work runs, and stays null if the work was killed. */
  readonly before: string | null;
  readonly after: string | null;
  /** Increases with each end: shows which of several concurrent steps ended first. Null while the work runs. */
  readonly ended: number | null;
  /** The step that an undo returned to; null for an undo that left something out, so that it can be repeated. */
  readonly target: number | null;
}

/** The steps of one session. Durable when a call returns. */
export interface StepStore {
  begin(step: Omit<Step, "step" | "at" | "after" | "ended">): number;
  end(step: number, trees: { readonly before: string; readonly after: string }): void;
  all(): readonly Step[];
}

export function* eventsOf(session: Pick<Session, "timeline">): Generator<AgentEvent> {
  for (const { event } of session.timeline()) yield event;
}
