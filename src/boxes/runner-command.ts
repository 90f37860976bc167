import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Act, Canary, Observed, SeenProcess, Touch } from "../core/behaviour.ts";
import type { Cause } from "../core/errors.ts";
import { textOfBytes } from "../core/raw-data.ts";
import {
  bytesIn,
  decodeFields,
  encodeFields,
  EXEC_EXACT,
  EXEC_OWN,
  EXEC_STDIN,
  EXEC_TTY,
  type Field,
  type FieldValue,
  type Frame,
  has,
  MAX_PAYLOAD,
  numberIn,
} from "./runner-protocol.ts";

/**
 * One command as the runner gets it, and what comes of it: its request, its input, what it asks of the harness, its end,
 * and what it was seen doing.
 */

export interface Command {
  readonly words: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** Bytes of each stream that are passed on as they come; of the rest, only the last `tail` bytes are. */
  readonly head: number;
  readonly tail: number;
  readonly terminal: boolean;
  /** Requires the folder itself, not the target of a link. */
  readonly exact?: boolean;
  /** A program of the harness's own, which commands do not count as theirs (sandbox/runner/protocol.h). */
  readonly own?: boolean;
  /** A file to read when the command ends. */
  readonly keepFile?: { readonly path: string; readonly limit: number } | undefined;
  readonly observe?: ObserveOptions | undefined;
  /** Undefined for no input at all. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
}

/** The payload of the request that starts the command. */
export function execPayload(command: Command): Buffer {
  const { input, terminal, exact = false, own = false, keepFile, observe } = command;
  const flags =
    (input === undefined ? 0 : EXEC_STDIN) +
    (terminal ? EXEC_TTY : 0) +
    (exact ? EXEC_EXACT : 0) +
    (own ? EXEC_OWN : 0);
  const kept =
    keepFile === undefined
      ? []
      : ([
          ["k", keepFile.path],
          ["n", keepFile.limit],
        ] as const);
  return encodeFields([
    ...command.words.map((word) => ["a", word] as const),
    ...Object.entries(command.env).map(([name, value]) => ["e", `${name}=${value}`] as const),
    ["d", command.folder],
    ["t", command.timeoutMs],
    ["h", command.head],
    ["l", command.tail],
    ["f", flags],
    ...kept,
    ...(observe === undefined ? [] : observeFields(observe)),
  ]);
}

/** The error number if no runner can be sent this command, else undefined: for the runner, words end at a NUL. */
export function unsendable(
  { words, folder, env, keepFile, observe }: Command,
  payload: Buffer,
): number | undefined {
  if (payload.length > MAX_PAYLOAD) return constants.errno.E2BIG;
  const texts = [...words, folder, ...Object.entries(env).flat(), keepFile?.path ?? ""].concat(
    observe?.canaries.map(({ at }) => at) ?? [],
  );
  return texts.some((text) => text.includes("\0")) ? constants.errno.EINVAL : undefined;
}

/** The canaries and folders that the runner watches while a command runs (sandbox/runner/observe.h, protocol.h). */
export interface ObserveOptions {
  readonly canaries: readonly Canary[];
  /** Files below these folders are counted apart, so that they leave room in the report for files elsewhere. */
  readonly trees: readonly string[];
}

export const observeFields = ({
  canaries,
  trees,
}: ObserveOptions): readonly (readonly [string, FieldValue])[] => [
  ...trees.map((tree) => ["w", tree] as const),
  ...canaries.map(({ kind, at }) => ["c", `${CANARY[kind]}${kind === "address" ? hostOf(at) : at}`] as const),
];

const CANARY = { file: "f", socket: "s", address: "a" } as const;

/** Touching any port of an address counts. */
const hostOf = (at: string): string => at.slice(0, at.lastIndexOf(":")).replaceAll(/[[\]]/g, "");

/** Sends input piece by piece. Stops quietly if the call ends before its input; input that fails counts as ended. */
export async function feed(
  input: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  credit: CreditWindow,
  { send, end }: { readonly send: (piece: Buffer) => void; readonly end: () => void },
): Promise<void> {
  try {
    for await (const chunk of input)
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = Buffer.from(chunk.subarray(at, at + PIECE_BYTES));
        if (!(await credit.take(piece.length))) return;
        send(piece);
      }
  } catch {
    // The provider of the input knows of the failure.
  }
  end();
}

