/**
 * How things end and fail: exit codes, statuses, errors that a person can act on, causes, trouble with the disk,
 * health.
 */

/** Exit codes of the program; scripts rely on them (README lists their meaning). */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  budget: 3,
  refused: 4,
  model: 5,
  sandbox: 6,
  parked: 7,
  /** Verdicts of `policy`; allow is `done`. */
  ask: 10,
  deny: 20,
  noBox: 125,
  hangup: 129,
  interrupted: 130,
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** How a run ends, in a word. */
export const STATUSES = [
  "done",
  "failed",
  "budget",
  "refused",
  "model",
  "sandbox",
  "parked",
  "interrupted",
] as const;

/** Begins the reason of a run that ended with 0 and lacked nothing; what was verified, or not, follows. */
export const PLAIN_ENDING = "The model gave its answer";

/** The same for a run that looked and changed nothing: many a question reads like a request for a change. */
export const ONLY_LOOKED = "The model changed nothing. It looked at ";

/** Whether the reason of a successful run holds nothing that a person who wants few words would need to know. */
export function isPlainEnding(reason: string): boolean {
  if (reason === "" || reason === `${PLAIN_ENDING}.`) return true;
  const begins = reason.startsWith(`${PLAIN_ENDING}; verified by \``) || reason.startsWith(ONLY_LOOKED);
  return begins && !reason.includes("; it says that tests pass");
}

/** A failure a person can act on: what happened, why, and the next thing to type. */
export class HarnessError extends Error {
  override readonly name = "HarnessError";
  readonly exit: ExitCode;
  /** The next step, in words or as a command; empty only when there is none. */
  readonly remedy: string;

  constructor(exit: ExitCode, message: string, remedy = "", cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exit = exit;
    this.remedy = remedy;
  }
}

/** Rethrows a failure to write files of our own: what could not be stored in which folder, and what to do about it. */
export const notStored =
  (what: string, folder: string) =>
  (thrown: unknown): never => {
    throw new HarnessError(
      EXIT.sandbox,
      `${what} cannot be stored in ${folder}: ${reasonOf(thrown)}`,
      "make that folder writable, and check its free space",
      thrown,
    );
  };

/** A canary was touched, which nobody has a reason to do: what runs in the box can no longer be trusted. */
export class CanaryTouched extends HarnessError {}

/** The named session does not exist. */
export class UnknownSession extends HarnessError {}

/** The box is lost. Its type and `why` say so, so that nobody has to parse a message. */
export class BoxLost extends HarnessError {
  readonly why: string;

  constructor(why: string, remedy: string, cause?: unknown) {
    super(EXIT.sandbox, `the box was lost: ${why}`, remedy, cause);
    this.why = why;
  }
}

/** One line of reason from any thrown value; socket errors often carry only a code. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return asText(thrown);
  const inner: unknown = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause;
  if (inner instanceof Error && (thrown.message === "" || thrown.message === "fetch failed"))
    return reasonOf(inner);
  const code = errorCode(thrown);
  return thrown.message || code || thrown.name;
}

function asText(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return `a thrown ${typeof thrown}`;
  }
}

/** The system's code (ENOENT, EACCES …) of a thrown value, or undefined. */
export function errorCode(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** The single thing that ended a call. */
export const CAUSES = [
  "program",
  "policy",
  "filesystem",
  "network",
  "memory",
  "pids",
  "disk",
  "timeout",
  "user",
  "canary",
] as const;
export type Cause = (typeof CAUSES)[number];

/** `reader-left`: the reader of our stdout has closed it. `overtaken`: another candidate was done first. */
export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP" | "reader-left" | "overtaken";

/** Abort reason when a signal, a reader that left, or another candidate caused the abort. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signal: Signal;

  constructor(signal: Signal) {
    super(`interrupted by ${signal}`);
    this.signal = signal;
  }
}

/** What cut a call off. The cause is null when none of the known causes fits, such as when there is no box. */
export function cutOffBy({ reason }: AbortSignal): {
  readonly cause: Cause | null;
  readonly reason?: string;
} {
  if (reason instanceof CanaryTouched) return { cause: "canary", reason: reason.message };
  if (reason instanceof Interrupted)
    return reason.signal === "overtaken"
      ? { cause: null, reason: "another candidate finished first" }
      : { cause: "user" };
  if (!(reason instanceof Error) || reason.name === "AbortError") return { cause: "user" };
  if (reason.name === "TimeoutError") return { cause: "timeout", reason: "the run's time is up" };
  return { cause: null, reason: reason.message };
}

/** The signal that ended the run. An abort without a reason counts as Ctrl-C. */
export const signalOf = ({ reason }: AbortSignal): Signal =>
  reason instanceof Interrupted ? reason.signal : "SIGINT";

/** Failures of SQLite and the file system that a person can repair. */
export type DiskTrouble =
  | "full"
  | "read-only"
  | "damaged"
  | "busy"
  /** A folder or device is in the place of the file. */
  | "taken"
  | "unreachable"
  | "other";

/** Primary result codes of SQLite; extended codes contain them in their lowest byte. */
const OF_SQLITE: Readonly<Record<number, DiskTrouble>> = {
  5: "busy",
  6: "busy",
  8: "read-only",
  10: "unreachable",
  11: "damaged",
  13: "full",
  14: "unreachable",
  26: "damaged",
};

const OF_SYSTEM: Readonly<Record<string, DiskTrouble>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  EISDIR: "taken",
  ENOTDIR: "unreachable",
  EEXIST: "unreachable",
  ENOENT: "unreachable",
  ELOOP: "unreachable",
  EIO: "unreachable",
};

export function diskTroubleOf(thrown: unknown): DiskTrouble {
  const sqlite = sqliteCodeOf(thrown);
  return (sqlite === undefined ? OF_SYSTEM[errorCode(thrown) ?? ""] : OF_SQLITE[sqlite]) ?? "other";
}

/** The primary result code of an SQLite error; undefined for any other error. */
export function sqliteCodeOf(thrown: unknown): number | undefined {
  if (errorCode(thrown) !== "ERR_SQLITE_ERROR") return undefined;
  const { errcode } = thrown as { readonly errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : 0;
}

/** The state of one thing `run` depends on, as `doctor` and the set-up report it. */
export interface Health {
  /** Stable key for scripts, e.g. `engine` or `model.context`. */
  readonly id: string;
  readonly state: "ok" | "warn" | "fail";
  readonly detail: string;
  /** The command that repairs it; empty when nothing needs repair. */
  readonly remedy: string;
}

export const healthy = (id: string, detail: string): Health => ({ id, state: "ok", detail, remedy: "" });
export const warningHealth = (id: string, detail: string, remedy = ""): Health => ({
  id,
  state: "warn",
  detail,
  remedy,
});
export const unhealthy = (id: string, detail: string, remedy: string): Health => ({
  id,
  state: "fail",
  detail,
  remedy,
});
