import type { BeforeCall } from "../core/hooks.ts";
import { clipped } from "../core/text/short-lists.ts";
import { inertJson } from "../core/text/visible.ts";
import type { ToolCall } from "../core/messages.ts";
import type { InvalidCall, PreparedCall, ToolResult } from "../core/tool.ts";
import type { Judged } from "./action-judge.ts";
import type { AgentContext } from "./agent-context.ts";
import { bounded } from "./call-result.ts";

/** A call after the hooks and before the policy. */
export interface HookedCall {
  readonly call: ToolCall;
  readonly prepared: PreparedCall;
  /** Who gave these arguments, in words, if they are not the model's. */
  readonly by?: string;
  /** The model's command, if a person replaced it with this one. */
  readonly replaces?: string | undefined;
  readonly veto?: Veto;
}

export interface Veto {
  readonly reason: string;
  /** Vetoed by the user's own hook, not by the project's hook or a broken one. */
  readonly byUser: boolean;
}

/** Parses arguments replaced by hooks like the model's own; if they do not fit the tool, nothing runs. */
export async function beforeCall(
  agent: AgentContext,
  given: Omit<HookedCall, "veto">,
  prepare: (call: ToolCall) => PreparedCall | InvalidCall,
  signal: AbortSignal,
): Promise<HookedCall> {
  const { call, prepared } = given;
  const said: BeforeCall = await agent.hooks.before(call, { emit: agent.emit, signal });
  if (said.kind === "vetoed") {
    const { by, reason, owner } = said;
    return { call, prepared, veto: { reason: `the hook ${by}: ${reason}`, byUser: owner === "user" } };
  }
  if (said.by === undefined) return given;
  const changed = { ...call, args: said.args };
  const again = prepare(changed);
  if (again.kind === "prepared")
    return { ...given, call: changed, prepared: again, by: `the hook ${said.by}` };
  const reason = `the hook ${said.by} gave arguments that do not fit: ${again.issues.join("; ")}`;
  return { call, prepared, veto: { reason, byUser: false } };
}

/** The verdict on a vetoed call: a refusal, whatever the policy says. */
export const judgedByHook = (judged: Judged, { reason }: Veto): Judged => ({
  ...judged,
  decision: "deny",
  contained: false,
  rules: [{ id: "hook", reason, span: [0, 0] }],
  grants: [],
});

/** Most characters of replaced arguments that the model is told. */
const MAX_TOLD = 600;

/** The result after the hooks. Replaced before it is stored for `show_full`: nothing keeps what a hook removed. */
export async function afterCall(
  agent: AgentContext,
  { call, prepared, by }: HookedCall,
  result: ToolResult,
  signal: AbortSignal,
): Promise<ToolResult> {
  const said =
    result.kind === "cancelled"
      ? undefined
      : await agent.hooks.after(call, result, { emit: agent.emit, signal });
  const noted = by === undefined ? "" : `\n[${by} replaced the arguments: ${argumentsText(call.args)}]`;
  const hooked = said === undefined && noted === "" ? {} : { hooked: true as const };
  const isKept = said === undefined || said === result.text;
  if (isKept && noted === "") return { ...(prepared.bounded ? result : bounded(agent, result)), ...hooked };
  const { full: _, ...kept } = result;
  const whole = isKept ? result : kept;
  return bounded(agent, { ...whole, ...hooked, text: `${said ?? result.text}${noted}` });
}

function argumentsText(args: ToolCall["args"]): string {
  const text = inertJson(args);
  return clipped(text, MAX_TOLD);
}
