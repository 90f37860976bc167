/** What the outside must offer. Each port has one contract suite in test/contract. */
import type { Canary, Observed } from "./behaviour.ts";
import type { BoxLog, MovedAway } from "./run-record.ts";
import type { Decision, MatchedRule, Mode } from "./decision.ts";
import type { Cause } from "./errors.ts";
import type { BlockedConnection, Connection, Grant, AnswerGrant } from "./network.ts";

/** The home folder in every box: it ends with the box, and holds nothing of the user's. */
export const BOX_HOME = "/home/box";

/** Owning a box and using a box are two interfaces: only the owner can end it. */
export interface Sandbox {
  start(request: { readonly workspace: string; readonly mode: Mode }): Promise<OwnedBox>;
}

export type OwnedBox = Box &
  AsyncDisposable & {
    /** The id of its image, if it has one. */
    readonly image?: string;
    /**
     * Stops the box with everything that runs in it, so that another process can take it over; null when that is not
     * possible. It must not be used afterwards. Disposing of it removes it unless it was frozen.
     */
    readonly park?: () => Promise<ParkedHandle | null>;
    /** Stops making commits for its commands; resolves when none is in progress. */
    readonly settle?: () => Promise<void>;
    /** What was done on the host for it since the last call, after a search of the whole workspace. */
    readonly log?: () => Promise<BoxLog>;
    /** Set when a network was granted, or can be. */
    readonly network?: GrantedNetwork;
    /** Set when the box's changes are copied out, so that they outlast it. */
    readonly home?: {
      /** Copies out what commands have changed since the last time. Rejects only with the loss of the box. */
      readonly bring: () => Promise<void>;
      /** What was copied out. */
      readonly changes: () => Iterable<Change>;
    };
    /** Whether another box may replace it after a loss for this reason; left out: never. */
    readonly mayFollow?: (reason: string) => boolean;
    /** Ends it like disposing, and returns the log entries that disposing would give as warnings. */
    readonly close?: () => Promise<BoxLog>;
  };

export interface GrantedNetwork {
  /** All so far, by time; of very many only the first and the last. */
  readonly connections: () => readonly Connection[];
  /**
   * Adds grants, with variables and tool settings for commands that start from now on. The returned function withdraws
   * them, and ends connections that only they allow.
   */
  readonly grant: (
    more: readonly Grant[],
    variables?: Readonly<Record<string, string>>,
    files?: Readonly<Record<string, string>>,
  ) => Promise<() => void>;
}

export interface ParkedHandle {
  /** How long it is kept: milliseconds since 1970. */
  readonly until: number;
  /** Freezes the box and releases it. If that fails, the box is removed. */
  readonly freeze: () => Promise<void>;
}

/** Only the loss of the box itself rejects; every other ending is a value. */
export interface Box {
  /** Absolute; where commands start unless they say otherwise. */
  readonly workspace: string;
  /** Any number may run at a time. Aborting ends the command and all that it started, and still gives its result. */
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  /** Starts a command that runs beside others until it ends, is killed, or the box ends. */
  start(request: ExecRequest): Job;
  read(
    path: string,
    range?: { readonly offset: number; readonly limit: number },
  ): Promise<FileResult<FileContent>>;
  /** All or nothing. An existing file keeps its mode; missing folders are created. */
  write(path: string, content: Uint8Array): Promise<FileResult<null>>;
  list(path: string): Promise<FileResult<readonly ListedEntry[]>>;
  stat(path: string): Promise<FileResult<ListedEntry>>;
  /** Lines that match a regular expression; ignored and binary files are left out. */
  search(request: PatternSearch): Promise<FileResult<SearchResult>>;
  /** What has changed in the workspace since the box began, if it was told to watch. */
  changes(): Promise<Changes>;
  /** Protected paths below the workspace that were replaced from outside, and so lost their protection. */
  replaced?(): Promise<readonly string[]>;
  /** Network variables of the box's commands; they change with each grant. */
  readonly networkEnv?: () => Readonly<Record<string, string>>;
  /** Resolves with the reason when the box is gone. */
  readonly gone: Promise<string>;
  /** Set in a resumed box: its jobs by name. */
  readonly kept?: ReadonlyMap<string, OldJob>;
}

