import type { Canary, Observed } from "./behaviour.ts";
import type { BoxLog, MovedAway } from "./box-log.ts";
import type { Change } from "./changes.ts";
import type { Decision, MatchedRule, Mode } from "./decision.ts";
import type { Cause } from "./errors.ts";
import type { BlockedConnection, Connection, Grant, GrantSaid } from "./network.ts";

/** What the outside must offer. Each port has one contract suite in test/contract. */

/** Where every box has its home, of whatever adapter: gone with it, and nothing of the user's. */
export const BOX_HOME = "/home/box";

/** Owning a box and using a box are two interfaces: only the owner can end it. */
export interface Sandbox {
  start(request: { readonly workspace: string; readonly mode: Mode }): Promise<OwnedBox>;
}

export type OwnedBox = Box &
  AsyncDisposable & {
    /** The id of the image that it was made of, where it was made of one. */
    readonly image?: string;
    /**
     * Has it stop, with all that runs in it, so that another process may take it up; null where it cannot be. Nothing
     * can be asked of it from then on, and disposing of it removes it as ever unless it was frozen.
     */
    readonly park?: () => Promise<ParkedHandle | null>;
    /** From now on nothing is committed for its commands, and when it resolves nothing is being committed. */
    readonly settle?: () => Promise<void>;
    /** What was done here beside its commands since this was last asked, after a search of the whole workspace. */
    readonly log?: () => Promise<BoxLog>;
    /** What it may reach, and did; where it was granted anything, or can be. */
    readonly network?: GrantedNetwork;
    /** Set where it can be lost without what was done in it: that is kept outside of it. */
    readonly home?: {
      /** Brings out what commands have changed since. Rejects only with the loss of the box. */
      readonly bring: () => Promise<void>;
      /** What is out. */
      readonly changes: () => Iterable<Change>;
    };
    /** Whether another one may take its place where it was lost, for this reason; left out: never. */
    readonly mayFollow?: (reason: string) => boolean;
    /** Ends it as disposing of it does, and tells what nobody was told of yet; that is said as warnings otherwise. */
    readonly close?: () => Promise<BoxLog>;
  };

export interface GrantedNetwork {
  /** So far, by their time; of very many the first and the last. */
  readonly connections: () => readonly Connection[];
  /**
   * From now on these count, too, with these variables for commands that start then, and these settings of their tools;
   * until what it gives is called, which ends what they alone let through.
   */
  readonly grant: (
    more: readonly Grant[],
    variables?: Readonly<Record<string, string>>,
    files?: Readonly<Record<string, string>>,
  ) => Promise<() => void>;
}

export interface ParkedHandle {
  /** It is kept until then: milliseconds since 1970. */
  readonly until: number;
  /** Lets go of it. Where that fails it is removed. */
  readonly freeze: () => Promise<void>;
}

/** Only the loss of the box itself rejects; every other ending is a value. */
export interface Box {
  /** Absolute; where commands start unless they say otherwise. */
  readonly workspace: string;
  /** Any number side by side. Aborting ends the command with all that it started, and still gives its result. */
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  /** A command that goes on beside others until it ends, is killed, or the box ends. */
  start(request: ExecRequest): Job;
  read(
    path: string,
    range?: { readonly offset: number; readonly limit: number },
  ): Promise<FileResult<FileContent>>;
  /** All or nothing; an older file keeps its mode, folders above a new one are made. */
  write(path: string, content: Uint8Array): Promise<FileResult<null>>;
  list(path: string): Promise<FileResult<readonly Entry[]>>;
  stat(path: string): Promise<FileResult<Entry>>;
  /** Lines that fit a regular expression; what the ignore rules cover and binary files are left out. */
  search(request: SearchRequest): Promise<FileResult<SearchResult>>;
  /** What the box has changed in the workspace since it began, where it was asked to watch. */
  changes(): Promise<Changes>;
  /** Below the workspace: protected paths that something outside has replaced since, so that they were unprotected. */
  replaced?(): Promise<readonly string[]>;
  /** Variables that its commands have for the sake of its network; others where something is granted meanwhile. */
  readonly networkEnv?: () => Readonly<Record<string, string>>;
  /** Resolves, with the reason, when the box is no more. */
  readonly gone: Promise<string>;
  /** Set where it was parked by another process and goes on as it was: these jobs were named in it, by their names. */
  readonly kept?: ReadonlyMap<string, OldJob>;
}

