import { EXIT, type ExitCode, HarnessError, Interrupted, type Signal, signalOf } from "../core/errors.ts";
import { stdout } from "../render/tty/output.ts";
import type { RequestEnd } from "../agent/agent-run.ts";
import { inertJson } from "../core/visible.ts";

export const CODES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hangup } as const;

const LINGER_MS = 2000;

/** After a signal has ended the work, a reader that stopped reading must not keep the process alive. */
function leaveSoon(): void {
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** Runs work that the first Ctrl-C, SIGTERM or SIGHUP ends in order; the work then cleans up through its signal. */
export async function untilInterrupted<T>(
  work: (signal: AbortSignal) => Promise<T>,
  remedy = "run the same command again to continue",
): Promise<T> {
  const controller = new AbortController();
  let code: ExitCode | undefined;
  const handlers = Object.entries(CODES).map(([name, exit]) => {
    const handler = (): void => {
      code = exit;
      controller.abort(new Error("interrupted"));
    };
    process.once(name, handler);
    return () => process.removeListener(name, handler);
  });
  try {
    return await work(controller.signal);
  } catch (thrown) {
    if (code === undefined) throw thrown;
    leaveSoon();
    throw new HarnessError(code, "interrupted", remedy, thrown);
  } finally {
    for (const remove of handlers) remove();
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const satisfies readonly Signal[];

interface Interruption extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * The first Ctrl-C, SIGTERM or SIGHUP, or a reader of stdout that leaves, ends the run in order. A second signal ends
 * it at once; the next run then removes the rest of the box.
 */
export function interruption(): Interruption {
  const controller = new AbortController();
  const abort = (name: Signal): void => controller.abort(new Interrupted(name));
  const handlers = SIGNALS.map((name) => {
    const handler = (): void => {
      if (controller.signal.aborted) process.exit(CODES[name]);
      abort(name);
    };
    process.on(name, handler);
    return () => process.removeListener(name, handler);
  });
  // The listener stays: writes that fail after the end of the run report again, and must not change the exit code.
  stdout.on("reader-left", () => abort("reader-left"));
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const remove of handlers) remove();
      if (controller.signal.aborted) leaveSoon();
    },
  };
}

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
  const interrupted = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => interrupted.resolve(), { once: true });
  try {
    await Promise.race([serving.closed, interrupted.promise]);
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
