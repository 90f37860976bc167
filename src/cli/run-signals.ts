import { Interrupted, type Signal } from "../agent/outcome.ts";
import { stdout } from "../render/tty/output.ts";
import { leaveSoon } from "./interrupt.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const satisfies readonly Signal[];
const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export interface Interruption extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * The first Ctrl-C, SIGTERM or SIGHUP, or a reader of stdout that leaves, ends the run in order; a second one at once:
 * what is left of the box is removed by the next run.
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
  // Each write that fails says so, those behind the end of the run too; its code is to stay what it is.
  stdout.on("reader-left", () => abort("reader-left"));
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const remove of handlers) remove();
      if (controller.signal.aborted) leaveSoon();
    },
  };
}
