import { formatDuration } from "../../core/text/bounds.ts";
import type { Cause } from "../../core/errors.ts";
import type { ExecResult } from "../../core/ports.ts";
import { counted, firstOf } from "../../core/text/short-lists.ts";
import type { ToolResult } from "../../core/tool.ts";

/** The ending of a command, for the model: its cause, the lines that state it, and advice that is given once. */
interface Ending {
  readonly kind: "ok" | "failed" | "timed_out" | "cancelled";
  readonly cause: Cause | null;
  /** In brackets below the output; none after a success without remarks. */
  readonly lines: readonly string[];
  readonly advice: readonly Advice[];
  readonly exitCode: number;
  readonly peak: ExecResult["peak"];
  /** Empty when only the exit code is known. */
  readonly reason: string;
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
  canary: "it touched a trap that nobody has a reason to touch, and the run ends",
  leftovers: 'to keep a process running, start it with "background": true and without &',
};

/** Advice that only concerns arguments of `bash`. */
export const BASH_ADVICE: readonly Advice[] = ["timeout", "leftovers"];

const MAX_PATHS = 5;

/** `output` is the end of the command's output: it may show a limit that the box cannot observe itself. */
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
    peak: result.peak,
    reason: met.reason,
  };
}

interface FoundCause {
  readonly cause: Cause | null;
  readonly reason: string;
}

/** Why the command ended; the box may know only its exit code. */
export function causeOf(
  { cause, reason, blocked, blocked_connections: refused }: ExecResult,
  output: string,
): FoundCause {
  if (cause !== "program") return { cause, reason };
  const [way] = refused ?? [];
  if (way !== undefined && blocked.length === 0 && tellsOf(way.host, output))
    return { cause: "network", reason: `the box was refused a connection: ${way.reason}` };
  const sign = blocked.length > 0 ? undefined : signOf(output);
  return sign ?? { cause, reason: reason.startsWith("exit code ") ? "" : reason };
}

/** Programs also request hosts they can do without: only a refusal that the output mentions explains a failure. */
const tellsOf = (host: string, output: string): boolean => {
  const end = output.slice(-LOOKED_AT);
  return (host !== "" && end.includes(host)) || /\b403\b|\bproxy\b/i.test(end);
};

const isAdvised = (cause: Cause | null): cause is Exclude<Cause, "program" | "policy" | "user"> =>
  cause !== null && cause in ADVICE;

function kindOf(cause: Cause | null): Ending["kind"] {
  if (cause === null) return "ok";
  if (cause === "timeout") return "timed_out";
  return cause === "user" ? "cancelled" : "failed";
}

