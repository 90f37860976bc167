import { EXIT, type ExitCode, HarnessError, Interrupted, type Signal } from "../core/errors.ts";
import { stdout } from "../render/tty/output.ts";

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

export interface Interruption extends Disposable {
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
