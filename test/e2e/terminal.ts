import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { COMPILED } from "../fixtures/cli.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";

/** `harness` on its own terminal, as a person types and reads. */

const SCRIPT = "/usr/bin/script";
const PATIENCE_MS = 60_000;

export const noTerminal: string | false =
  !existsSync(SCRIPT) && "script(1) makes the terminal of this test and is not here";

export interface Terminal extends AsyncDisposable {
  /** Sends keys: \r is Enter, \u0003 is Ctrl-C. */
  readonly type: (text: string) => void;
  /** The output since the last call, until this appears in it, without colours and cursor moves. */
  readonly until: (wanted: RegExp) => Promise<string>;
  /** All output so far. */
  readonly screen: () => string;
  /** All output so far, as bytes. */
  readonly bytes: () => Uint8Array;
  readonly pid: () => Promise<number>;
  /** The exit code. */
  readonly ended: Promise<number | null>;
}

const plain = (text: string): string => text.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]/g, "").replaceAll("\r", "");

/** Runs in a separate home in the scratch folder, with the workspace `work`. A chat is line-based. */
export function onTerminal(
  place: Scratch,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Terminal {
  const pidFile = place.at("chat.pid");
  const command = `stty cols 80 rows 24; echo $$ > ${pidFile}; exec ${path.join(ROOT, "bin/harness")} ${words.join(" ")}`;
  const child = spawn(SCRIPT, ["-qec", command, "/dev/null"], {
    cwd: place.at("work"),
    timeout: PATIENCE_MS,
    killSignal: "SIGKILL",
    env: {
      PATH: process.env["PATH"],
      HOME: place.path,
      ...COMPILED,
      TERM: "xterm",
      SHELL: "/bin/sh",
      HARNESS_CHAT: "lines",
      // With a model named, the chat shows no welcome.
      HARNESS_CHAT_MODEL: "qwen3:8b",
      ...env,
    },
  });
  const state = { written: "", seen: 0 };
  const chunks: Buffer[] = [];
  let more = Promise.withResolvers<void>();
  const came = (): void => {
    more.resolve();
    more = Promise.withResolvers();
  };
  child.stdout.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    state.written += chunk.toString();
    came();
  });
  child.stdin.on("error", () => undefined);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      came();
      resolve(code);
    });
  });
  const until = async (wanted: RegExp): Promise<string> => {
    const over = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const text = plain(state.written).slice(state.seen);
      const found = wanted.exec(text);
      if (found !== null) {
        const end = found.index + found[0].length;
        state.seen += end;
        return text.slice(0, end);
      }
      if (child.exitCode !== null || over.aborted)
        throw new Error(`${String(wanted)} never came:\n${plain(state.written)}`);
      await Promise.race([more.promise, new Promise((resolve) => setTimeout(resolve, 500))]);
    }
  };
  return {
    type: (text) => void child.stdin.write(text),
    until,
    screen: () => plain(state.written),
    bytes: () => Buffer.concat(chunks),
    pid: async () => Number(await place.read("chat.pid")),
    ended,
    [Symbol.asyncDispose]: async () => {
      // As closing the terminal would: the program removes its box and ends before its home is removed.
      const pid = Number(await place.read("chat.pid"));
      try {
        if (child.exitCode === null && pid > 1) process.kill(pid, "SIGTERM");
      } catch {
        // The process is gone already.
      }
      await ended;
    },
  };
}