/** Bytes as the input of a command. */
export async function* inputOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

export interface ExecRequest {
  readonly words: readonly string[];
  /** The workspace when left out. */
  readonly folder?: string;
  /** Added to, or replacing, the box's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** How many bytes of each stream are kept: the first and the last ones. */
  readonly keep: { readonly head: number; readonly tail: number };
  /** Empty when left out. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** Gets the head of each stream as it comes; a promise that it returns is awaited before more is read. */
  readonly onOutput?: (stream: "stdout" | "stderr", bytes: Uint8Array) => Promise<void> | void;
  /** Run only in the folder itself, not where a link in its place leads. */
  readonly exactFolder?: true;
  /**
   * A regular file (no link) of at most `limit` bytes, 256 KiB at most, whose content at the end of the command comes
   * with the result, without another request. Only for commands that are awaited.
   */
  readonly keepFile?: { readonly path: string; readonly limit: number };
  /** A terminal in the box instead of pipes. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
  /**
   * Records what the command does, and ends it with everything it started at the first touch of one of these canaries.
   * If the box cannot observe, the result says so.
   */
  readonly observe?: { readonly canaries: readonly Canary[] };
  /** Finds a job again in a resumed box; unique in its box. */
  readonly name?: string;
}

export interface KeptOutput {
  /** Empty when `onOutput` took it. */
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly total: number;
  /** Bytes between head and tail that were dropped. */
  readonly lost: number;
}

export interface ExecResult {
  /** As in a shell: 124 time-out, 126 and 127 not started, 128 + signal. */
  readonly exit_code: number;
  readonly cause: Cause | null;
  /** The cause in words; empty when there is none. */
  readonly reason: string;
  readonly stdout: KeptOutput;
  readonly stderr: KeptOutput;
  readonly duration_ms: number;
  readonly timed_out: boolean;
  /** Whether it was ended by force. */
  readonly killed: boolean;
  /** Processes that outlived the command and were ended. */
  readonly leftovers: number;
  /** Protected paths that it tried to write. */
  readonly blocked: readonly string[];
  /** Connections refused in the meantime, possibly to a concurrent command; left out without a network. */
  readonly blocked_connections?: readonly BlockedConnection[];
  /** Protected paths that it made and that were moved out of the workspace. */
  readonly quarantined: readonly MovedAway[];
  readonly peak: { readonly memory_bytes: number; readonly pids: number };
  /** Left out when it was not requested. */
  readonly observed?: Observed;
  /** The content of `keepFile`, or why there is none; left out if not requested, or if the command was killed. */
  readonly keptFile?: FileResult<Uint8Array>;
  /** Nothing was run, because the folder could not be entered. */
  readonly folder_gone?: true;
}

/** The command did not start, so it has printed nothing itself. */
export const isUnstarted = ({ exit_code, cause, stdout, stderr }: ExecResult): boolean =>
  (exit_code === 126 || exit_code === 127) && cause !== null && stdout.total + stderr.total === 0;

export interface Job {
  readonly result: Promise<ExecResult>;
  /** Its output so far, if it is kept. */
  readonly output: () => { readonly stdout: Uint8Array; readonly stderr: Uint8Array };
  readonly kill: () => void;
  readonly resize: (columns: number, rows: number) => void;
  /** Stored with the job for the process that resumes it; replaces the earlier note. */
  readonly note?: (text: string) => void;
}

export interface OldJob extends Job {
  readonly noted: string;
}

/** `blocked`: refused by the box's protection. `failed`: everything else, such as a missing file. */
export type FileResult<T> =
  | { readonly kind: "ok"; readonly value: T }
  | {
      readonly kind: "failed" | "blocked";
      readonly cause: "filesystem";
      readonly code: string;
      readonly path: string;
      readonly reason: string;
    };

