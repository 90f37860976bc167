import { constants } from "node:os";
import type { Cause } from "../../core/errors.ts";
import { bytesIn, decodeFields, type Field, has, numberIn } from "./runner-frames.ts";

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

export interface Verdict {
  /** As in a shell: 124 for a timeout, 128 + signal, 126 and 127 for a command that could not be started. */
  readonly exitCode: number;
  readonly cause: Cause | null;
  readonly reason: string;
}

const { errno: ERRNO, signals: SIGNALS } = constants;
const TIMEOUT = 124;
const START_FOLDER = 2;

/**
 * One ending, one cause: a limit that was reached takes precedence over the program's own result, even if a shell line
 * went on and ended well.
 */
export function verdictOf(exit: RunnerExit, cancelled: boolean): Verdict {
  if (exit.errno !== null) return notStarted(exit.errno, exit.where);
  const exitCode = exit.code ?? 128 + (exit.signal ?? 0);
  if (cancelled) return { exitCode, cause: "user", reason: "cancelled" };
  if (exit.timedOut)
    return { exitCode: TIMEOUT, cause: "timeout", reason: "the time for one command was over" };
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

function notStarted(errno: number, where: number): Verdict {
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
