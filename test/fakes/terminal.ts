import { Writable } from "node:stream";
import { Output } from "../../src/render/tty/output.ts";
import type { Clock } from "../../src/render/tty/paced-writer.ts";

// What the caller's environment says of terminals is none of these tests' business.
for (const name of ["CI", "FORCE_COLOR", "NO_COLOR"]) delete process.env[name];
process.env["TERM"] = "xterm";

export interface FakeTerminal {
  readonly stream: Output;
  /** All that was written. */
  readonly written: () => string;
  /** Its lines as a person sees them now, without colours. */
  readonly seen: () => readonly string[];
  /** It takes nothing more until what it gives is called. */
  readonly stop: () => () => void;
}

/** A stream that says what it is; without columns it is a pipe. */
export function fakeTerminal(columns?: number, colours = false): FakeTerminal {
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
  const about = { columns, isTTY: columns !== undefined, getColorDepth: () => (colours ? 8 : 1) };
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

/** What a terminal with colours gets of a text. */
export function sent(text: string): string {
  const { stream, written } = fakeTerminal(80, true);
  stream.write(text);
  return written();
}

const withoutColours = (text: string): string => text.replaceAll(/\u001B\[\d+m/g, "");
const afterErasing = (line: string): string => line.split("\r\u001B[2K").at(-1) ?? "";

/** Time goes by only when it is told to. */
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
