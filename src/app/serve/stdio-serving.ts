import type { RequestEnd } from "../../agent/agent-run.ts";
import { EXIT, type ExitCode, signalOf } from "../../core/errors.ts";
import { inertJson } from "../../core/visible.ts";
import { stdout } from "../../render/tty/output.ts";
import { CODES, interruption } from "../interruption.ts";

/** Only the protocol goes to standard output: one message per line, no faster than it is read. */
export const toStdout = (message: object): Promise<void> => stdout.writeAll(`${inertJson(message)}\n`);

interface Serving {
  /** Resolves when the peer has left; rejects when nothing more can be served. */
  readonly closed: Promise<void>;
  readonly close: () => Promise<void> | void;
}

/** Between two looks at whether a peer that has left still reads earlier output. */
const TAKES_MS = 10_000;

/** Earlier output is still delivered, but a peer that stops reading no longer keeps the process alive. */
function exitWhenStuck(): void {
  let left = stdout.waiting;
  setInterval(() => {
    if (stdout.isBehind && stdout.waiting === left) process.exit();
    left = stdout.waiting;
  }, TAKES_MS).unref();
}

/** Waits until the peer leaves or a signal arrives; then `end` cleans up. Returns the exit code. */
export async function untilLeft(
  serving: Serving,
  end: (how: RequestEnd) => Promise<void>,
): Promise<ExitCode> {
  using stopped = interruption();
  const { signal } = stopped;
  const told = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => told.resolve(), { once: true });
  try {
    await Promise.race([serving.closed, told.promise]);
  } finally {
    await serving.close();
    await end(signal.aborted ? { how: "cancelled", signal: signalOf(signal) } : { how: "served" });
  }
  exitWhenStuck();
  if (!signal.aborted) return EXIT.done;
  const by = signalOf(signal);
  // A peer that closes both ends has left, whichever end is noticed first.
  return by === "reader-left" || by === "overtaken" ? EXIT.done : CODES[by];
}
