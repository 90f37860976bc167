import type { RequestEnd } from "../../agent/agent-run.ts";
import { EXIT, type ExitCode, signalOf } from "../../core/errors.ts";
import { inertJson } from "../../core/text/visible.ts";
import { stdout } from "../../render/tty/output.ts";
import { CODES, interruption } from "../interruption.ts";

/** Standard output has the protocol alone, each message on a line of its own, no faster than it is read. */
export const toStdout = (message: object): Promise<void> => stdout.writeAll(`${inertJson(message)}\n`);

interface Serving {
  /** Resolves when the peer has left; rejects when nothing more can be served. */
  readonly closed: Promise<void>;
  readonly close: () => Promise<void> | void;
}

/** Between two looks at whether a peer that has left takes what was written to it before. */
const TAKES_MS = 10_000;

/** What it still reads it gets; one that takes nothing any more holds the process no longer. */
function leaveBehind(): void {
  let left = stdout.waiting;
  setInterval(() => {
    if (stdout.isBehind && stdout.waiting === left) process.exit();
    left = stdout.waiting;
  }, TAKES_MS).unref();
}

/** Until the peer leaves, or a signal comes; then `end` puts away what there is. The exit code. */
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
  leaveBehind();
  if (!signal.aborted) return EXIT.done;
  const by = signalOf(signal);
  // A peer that closes both ends has left, whichever is seen first.
  return by === "reader-left" || by === "overtaken" ? EXIT.done : CODES[by];
}
