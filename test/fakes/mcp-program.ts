import type { ProgramEnd, StartProgram } from "../../src/extensions/mcp-transports.ts";
import { converse } from "../fixtures/mcp-server.ts";

export interface FakeProgram {
  readonly start: StartProgram;
  /** All messages from the client, in order. */
  readonly heard: readonly unknown[];
  /** How often the program was started. */
  readonly starts: () => number;
  /** Ends the program as if by itself, or together with its box. */
  readonly end: (by: ProgramEnd["by"], reason: string) => void;
}

/** The fixtures' server without a process: a program whose pipes are functions. */
export function fakeProgram(scenario: (start: number) => string): FakeProgram {
  const heard: unknown[] = [];
  const state: { starts: number; end?: (end: ProgramEnd) => void } = { starts: 0 };
  const start: StartProgram = (onOutput) => {
    state.starts += 1;
    const { promise: ended, resolve } = Promise.withResolvers<ProgramEnd>();
    state.end = resolve;
    let way: Promise<void> = Promise.resolve();
    const out = (stream: "stdout" | "stderr", text: string): void => {
      way = way.then(() => onOutput(stream, Buffer.from(text)));
    };
    const take = converse(scenario(state.starts), {
      say: (line) => out("stdout", `${line}\n`),
      raw: (text) => out("stdout", text),
      note: (text) => out("stderr", `${text}\n`),
      exit: (code) =>
        void way.then(() => resolve({ by: "program", reason: `it ended by itself (exit code ${code})` })),
    });
    return {
      ended,
      write: (bytes) => {
        const line = Buffer.from(bytes).toString("utf8");
        heard.push(JSON.parse(line));
        setImmediate(take, line);
      },
      kill: () => resolve({ by: "us", reason: "killed" }),
    };
  };
  return {
    start,
    heard,
    starts: () => state.starts,
    end: (by, reason) => state.end?.({ by, reason }),
  };
}