export interface FileContent {
  readonly content: Uint8Array;
  /** Of the whole file. */
  readonly size: number;
}

export interface PatternSearch {
  readonly pattern: string;
  /** The workspace when left out. */
  readonly folder?: string;
  /** Most lines to return. */
  readonly limit: number;
}

export interface SearchResult {
  readonly lines: readonly { readonly path: string; readonly line: number; readonly text: string }[];
  /** There were more matches. */
  readonly more: boolean;
}

export interface ListedEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "odd";
  readonly mode: number;
  readonly size: number;
  /** Seconds since 1970. */
  readonly modified: number;
}

/** Paths below the workspace. */
export interface Changes {
  /** Files, links and other entries by path. Read again at each iteration: all may not fit into memory. */
  readonly all: Iterable<Change>;
  /** The tree was too large to be searched completely. */
  readonly incomplete: boolean;
  /** Removes paths that git tracked when the box opened; removes all if that is unknown. */
  readonly dropTracked: (paths: Set<string>) => Promise<void>;
}

/** Asked when the policy neither allows nor denies. */
export interface Question {
  readonly call: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The whole command, or what would be written where. */
  readonly text: string;
  /** What `text` does not show, uncut: a diff of what would be written, or a tool's arguments. */
  readonly shown?: string;
  /** What the call would do, in words. */
  readonly effects?: readonly string[];
  /** Where it starts; the workspace when left out. */
  readonly folder?: string;
  readonly decision: Decision;
  /** The rules that cause the question; all of them when left out. */
  readonly asks?: readonly MatchedRule[];
  readonly mode: Mode;
  /** Whether a file tool would write. */
  readonly writes: boolean;
  /** The model's command, if a person replaced it with this one. */
  readonly replaces?: string;
  /** The command cannot be replaced by another one. */
  readonly fixed?: true;
  /** The grants that would make it contained, in the form of `allow_domains`; left out when none would. */
  readonly grants?: readonly string[];
  /** How to get the network that it lacks, in words; left out when it lacks none. */
  readonly network?: string;
}

export interface Answer {
  readonly runs: boolean;
  readonly by: "mode" | "contained" | "person" | "nobody";
  /** Why it is not run, for the model; empty when it is run. */
  readonly reason: string;
  /** A person's words for the model, with a no. */
  readonly word?: string;
  /** The command that a person wants instead; it is judged like any call. */
  readonly edited?: string;
  /** What was granted with the answer. */
  readonly grant?: AnswerGrant;
}

/** Decides what the policy leaves open: a person, a script, or nobody. `waits`: the run stops until one answers. */
export interface Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer | "waits">;
  /** The no that a person gave to this call earlier, whatever the policy says now. */
  refuses?(question: Question): Answer | undefined;
}

/** Search by meaning. */
export interface Index {
  search(query: string, limit: number, signal: AbortSignal): Promise<IndexAnswer>;
}

export interface IndexAnswer {
  /** Best first. */
  readonly hits: readonly IndexHit[];
  /** Why the answer may be out of date or incomplete; empty when it is neither. */
  readonly caveat: string;
}

/** A place in the code that answers a query. */
export interface IndexHit {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly symbol: string | null;
  /** From 0 to 1; only comparable within one answer. */
  readonly score: number;
  /** About ten lines with most of the query's words. */
  readonly preview: string;
}

export interface Embedder {
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>;
}

/** A box that is open or was left behind, for `sandbox ls`. */
export interface ListedBox {
  readonly id: string;
  readonly workspace: string | null;
  readonly mode: string | null;
  readonly isolation: string | null;
  /** null when the box does not say. */
  readonly owner: { readonly pid: number; readonly alive: boolean } | null;
  readonly created: string;
  readonly state: string;
  /** Frozen until this time (ISO 8601), for a session that waits for an approval; null: not frozen. */
  readonly parked: { readonly session: string; readonly until: string } | null;
}

