import type { Judge } from "../../agent/judge.ts";
import { Memory } from "../../agent/memory.ts";
import type { Mode } from "../../core/decision.ts";
import type { ResultKind } from "../../core/events.ts";
import type { Box } from "../../core/ports.ts";
import type { AnyTool, ToolResult } from "../../core/tool.ts";
import { visible } from "../../core/visible.ts";
import { bashTool } from "../../tools/bash.ts";
import type { Desk } from "../../tools/desk.ts";
import { runsUnattended } from "../policy/unattended.ts";
import { type FirstDifference, firstDifference } from "./differ.ts";
import type { PastCommand } from "./past.ts";

export interface Rerun {
  readonly call: string;
  readonly command: string;
  readonly outcome: "same" | "differs" | "not run";
  readonly then: Ended | null;
  readonly now: Ended | null;
  readonly difference: FirstDifference | null;
  /** Why it was not run; empty when it was. */
  readonly reason: string;
}

interface Ended {
  readonly kind: ResultKind;
  readonly exit_code: number | null;
}

export interface RerunParts {
  readonly box: Box;
  readonly judge: Judge;
  readonly mode: Mode;
  readonly desk: Pick<Desk, "workspace" | "outputs" | "notes" | "timeoutMs">;
}

/** One after the other, through the same tool: each agent has a shell of its own, as it had then. */
export async function* rerun(
  commands: readonly PastCommand[],
  parts: RerunParts,
  signal: AbortSignal,
): AsyncGenerator<Rerun> {
  const shells = new Map<string | null, AnyTool>();
  for (const past of commands) {
    signal.throwIfAborted();
    const tool = shells.get(past.agent) ?? shellOver(parts.desk);
    shells.set(past.agent, tool);
    const made = notRunnable(past) ?? (await again(tool, past, parts, signal));
    signal.throwIfAborted();
    yield typeof made === "string" ? notRun(past, made) : compared(past, made);
  }
}

function shellOver(desk: RerunParts["desk"]): AnyTool {
  const { seen, shell, name: agent } = new Memory(desk.workspace, [], () => undefined);
  return bashTool({ ...desk, agent, seen, shell });
}

function notRunnable({ ran, args, then }: PastCommand): string | undefined {
  if (!ran) return "it was refused then";
  if (args["background"] === true) return "a background job has no result of its own";
  return then === null ? "it came to no end then" : undefined;
}

/** Its result, or why it was not run. */
async function again(
  tool: AnyTool,
  { args }: PastCommand,
  { box, judge, mode }: RerunParts,
  signal: AbortSignal,
): Promise<ToolResult | string> {
  const prepared = tool.prepare(args);
  if (prepared.kind === "invalid") return prepared.issues.join("; ");
  const judged = judge.judge(prepared.facts());
  if (!runsUnattended(judged, mode)) return `refused now: ${judged.rules[0]?.reason ?? judged.decision}`;
  return prepared.run(() => Promise.resolve(box), signal);
}

const notRun = ({ call, command, then }: PastCommand, reason: string): Rerun => ({
  call,
  command,
  outcome: "not run",
  then: then === null ? null : ended(then),
  now: null,
  difference: null,
  reason,
});

function compared({ call, command, then }: PastCommand, result: ToolResult): Rerun {
  const now: Ended = { kind: result.kind, exit_code: result.exitCode ?? null };
  const difference = firstDifference(then?.text ?? "", visible(result.text.toWellFormed())) ?? null;
  const same = difference === null && then?.kind === now.kind && then.exit_code === now.exit_code;
  const before = then === null ? null : ended(then);
  return { call, command, outcome: same ? "same" : "differs", then: before, now, difference, reason: "" };
}

const ended = ({ kind, exit_code }: Ended): Ended => ({ kind, exit_code });
