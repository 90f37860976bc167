import type { BeforeCall } from "../core/hooks.ts";
import { inertJson } from "../core/text/visible.ts";
import type { ToolCall } from "../core/messages.ts";
import type { InvalidCall, PreparedCall, ToolResult } from "../core/tool.ts";
import type { Judged } from "./action-judge.ts";
import type { AgentContext } from "./agent-context.ts";
import { bounded } from "./call-result.ts";

/** A call as the hooks have left it: nothing has judged it yet. */
export interface HookedCall {
  readonly call: ToolCall;
  readonly prepared: PreparedCall;
  /** Who gave these arguments, in words, where they are not the model's. */
  readonly by?: string;
  /** The command of the model, where a person wanted this one in its place. */
  readonly replaces?: string | undefined;
  readonly veto?: Veto;
}

export interface Veto {
  readonly reason: string;
  /** The user's own hook, and not one of the project or one that is broken. */
  readonly byUser: boolean;
}

/** Replaced arguments are read as the model's are; where they do not fit the tool nothing is run. */
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

/** As it is listed and told: a refusal, whatever the policy would have said of it. */
export const judgedByHook = (judged: Judged, { reason }: Veto): Judged => ({
  ...judged,
  decision: "deny",
  contained: false,
  rules: [{ id: "hook", reason, span: [0, 0] }],
  grants: [],
});

/** Of replaced arguments, as much is told to the model. */
const MAX_TOLD = 600;

/**
 * What the model is told in the end. What a hook has taken out is kept nowhere: the text is replaced before any of it is
 * put aside for `show_full`.
 */
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
  const noted = by === undefined ? "" : `\n[${by} replaced the arguments: ${told(call.args)}]`;
  const hooked = said === undefined && noted === "" ? {} : { hooked: true as const };
  const isKept = said === undefined || said === result.text;
  if (isKept && noted === "") return { ...(prepared.bounded ? result : bounded(agent, result)), ...hooked };
  const { full: _, ...kept } = result;
  const whole = isKept ? result : kept;
  return bounded(agent, { ...whole, ...hooked, text: `${said ?? result.text}${noted}` });
}

function told(args: ToolCall["args"]): string {
  const text = inertJson(args);
  return text.length <= MAX_TOLD ? text : `${text.slice(0, MAX_TOLD)}…`;
}
