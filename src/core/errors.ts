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