export interface ExecRequest {
  readonly words: readonly string[];
  /** The workspace when left out. */
  readonly folder?: string;
  /** Over the box's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** Bytes of each stream that are kept: the first and the last ones. */
  readonly keep: { readonly head: number; readonly tail: number };
  /** Empty when left out. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** The head of each stream, as it comes. What it answers to is waited for before more is read. */
  readonly onOutput?: (stream: "stdout" | "stderr", bytes: Uint8Array) => Promise<void> | void;
  /** Run only in its folder itself, and not where a link leads from there. */
  readonly exactFolder?: true;
  /**
   * A regular file, no link, of at most `limit` bytes (256 KiB at most), that is given as it is when the command has
   * come to its end; of a command that is waited for. It costs nothing beside the command.
   */
  readonly keepFile?: { readonly path: string; readonly limit: number };
  /** A terminal of the box's own instead of pipes. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
  /**
   * What it does is written down; at the first touch of one of these it is ended with all that it started. Where the
   * box cannot see, the result says so.
   */
  readonly observe?: { readonly canaries: readonly Canary[] };
  /** By which a job is found again in a box that was parked; only a job has one, and no other of its box the same. */
  readonly name?: string;
}

export interface KeptOutput {
  /** Empty where `onOutput` took it. */
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly total: number;
  /** Bytes between head and tail that were dropped. */
  readonly lost: number;
}

export interface ExecResult {
  /** As a shell gives it: 124 time-out, 126 and 127 not started, 128 + signal. */
  readonly exit_code: number;
  readonly cause: Cause | null;
  /** The cause in words; empty when there is none. */
  readonly reason: string;
  readonly stdout: KeptOutput;
  readonly stderr: KeptOutput;
  readonly duration_ms: number;
  readonly timed_out: boolean;
  /** Whether it was ended by force, whoever did it. */
  readonly killed: boolean;
  /** Processes that outlived the command and were ended. */
  readonly leftovers: number;
  /** Protected paths that it was refused to write. */
  readonly blocked: readonly string[];
  /** Connections that it was refused, or a command beside it; left out where the box was granted no network. */
  readonly blocked_connections?: readonly BlockedConnection[];
  /** Protected paths that it made and that were moved out of the workspace. */
  readonly quarantined: readonly MovedAway[];
  readonly peak: { readonly memory_bytes: number; readonly pids: number };
  /** Left out where it was not asked for. */
  readonly observed?: Observed;
  /** `keepFile`, or why it cannot be given; left out where none was asked for, or the command came to no end of its own. */
  readonly keptFile?: FileResult<Uint8Array>;
  /** Nothing was run, as its folder could not be entered; left out otherwise. */
  readonly folder_gone?: true;
}

/** The command did not begin, and so says nothing itself. */
export const isUnstarted = ({ exit_code, cause, stdout, stderr }: ExecResult): boolean =>
  (exit_code === 126 || exit_code === 127) && cause !== null && stdout.total + stderr.total === 0;

export interface Job {
  readonly result: Promise<ExecResult>;
  /** What is kept of its output so far. */
  readonly output: () => { readonly stdout: Uint8Array; readonly stderr: Uint8Array };
  readonly kill: () => void;
  readonly resize: (columns: number, rows: number) => void;
  /** Kept with it, in place of what was noted before, for whoever finds it again by its name. */
  readonly note?: (text: string) => void;
}

export interface OldJob extends Job {
  readonly noted: string;
}

/** `blocked` is a refusal by the walls, as against a file that is not there. */
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

