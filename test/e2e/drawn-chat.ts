import { randomUUID } from "node:crypto";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { COMPILED } from "../fixtures/cli.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";

/**
 * `harness` on a drawing terminal, as a person sees it: tmux is the terminal and reports the contents of its screen.
 */

const TMUX = "/usr/bin/tmux";
const PATIENCE_MS = 60_000;
const run = promisify(execFile);

export const noScreen: string | false =
  !existsSync(TMUX) && "tmux is the terminal of this test and is not here";

export interface Screen extends AsyncDisposable {
  /** Types text as a person does; `press` takes tmux key names (`Enter`, `Escape`, `C-c`). */
  readonly type: (text: string) => Promise<void>;
  readonly press: (...names: readonly string[]) => Promise<void>;
  readonly paste: (text: string) => Promise<void>;
  /** Types everything at once, like a fast person; \n is Enter. */
  readonly burst: (text: string) => Promise<void>;
  /** The rows of the screen, once this appears. */
  readonly until: (wanted: RegExp) => Promise<string>;
  /** The screen with everything that was scrolled away. */
  readonly all: () => Promise<string>;
  readonly resize: (columns: number, rows: number) => Promise<void>;
  /** All bytes that the program has sent. */
  readonly bytes: () => Promise<string>;
  /** What tmux reports about its pane. */
  readonly state: (format: string) => Promise<string>;
}

/**
 * Runs in a separate home in the scratch folder, with the workspace `work`. The surrounding shell prints the exit code.
 */
export async function onScreen(
  place: Scratch,
  words: readonly string[],
  {
    columns = 80,
    rows = 24,
    env = {},
    asJob,
  }: { columns?: number; rows?: number; env?: Record<string, string>; asJob?: string } = {},
): Promise<Screen> {
  // The server of an earlier screen may still be ending, and would take this one with it.
  const socket = place.at(`tmux-${randomUUID().slice(0, 8)}.sock`);
  const tmux = async (...all: readonly string[]): Promise<string> =>
    (await run(TMUX, ["-S", socket, "-f", "/dev/null", ...all], { timeout: PATIENCE_MS })).stdout;
  // Set inside the pane: tmux would replace a TERM that is passed to it.
  const settings = Object.entries(env)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
  // A shell with job control notices when the program stops, records the terminal's settings meanwhile, and resumes the
  // program after a line.
  const stopped = `while [ $? -gt 128 ] && kill -0 $(cat ${place.at("pid")}); do times=$((times + 1)); stty -a > ${place.at("between")}; echo "stopped $times"; ${asJob}; read -r line; fg; done`;
  // A terminal's Ctrl-C also reaches the shell, which must report how the program took it.
  await place.write(
    "start.sh",
    `trap : INT; ${asJob !== undefined ? "set -m; " : ""}sleep 0.2; stty -a > ${place.at("before")}; sh -c 'echo $$ > ${place.at("pid")}; exec env ${settings} ${path.join(ROOT, "bin/harness")} ${words.join(" ")}'; ${asJob !== undefined ? `${stopped}; ` : ""}left=$?; stty -a > ${place.at("after")}; echo "left with $left"; exec cat\n`,
  );
  const given = {
    PATH: process.env["PATH"] ?? "",
    HOME: place.path,
    LANG: "C.UTF-8",
    HARNESS_CHAT_MODEL: "qwen3:8b",
    ...COMPILED,
  };
  const variables = Object.entries(given).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const size = ["-x", String(columns), "-y", String(rows)];
  await tmux(
    "new-session",
    "-d",
    ...size,
    ...variables,
    "-c",
    place.at("work"),
    `sh ${place.at("start.sh")}`,
  );
  await tmux("pipe-pane", "-O", `cat > ${place.at("sent")}`);
  const shown = async (...more: readonly string[]): Promise<string> => tmux("capture-pane", "-p", ...more);
  return {
    type: async (text) => void (await tmux("send-keys", "-l", text)),
    press: async (...names) => void (await tmux("send-keys", ...names)),
    paste: async (text) => {
      await tmux("set-buffer", text);
      await tmux("paste-buffer", "-p");
    },
    burst: async (text) => {
      await tmux("set-buffer", text);
      await tmux("paste-buffer");
    },
    until: async (wanted) => {
      const over = AbortSignal.timeout(PATIENCE_MS);
      for (;;) {
        const text = await shown();
        if (wanted.test(text)) return text;
        if (over.aborted) throw new Error(`${String(wanted)} never came:\n${await shown("-S", "-")}`);
        await sleep(100);
      }
    },
    all: () => shown("-S", "-"),
    resize: async (x, y) => void (await tmux("resize-window", "-x", String(x), "-y", String(y))),
    bytes: () => readFile(place.at("sent"), "utf8"),
    state: async (format) => (await tmux("display-message", "-p", format)).trim(),
    [Symbol.asyncDispose]: async () => {
      await tmux("kill-server").catch(() => undefined);
      // The program must clean up before its home is removed.
      const pid = Number(await place.read("pid"));
      const over = AbortSignal.timeout(PATIENCE_MS);
      while (isThere(pid) && !over.aborted) await sleep(50);
      if (!over.aborted) return;
      process.kill(pid, "SIGKILL");
      throw new Error("the chat outlived its terminal");
    },
  };
}

function isThere(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}