/** One changed path below the workspace. */
export interface Change {
  readonly what: "added" | "modified" | "deleted";
  /** For a deleted path, its former kind and mode. */
  readonly kind: "file" | "folder" | "link" | "odd";
  /** The lower twelve bits. */
  readonly mode: number;
  /** Relative to the workspace. */
  readonly path: string;
}

/** Adds later changes, so that the map describes all changes since the beginning. */
export function addChanges(all: Map<string, Change>, next: Iterable<Change>): void {
  for (const change of next) {
    const before = all.get(change.path)?.what;
    if (before === "added" && change.what === "deleted") all.delete(change.path);
    else all.set(change.path, { ...change, what: combineChanges(before, change.what) });
  }
}

function combineChanges(before: Change["what"] | undefined, now: Change["what"]): Change["what"] {
  if (before === "added") return "added";
  return before === "deleted" && now === "added" ? "modified" : now;
}

/** Earlier and later changes together, in the order of their paths. */
export function allChanges(before: ReadonlyMap<string, Change>, since: Iterable<Change>): Iterable<Change> {
  if (before.size === 0) return since;
  const all = new Map(before);
  addChanges(all, since);
  return [...all.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Most bytes of JSON in a list; a limit on the number of paths would not limit their size. */
const LIST_BYTES = 2 ** 20;

export interface ListedChanges {
  readonly added: readonly string[];
  readonly modified: readonly string[];
  readonly deleted: readonly string[];
  /** How many are not listed; left out if all are. */
  readonly left_out?: Readonly<Record<Change["what"], number>>;
}

/** The first paths that fit, and a count of the others. `hides` selects paths to leave out and not count. */
export function listed(all: Iterable<Change>, hides: (path: string) => boolean = () => false): ListedChanges {
  const lists = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  const left = { added: 0, modified: 0, deleted: 0 };
  let room = LIST_BYTES;
  for (const { what, path } of all) {
    if (hides(path)) continue;
    room -= jsonBytes(path) + 1;
    if (room < 0) left[what] += 1;
    else lists[what].push(path);
  }
  return room < 0 ? { ...lists, left_out: left } : lists;
}

export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Includes the paths that are not listed. */
export function countsOf({ added, modified, deleted, left_out: left }: ListedChanges): {
  readonly added: number;
  readonly modified: number;
  readonly deleted: number;
} {
  return {
    added: added.length + (left?.added ?? 0),
    modified: modified.length + (left?.modified ?? 0),
    deleted: deleted.length + (left?.deleted ?? 0),
  };
}

/** Shown beside a list that may be incomplete. */
export const UNSEEN = "and perhaps more: not all of the folder could be seen";

/** How a layer over a workspace, or a copy of it, differs from the workspace. Paths are byte texts (`textOfBytes`). */
export interface LayerChanges {
  /** Sorted by path. Includes folders, and everything in a deleted folder. */
  readonly changes: readonly Change[];
  /** The folder that holds the added and modified files under the same paths. It is never written to. */
  readonly content: string;
  /** A part could not be read. */
  readonly incomplete: boolean;
  /** From when on others may have changed the workspace: milliseconds since 1970. */
  readonly since: number;
  /** The box saw neither these paths nor what is in them: what it has there does not come from the workspace. */
  readonly unseen?: readonly string[];
}

/** Replaces the box of a run when it is lost, and keeps what its calls had changed. */
export interface BoxRecovery {
  /** Call after each call that may have written: copies its changes out of the box. Rejects if the box is lost. */
  readonly bringHome: () => Promise<void>;
  /** Why the box was lost, if `thrown` is that loss and another box replaced it. Rejects if none could. */
  readonly replacedAfter: (thrown: unknown) => Promise<string | undefined>;
  /** Why the box was lost between calls; each loss is told once. */
  readonly untoldLoss: () => string | undefined;
}
