import { EXIT, type ExitCode, HarnessError } from "../core/errors.ts";

const CODES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hangup } as const;

const LINGER_MS = 2000;

/** Once a signal has ended the work, a reader that takes nothing any more holds the process no longer. */
export function leaveSoon(): void {
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** Runs work that the first Ctrl-C, SIGTERM or SIGHUP ends in order; the work then cleans up through its signal. */
export async function untilInterrupted<T>(
  work: (signal: AbortSignal) => Promise<T>,
  remedy = "the same command goes on where this one stopped",
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