const PIECE_BYTES = 64 * 1024;

/** How many bytes of input may be in transit before the runner has taken them. */
export interface CreditWindow {
  /** Waits until this many bytes may be sent; false if sending is no longer of use. */
  readonly take: (bytes: number) => Promise<boolean>;
  /** The payload of a credit frame. */
  readonly give: (payload: Buffer) => void;
  readonly stop: () => void;
}

export function creditWindow(window: number): CreditWindow {
  const state = { left: window, stopped: false, wake: (): void => undefined };
  const moved = (): Promise<void> => new Promise((resolve) => (state.wake = resolve));
  return {
    take: async (bytes) => {
      while (state.left < bytes && !state.stopped) await moved();
      state.left -= bytes;
      return !state.stopped;
    },
    give: (payload) => {
      state.left += Number(payload.readBigUInt64LE(5));
      state.wake();
    },
    stop: () => {
      state.stopped = true;
      state.wake();
    },
  };
}

/** A request from a command to the harness; the command waits for the answer. */
export type CommandRequest = Pick<Frame, "call" | "payload">;

/** Answers the requests of commands (sandbox/runner/ask.h) until the runner is held. */
export class CommandRequests {
  readonly #onAsk: ((request: Buffer) => Promise<Buffer>) | undefined;
  readonly #send: Send;
  #open = 0;
  #late: CommandRequest[] | undefined;

  constructor(onAsk: ((request: Buffer) => Promise<Buffer>) | undefined, send: Send) {
    this.#onAsk = onAsk;
    this.#send = send;
  }

  get isHeld(): boolean {
    return this.#late !== undefined;
  }

