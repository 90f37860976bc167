import { formatDuration } from "../../core/bounds.ts";
import type { ExecResult } from "../../core/ports.ts";
import type { Cause, ToolResult } from "../../core/tool.ts";
import { signOf } from "./signs.ts";

/** How a command ended, for the model: its cause, the lines that say so, and what may be told about it once. */
export interface Ending {
  readonly kind: "ok" | "failed" | "timed_out" | "cancelled";
  readonly cause: Cause | null;
  /** In brackets below the output; none after a success without anything to say. */
  readonly lines: readonly string[];
  readonly advice: readonly Advice[];
  readonly exitCode: number;
}

type Advice = Exclude<Cause, "program" | "policy" | "user"> | "leftovers";

const ADVICE: Readonly<Record<Advice, string>> = {
  filesystem:
    "only the workspace, /tmp and $HOME can be written; .git and editor or agent settings in the workspace cannot. " +
    "Do it another way, or say in your answer what a person has to do",
  network:
    "the box reaches nothing on a network but what was granted; trying again does not help. Use what is installed, or " +
    "say what is missing",
  memory: "use less memory: smaller inputs, fewer workers, one part at a time",
  pids: "start fewer processes: make -j2, one worker",
  disk: "delete what is not needed; /tmp and $HOME are small and count as memory, the workspace is not",
  timeout: 'give a longer "timeout" (at most 600), "background": true for servers, or do it in parts',
  leftovers: 'to keep a process running, start it with "background": true and without &',
};

const MOST_PATHS = 5;

/** `output` is the end of what it said, where its own words show a wall that the box cannot see it meet. */
export function endingOf(result: ExecResult, output: string): Ending {
  const met = causeOf(result, output);
  const advice: Advice[] = isAdvised(met.cause) ? [met.cause] : [];
  if (result.leftovers > 0 && met.cause === null) advice.push("leftovers");
  const ended = endLine(result, met);
  return {
    kind: kindOf(met.cause),
    cause: met.cause,
    lines: [...sideLines(result, met.cause), ...(ended === undefined ? [] : [ended])],
    advice,
    exitCode: result.exit_code,
  };
}

interface Met {
  readonly cause: Cause | null;
  readonly reason: string;
}

function causeOf({ cause, reason, blocked }: ExecResult, output: string): Met {
  if (cause !== "program") return { cause, reason };
  const sign = blocked.length > 0 ? undefined : signOf(output);
  return sign ?? { cause, reason: reason.startsWith("exit code ") ? "" : reason };
}

const isAdvised = (cause: Cause | null): cause is Exclude<Cause, "program" | "policy" | "user"> =>
  cause !== null && cause in ADVICE;

function kindOf(cause: Cause | null): Ending["kind"] {
  if (cause === null) return "ok";
  if (cause === "timeout") return "timed_out";
  return cause === "user" ? "cancelled" : "failed";
}

function endLine({ exit_code, duration_ms }: ExecResult, { cause, reason }: Met): string | undefined {
  const time = formatDuration(duration_ms);
  switch (cause) {
    case null:
      return undefined;
    case "timeout":
      return `[timed out after ${time}: ended with all that it started]`;
    case "user":
      return `[cancelled after ${time}]`;
    case "program":
      return `[exit ${exit_code}, ${time}${reason === "" ? "" : `: ${reason}`}]`;
    default:
      return `[exit ${exit_code}, ${time}, ${cause}: ${reason}]`;
  }
}

function sideLines({ leftovers, blocked, quarantined }: ExecResult, cause: Cause | null): readonly string[] {
  const lines: string[] = [];
  if (blocked.length > 0 && cause !== "filesystem")
    lines.push(`[protected, not written: ${listed(blocked)}]`);
  if (quarantined.length > 0)
    lines.push(
      `[moved out of the workspace, as the host would obey it: ${listed(quarantined.map(({ from }) => from))}]`,
    );
  if (leftovers > 0 && (cause === null || cause === "program"))
    lines.push(
      `[${leftovers} ${leftovers === 1 ? "process" : "processes"} that it left running ended with it]`,
    );
  return lines;
}

const listed = (paths: readonly string[]): string => {
  const more = paths.length - MOST_PATHS;
  return paths.slice(0, MOST_PATHS).join(", ") + (more > 0 ? ` and ${more} more` : "");
};

/** The lines of what was not advised before. */
export type Advise = (advice: readonly Advice[]) => readonly string[];

export function adviseOnce(): Advise {
  const told = new Set<Advice>();
  return (advice) => {
    const fresh = advice.filter((topic) => !told.has(topic));
    for (const topic of fresh) told.add(topic);
    return fresh.map((topic) => `[advice: ${ADVICE[topic]}]`);
  };
}

export function asResult({ kind, cause, exitCode }: Ending, text: string): ToolResult {
  switch (kind) {
    case "ok":
      return { kind, text, exitCode };
    case "failed":
      return { kind, cause: cause ?? "program", text, exitCode };
    case "timed_out":
      return { kind, cause: "timeout", text, exitCode };
    case "cancelled":
      return { kind, cause: "user", text, exitCode };
  }
}
