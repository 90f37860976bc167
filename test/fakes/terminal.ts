import { Writable } from "node:stream";
import { Output } from "../../src/render/tty/output.ts";
import type { Clock } from "../../src/render/tty/live-lines.ts";

// The caller's environment must not affect these tests.
for (const name of ["CI", "FORCE_COLOR", "NO_COLOR"]) delete process.env[name];
process.env["TERM"] = "xterm";

export interface FakeTerminal {
  readonly stream: Output;
  /** Everything that was written. */
  readonly written: () => string;
  /** The lines as a person sees them now, without colours. */
  readonly seen: () => readonly string[];
  /** Stops accepting output until the returned function is called. */
  readonly stop: () => () => void;
}

/** A stream that reports its kind; without columns it is a pipe. */
export function fakeTerminal(columns?: number, colours = false, rows?: number): FakeTerminal {
  let all = "";
  let goesOn = Promise.resolve();
  let isStopped = false;
  const sink = new Writable({
    write: (bytes: Buffer, _encoding, done) => {
      const take = (): void => {
        all += bytes.toString("utf8");
        done();
      };
      if (isStopped) void goesOn.then(take);
      else take();
    },
  });
  const about = { columns, rows, isTTY: columns !== undefined, getColorDepth: () => (colours ? 8 : 1) };
  return {
    stream: new Output(Object.assign(sink, about) as unknown as NodeJS.WriteStream),
    written: () => all,
    seen: () => withoutColours(all).split("\n").map(afterErasing),
    stop: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      [goesOn, isStopped] = [promise, true];
      return () => {
        isStopped = false;
        resolve();
      };
    },
  };
}

/** The bytes that a colour terminal receives for a text. */
export function sent(text: string): string {
  const { stream, written } = fakeTerminal(80, true);
  stream.write(text);
  return written();
}

const withoutColours = (text: string): string => text.replaceAll(/\u001B\[\d+m/g, "");
const afterErasing = (line: string): string => line.split("\r\u001B[2K").at(-1) ?? "";

/** A clock that advances only on request. */
export function fakeClock(): {
  readonly clock: Clock;
  readonly pass: (ms: number) => void;
  readonly running: () => boolean;
} {
  let now = 0;
  const ticks = new Set<() => void>();
  return {
    clock: {
      now: () => now,
      every: (_ms, run) => {
        const tick = (): void => run();
        ticks.add(tick);
        return () => void ticks.delete(tick);
      },
    },
    pass: (ms) => {
      now += ms;
      for (const tick of ticks) tick();
    },
    running: () => ticks.size > 0,
  };
}
