import { spawn } from "node:child_process";
import path from "node:path";
import type { Usage } from "../../core/model-provider.ts";
import type { RunChanges } from "../../core/events.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { packageRoot } from "../host.ts";

/** `harness` as a process of its own, as a user would start it, so that it is judged and boxed like any other run. */
export interface ChildStart {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Ends the process in order. */
  readonly signal: AbortSignal;
  /** Standard input of the process. */
  readonly input?: string;
  readonly onStart?: (pid: number) => void;
}

export interface ChildEnd {
  /** Null if the process was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Only the end of an output is kept: a run may write without end. */
const KEPT_BYTES = 1_000_000;

/**
 * The process gets a group of its own. A Ctrl-C at the terminal then reaches only its starter, which ends it once. A
 * second signal would end it at once and leave its box behind.
 */
export function runChild({ words, env, signal, input, onStart }: ChildStart): Promise<ChildEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(path.join(packageRoot, "bin/harness"), [...words], {
      env,
      detached: true,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    const kept = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name]?.setEncoding("utf8").on("data", (text: string) => {
        kept[name] = (kept[name] + text).slice(-KEPT_BYTES);
      });
    const stop = (): void => void child.kill("SIGTERM");
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    // A process that ends before it has read its task says why by itself.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
    if (child.pid !== undefined) onStart?.(child.pid);
    child.once("error", reject);
    child.once("close", (code) => {
      signal.removeEventListener("abort", stop);
      resolve({ code, ...kept });
    });
  });
}

/** The fields read from `run.finished`. */
export interface FinishedRun {
  readonly answer?: string | null;
  readonly status?: string;
  readonly reason?: string;
  readonly turns?: number;
  readonly tool_calls?: number;
  readonly denials?: readonly unknown[];
  readonly attempts?: readonly unknown[];
  readonly usage?: Usage;
  readonly changes?: RunChanges | null;
  readonly verified?: {
    readonly command: string;
    readonly exit_code: number;
    readonly rounds: number;
  } | null;
  readonly session?: string;
}

export const finishedIn = (stdout: string): FinishedRun | undefined =>
  lastLine(stdout, '"run.finished"') as FinishedRun | undefined;

interface PrintedError {
  readonly error?: { readonly message?: string; readonly remedy?: string };
}

/** Why `harness … --json` could not begin. */
export function refusalIn(stdout: string): string | undefined {
  const error = (lastLine(stdout, '"error"') as PrintedError | undefined)?.error;
  if (error?.message === undefined) return undefined;
  return error.remedy === undefined || error.remedy === ""
    ? error.message
    : `${error.message}; next: ${error.remedy}`;
}

function lastLine(stdout: string, mark: string): unknown {
  const line = stdout.trimEnd().split("\n").at(-1) ?? "";
  return line.includes(mark) ? parsedJson(line) : undefined;
}

const SHOWN_LINES = 12;

export const lastLines = (text: string): string => text.trimEnd().split("\n").slice(-SHOWN_LINES).join("\n");
