import { EXIT, type ExitCode, type Signal } from "../../core/errors.ts";
import { stdout } from "../../render/tty/output.ts";

export function onSignals(handlers: Readonly<Partial<Record<NodeJS.Signals, () => void>>>): Disposable {
  const entries = Object.entries(handlers);
  for (const [name, handler] of entries) process.on(name, handler);
  return {
    [Symbol.dispose]: () => {
      for (const [name, handler] of entries) process.removeListener(name, handler);
    },
  };
}

const CODES = { SIGTERM: EXIT.terminated, SIGHUP: EXIT.hangup } as const;

interface Leaving extends Disposable {
  /** With what it ends; undefined as long as nothing has said so. */
  readonly code: () => ExitCode | undefined;
}

/** SIGTERM, SIGHUP, and a terminal that is gone: the chat ends in order. A second one at once. */
export function leavingBy(leave: (signal: Signal) => void): Leaving {
  const held: { code?: ExitCode } = {};
  const by = (signal: Signal, code: ExitCode) => (): void => {
    if (held.code !== undefined && signal !== "reader-left") process.exit(code);
    if (held.code !== undefined) return;
    held.code = code;
    leave(signal);
  };
  const handlers = (["SIGTERM", "SIGHUP"] as const).map((name) => {
    const handler = by(name, CODES[name]);
    process.on(name, handler);
    return (): void => void process.removeListener(name, handler);
  });
  const gone = by("reader-left", EXIT.hangup);
  handlers.push(stdout.on("reader-left", gone));
  return {
    code: () => held.code,
    [Symbol.dispose]: () => {
      for (const remove of handlers) remove();
    },
  };
}