function endLine({ exit_code, duration_ms }: ExecResult, { cause, reason }: FoundCause): string | undefined {
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

function sideLines(
  { leftovers, blocked, quarantined, blocked_connections: refused = [] }: ExecResult,
  cause: Cause | null,
): readonly string[] {
  const lines: string[] = [];
  // A network cause already shows the first one.
  const ways = [...new Set(refused.map(({ reason }) => reason))].slice(cause === "network" ? 1 : 0);
  for (const way of ways.slice(0, MAX_PATHS)) lines.push(`[no connection: ${way}]`);
  if (ways.length > MAX_PATHS) lines.push(`[and ${ways.length - MAX_PATHS} more hosts were refused]`);
  if (blocked.length > 0 && cause !== "filesystem")
    lines.push(`[protected, not written: ${firstOf(blocked, MAX_PATHS)}]`);
  if (quarantined.length > 0)
    lines.push(
      `[moved out of the workspace, because the host would obey it: ${firstOf(quarantined, MAX_PATHS, ({ from }) => from)}]`,
    );
  if (leftovers > 0 && (cause === null || cause === "program"))
    lines.push(`[${counted(leftovers, "process", "processes")} that it left running ended with it]`);
  return lines;
}

/** Returns lines of advice that was not given before. */
export type Advise = (advice: readonly Advice[]) => readonly string[];

export function adviseOnce(unfit: readonly Advice[] = []): Advise {
  const told = new Set<Advice>(unfit);
  return (advice) => {
    const fresh = advice.filter((topic) => !told.has(topic));
    for (const topic of fresh) told.add(topic);
    return fresh.map((topic) => `[advice: ${ADVICE[topic]}]`);
  };
}

export function asResult({ kind, cause, exitCode, peak, reason }: Ending, text: string): ToolResult {
  switch (kind) {
    case "ok":
      return { kind, text, exitCode, peak };
    case "failed":
      return { kind, cause: cause ?? "program", text, exitCode, peak, reason };
    case "timed_out":
      return { kind, cause: "timeout", text, exitCode, peak, reason };
    case "cancelled":
      return { kind, cause: "user", text, exitCode, peak, reason };
  }
}

interface Sign {
  readonly cause: Cause;
  readonly reason: string;
  readonly form: RegExp;
}

/**
 * Messages of programs that meet a limit of the box. They only explain a failure: the program chose the words, so they
 * decide nothing. The first match counts.
 */
const SIGNS: readonly Sign[] = [
  {
    cause: "disk",
    reason: "no space is left where it wrote",
    form: /No space left on device|\bENOSPC\b|Disk quota exceeded|\bEDQUOT\b|File too large|\bEFBIG\b/,
  },
  {
    cause: "pids",
    reason: "the box's limit on processes was reached",
    form: /fork: (?:retry: )?Resource temporarily unavailable|fork(?:\(\))? failed|can't start new thread|spawn [^\n]{0,200}EAGAIN|pthread_create failed|unable to create native thread/,
  },
  {
    cause: "memory",
    reason: "no memory was left for it",
    form: /Cannot allocate memory|\bENOMEM\b|JavaScript heap out of memory|java\.lang\.OutOfMemoryError|fatal error: runtime: out of memory|memory allocation of \d+ bytes failed|^MemoryError|std::bad_alloc|virtual memory exhausted/m,
  },
  {
    cause: "network",
    reason:
      "an install has no network in the box: a person makes dependencies available with `harness env build`",
    form: /\bENOTCACHED\b|npm (?:error|ERR!) (?:code|errno) (?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED)|ERR_PNPM_(?:META_FETCH_FAIL|NO_OFFLINE_\w+)|No matching distribution found for|Could not find a version that satisfies the requirement|you're using offline mode \(--offline\)|failed to (?:download|fetch) [^\n]{0,200}--offline|module lookup disabled by GOPROXY=off|go: [^\n]{0,300}dial tcp: lookup|in offline mode and the artifact|No cached version of [^\n]{0,200} available for offline mode|Cannot access [^\n]{0,200} in offline mode|Could not transfer artifact/,
  },
  {
    cause: "network",
    reason: "the box has no network, or was not granted that host",
    form: /getaddrinfo (?:EAI_AGAIN|ENOTFOUND)|\bEAI_AGAIN\b|\bENETUNREACH\b|Could not resolve (?:host|hostname|proxy)\b|Couldn't resolve host|Temporary failure in name resolution|Temporary failure resolving|Name or service not known|Network is unreachable|network is unreachable|nodename nor servname|unable to resolve host address|failed to lookup address|java\.net\.UnknownHostException|dial tcp: lookup [^\n]{0,200}: |No address associated with hostname|name resolution failed/,
  },
  {
    cause: "filesystem",
    reason: "that path is read-only in the box",
    form: /Read-only file system|\bEROFS\b|read-only file system/,
  },
];

/** Only the end of the output is searched. */
const LOOKED_AT = 16 * 1024;

export function signOf(output: string): { readonly cause: Cause; readonly reason: string } | undefined {
  const end = output.slice(-LOOKED_AT);
  const sign = SIGNS.find(({ form }) => form.test(end));
  return sign === undefined ? undefined : { cause: sign.cause, reason: sign.reason };
}
