import type { Audit } from "./audit.ts";
import type { Steps } from "./checkpoints.ts";
import type { AgentEvent, Intent, RunStatus } from "./events.ts";
import type { Mode } from "./decision.ts";
import type { Message, Usage } from "./messages.ts";
import type { Parked, Word } from "./parked.ts";
import type { Question } from "./ports.ts";

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