export interface SearchRequest {
  readonly pattern: string;
  /** The workspace when left out. */
  readonly folder?: string;
  /** Most lines that are given. */
  readonly limit: number;
}

export interface SearchResult {
  readonly lines: readonly { readonly path: string; readonly line: number; readonly text: string }[];
  /** There were more than were given. */
  readonly more: boolean;
}

export interface Entry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "odd";
  readonly mode: number;
  readonly size: number;
  /** Seconds since 1970. */
  readonly modified: number;
}

/** Paths below the workspace. */
export interface Changes {
  /**
   * Files, links and odd things in the order of their paths, read out anew each time: as texts they may all together be
   * more than fits into memory.
   */
  readonly all: Iterable<Change>;
  /** The tree was too large to be seen whole. */
  readonly incomplete: boolean;
  /** Takes those out that git kept track of when the box opened; all where nobody can tell. */
  readonly dropTracked: (paths: Set<string>) => Promise<void>;
}

/** What is asked where the policy neither allows nor denies. */
export interface Question {
  readonly call: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The whole command, or what is to be written where. */
  readonly text: string;
  /** What the text does not tell: lines of a diff of what would be written, or the arguments of a tool. Whole. */
  readonly shown?: string;
  /** What it would do, in words. */
  readonly effects?: readonly string[];
  /** Where it starts; the workspace when left out. */
  readonly folder?: string;
  readonly decision: Decision;
  /** Those of its rules that it is asked for; all of them where left out. */
  readonly asks?: readonly MatchedRule[];
  readonly mode: Mode;
  /** Whether a file tool would write. */
  readonly writes: boolean;
  /** The command of the model, where a person wanted this one in its place. */
  readonly replaces?: string;
  /** It can be run or not, and no other command in its place. */
  readonly fixed?: true;
  /** With which it would be contained, in the form of `allow_domains`; left out where no grant makes it so. */
  readonly grants?: readonly string[];
  /** How the network is had that it wants and has not, in words; left out where it wants none, or has it. */
  readonly network?: string;
}

export interface Answer {
  readonly runs: boolean;
  readonly by: "mode" | "contained" | "person" | "nobody";
  /** Why it is not run, for the model; empty when it is. */
  readonly reason: string;
  /** A person's own words to the model, with their no. */
  readonly word?: string;
  /** The command that a person wants in its place: judged as if it had been called, and what is run. */
  readonly edited?: string;
  /** What it is run with. */
  readonly grant?: GrantSaid;
}

/** Decides what the policy leaves open: a person, a script, or nobody. `waits`: the run stops until somebody does. */
export interface Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer | "waits">;
  /** The no that a person has said to this call already, whatever the policy says of it by now. */
  refuses?(question: Question): Answer | undefined;
}

/** Code found by its meaning. */
export interface Index {
  search(query: string, limit: number, signal: AbortSignal): Promise<IndexAnswer>;
}

export interface IndexAnswer {
  /** Best first. */
  readonly hits: readonly IndexHit[];
  /** Why it may be older than the files, or not of all of them; empty where it is neither. */
  readonly caveat: string;
}

/** A place in the code that answers a query. */
export interface IndexHit {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly symbol: string | null;
  /** From 0 to 1, and only comparable within one answer. */
  readonly score: number;
  /** The lines of it that have most of the query's words; about ten. */
  readonly preview: string;
}

export interface Embedder {
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>;
}

/** A box that is open, or was left, as `sandbox ls` tells it. */
export interface ListedBox {
  readonly id: string;
  readonly workspace: string | null;
  readonly mode: string | null;
  readonly isolation: string | null;
  /** null when the box does not say. */
  readonly owner: { readonly pid: number; readonly alive: boolean } | null;
  readonly created: string;
  readonly state: string;
  /** It waits frozen for a word on a session, until then (ISO 8601); null: it does not. */
  readonly parked: { readonly session: string; readonly until: string } | null;
}