  take({ call, payload }: CommandRequest): void {
    if (this.#late === undefined) void this.#answer(call, payload);
    else if (this.#late.length < MAX_LATE) this.#late.push({ call, payload });
  }

  /** Resolves once all open requests are answered. */
  async idle(): Promise<void> {
    while (this.#open > 0) await sleep(POLL_MS);
  }

  /** From now on no request is answered: late requests go into this list. */
  hold(): readonly CommandRequest[] {
    return (this.#late ??= []);
  }

  async #answer(call: number, payload: Buffer): Promise<void> {
    this.#open += 1;
    const answer = (await this.#onAsk?.(payload)) ?? EMPTY;
    this.#open -= 1;
    this.#send(call, answer.subarray(0, MAX_PAYLOAD));
  }
}

type Send = (call: number, answer: Buffer) => void;

const EMPTY = Buffer.alloc(0);

const POLL_MS = 20;

/** The most requests kept while the runner is held: more than can wait for an answer. */
const MAX_LATE = 64;

/** What the runner reported about a command's end. */
export interface RunnerExit {
  readonly code: number | null;
  readonly signal: number | null;
  /** Set if the command could not be started. */
  readonly errno: number | null;
  readonly where: number;
  readonly timedOut: boolean;
  readonly killed: number;
  readonly stdout: { readonly total: number; readonly lost: number };
  readonly stderr: { readonly total: number; readonly lost: number };
  readonly peakMemory: number;
  readonly peakPids: number;
  readonly memoryKills: number;
  readonly pidsRefused: number;
  readonly microseconds: number;
  readonly stuck: boolean;
  /** The file to read at the end; undefined if none was requested, or if the command did not end by itself. */
  readonly kept?: KeptFile;
  /** The pieces of what the command was seen doing; empty if it was not observed. */
  readonly seen?: readonly Buffer[];
}

/** The file's content, or why the file cannot be read. */
type KeptFile = { readonly content: Buffer } | { readonly errno: number };

export function readExit(payload: Buffer): RunnerExit {
  const fields = decodeFields(payload);
  const number = (name: string): number => numberIn(fields, name);
  const optional = (name: string): number | null => (has(fields, name) ? number(name) : null);
  return {
    code: optional("c"),
    signal: optional("s"),
    errno: optional("E"),
    where: number("W"),
    timedOut: number("t") === 1,
    killed: number("k"),
    stdout: { total: number("o"), lost: number("O") },
    stderr: { total: number("e"), lost: number("R") },
    peakMemory: number("m"),
    peakPids: number("p"),
    memoryKills: number("x"),
    pidsRefused: number("l"),
    microseconds: number("u"),
    stuck: number("z") === 1,
    ...keptIn(fields),
  };
}

function keptIn(fields: readonly Field[]): Pick<RunnerExit, "kept"> {
  const content = bytesIn(fields, "K");
  if (content !== undefined) return { kept: { content } };
  return has(fields, "F") ? { kept: { errno: numberIn(fields, "F") } } : {};
}

/** For a command that was never started. */
export const exitUnstarted = (errno: number): RunnerExit => ({
  ...readExit(Buffer.alloc(0)),
  errno,
});

export interface ExitVerdict {
  /** As in a shell: 124 for a timeout, 128 + signal, 126 and 127 for a command that could not be started. */
  readonly exitCode: number;
  readonly cause: Cause | null;
  readonly reason: string;
}

const { errno: ERRNO, signals: SIGNALS } = constants;
const TIMEOUT_EXIT_CODE = 124;
const START_FOLDER = 2;

/**
 * One ending, one cause: a limit that was reached takes precedence over the program's own result, even if a shell line
 * went on and ended well.
 */
export function verdictOf(exit: RunnerExit, cancelled: boolean): ExitVerdict {
  if (exit.errno !== null) return notStarted(exit.errno, exit.where);
  const exitCode = exit.code ?? 128 + (exit.signal ?? 0);
  if (cancelled) return { exitCode, cause: "user", reason: "cancelled" };
  if (exit.timedOut)
    return { exitCode: TIMEOUT_EXIT_CODE, cause: "timeout", reason: "the time for one command was over" };
  if (exit.memoryKills > 0)
    return { exitCode, cause: "memory", reason: "the box's memory limit was reached" };
  if (exit.pidsRefused > 0)
    return { exitCode, cause: "pids", reason: "the box's limit on processes was reached" };
  if (exitCode === 0) return { exitCode, cause: null, reason: "" };
  if (isSignal(exit, exitCode, SIGNALS.SIGXFSZ))
    return { exitCode, cause: "disk", reason: "a file grew beyond the limit on file size" };
  const reason =
    exit.signal === null ? `exit code ${exitCode}` : `ended by signal ${nameOfSignal(exit.signal)}`;
  return { exitCode, cause: "program", reason };
}

/** Nothing was run, because the command's folder could not be entered. */
export const isFolderGone = ({ errno, where }: RunnerExit): boolean =>
  errno !== null && where === START_FOLDER;

/** For the command itself, or for the last command of a shell line. */
const isSignal = (exit: RunnerExit, exitCode: number, signal: number): boolean =>
  exit.signal === signal || exitCode === 128 + signal;

function notStarted(errno: number, where: number): ExitVerdict {
  switch (errno) {
    case ERRNO.EAGAIN:
      return { exitCode: 126, cause: "pids", reason: "no more processes fit into the box" };
    case ERRNO.ENOMEM:
      return { exitCode: 126, cause: "memory", reason: "no memory was left to start it" };
    case ERRNO.E2BIG:
      return {
        exitCode: 126,
        cause: "program",
        reason: "it is too long: 128 KiB at most in one word, 1 MiB in all",
      };
    case ERRNO.ENOENT:
    case ERRNO.ENOTDIR:
      return where === START_FOLDER
        ? { exitCode: 126, cause: "program", reason: "its working folder does not exist" }
        : { exitCode: 127, cause: "program", reason: "command not found" };
    default:
      return { exitCode: 126, cause: "program", reason: `it could not be started: ${nameOfErrno(errno)}` };
  }
}

export const nameOfErrno = (errno: number): string =>
  Object.entries(ERRNO).find(([, value]) => value === errno)?.[0] ?? `error ${errno}`;

const nameOfSignal = (signal: number): string =>
  Object.entries(SIGNALS).find(([, value]) => value === signal)?.[0] ?? String(signal);

const OBSERVATION_LEVELS = ["none", "samples", "calls"] as const;

/** Reads the pieces of one command's report, in the order they came. */
export function readSeen(pieces: readonly Buffer[], canaries: readonly Canary[]): Observed {
  const fields = pieces.flatMap(decodeFields);
  const of = (name: string): readonly Buffer[] =>
    fields.flatMap((field) => (field.name === name ? [field.bytes] : []));
  const by = OBSERVATION_LEVELS[numberIn(fields, "b")] ?? "none";
  const touch = of("t")[0];
  return {
    by,
    processes: of("p").map(processIn),
    acts: of("a").map(actIn),
    missed: { processes: numberIn(fields, "P"), acts: numberIn(fields, "A") },
    touched: touch === undefined ? null : touchIn(touch, canaries),
    unseen: [...UNSEEN[by], ...(numberIn(fields, "h") === 1 ? [HIDDEN] : [])],
  };
}

const milliseconds = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at)) / 1000;

const processIn = (bytes: Buffer): SeenProcess => ({
  pid: bytes.readUInt32LE(0),
  parent: bytes.readUInt32LE(4),
  at: milliseconds(bytes, 8),
  words: textOfBytes(bytes.subarray(16)).split("\0"),
});

type FileAct = "read" | "write" | "make" | "remove" | "mode" | "run";
type SocketAct = "connect" | "listen" | "send";

const FILE_ACTS: Readonly<Record<string, FileAct>> = {
  r: "read",
  w: "write",
  m: "make",
  d: "remove",
  o: "mode",
  x: "run",
};
const SOCKET_ACTS: Readonly<Record<string, SocketAct>> = { c: "connect", l: "listen", s: "send" };
const FAMILIES: Readonly<Record<string, "ip" | "unix">> = { i: "ip", u: "unix" };
const NO_PORT = 0xffff_ffff;
const ACT_HEAD = 17;

function actIn(bytes: Buffer): Act {
  const letter = bytes.toString("latin1", 0, 1);
  const head = {
    pid: bytes.readUInt32LE(1),
    times: bytes.readUInt32LE(5),
    at: milliseconds(bytes, 9),
  };
  const body = bytes.subarray(ACT_HEAD);
  const file = FILE_ACTS[letter];
  if (file !== undefined) return { ...head, kind: file, path: textOfBytes(body) };
  if (letter === "n") return { ...head, kind: "name", name: textOfBytes(body) };
  const socket = SOCKET_ACTS[letter];
  if (socket === undefined) {
    const [name = "", detail = ""] = textOfBytes(body).split("\0");
    return { ...head, kind: "call", name, detail };
  }
  const port = body.readUInt32LE(1);
  return {
    ...head,
    kind: socket,
    family: FAMILIES[body.toString("latin1", 0, 1)] ?? "other",
    address: textOfBytes(body.subarray(5)),
    port: port === NO_PORT ? null : port,
  };
}

const touchIn = (bytes: Buffer, canaries: readonly Canary[]): Touch => ({
  canary: canaries[bytes.readUInt32LE(0)]?.name ?? "",
  pid: bytes.readUInt32LE(4),
  at: milliseconds(bytes, 8),
  path: textOfBytes(bytes.subarray(16)),
});

const UNSEEN: Readonly<Record<Observed["by"], readonly string[]>> = {
  calls: [
    "calls that the box refuses outright (mount, ptrace, namespaces, kernel modules, raw sockets, set-id modes): they are not reported",
    "lookups: names that are listed, files that are searched for, links that are read",
    "reads of the system's own programs and libraries",
    "what a process does through files and sockets that it already has open",
    "a path that a program changes between the check and the use; canaries are guarded against that",
  ],
  samples: [
    "processes that lived for less than a few hundredths of a second",
    "files, sockets and calls: this machine reports none; canaries that are opened are reported",
  ],
  none: ["everything: this machine does not report what commands do"],
};

const HIDDEN = "what processes did after they barred other processes from inspecting them";
