import type { AgentEvent } from "../core/events.ts";
import {
  type Changes,
  type ExecResult,
  isUnstarted,
  type KeptOutput,
  listed,
  type ListedChanges,
} from "../core/ports.ts";
import type { BlockedConnection } from "../core/network.ts";

type Finished = Extract<AgentEvent, { readonly type: "run.finished" }>;

/** Side effects beside the command itself. */
type SideEffects = Required<
  Pick<Finished, "quarantined" | "quarantined_total" | "commits" | "commits_total" | "staged">
>;

/** The object that `sandbox exec --json` prints; scripts rely on it. */
export interface ExecJson extends Partial<SideEffects> {
  readonly exit_code: number;
  readonly cause: ExecResult["cause"];
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  readonly duration_ms: number;
  readonly timed_out: boolean;
  readonly killed: boolean;
  readonly blocked_connections: readonly BlockedConnection[];
  /** All changed paths, ignored ones included. */
  readonly changes: ListedChanges & { readonly incomplete?: true };
  readonly peak: ExecResult["peak"];
  /** Why nothing was started; left out if something was. */
  readonly reason?: string;
}

export function execJson(result: ExecResult, changes: Changes, sideEffects?: SideEffects): ExecJson {
  return {
    exit_code: result.exit_code,
    cause: result.cause,
    stdout: keptText(result.stdout),
    stderr: keptText(result.stderr),
    truncated: result.stdout.lost + result.stderr.lost > 0,
    duration_ms: result.duration_ms,
    timed_out: result.timed_out,
    killed: result.killed,
    blocked_connections: result.blocked_connections ?? [],
    changes: { ...listed(changes.all), ...(changes.incomplete ? { incomplete: true } : {}) },
    peak: result.peak,
    ...(isUnstarted(result) ? { reason: result.reason } : {}),
    ...sideEffects,
  };
}

/** Joins head and tail with the number of bytes left out; characters cut in two are dropped. */
function keptText({ head, tail, lost, total }: KeptOutput): string {
  if (lost === 0) return Buffer.concat([head, tail]).toString("utf8");
  const gap = `\n[… ${lost} of ${total} bytes left out …]\n`;
  return `${cleanEnd(head)}${gap}${cleanStart(tail)}`;
}

const cleanEnd = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });

/** At most three bytes can remain of a character that was cut. */
function cleanStart(bytes: Uint8Array): string {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return Buffer.from(bytes.subarray(start)).toString("utf8");
}
