/** What happens around a call: hooks may change or veto it, and its result is cut, recorded and counted. */

import type { ToolCall } from "../core/model-provider.ts";
import { fits, headWithin, tailWithin } from "../core/raw-data.ts";
import type { EndedCall, Outputs } from "../core/session.ts";
import type { BeforeCall, InvalidCall, PreparedCall, ToolResult } from "../core/tool.ts";
import { inertJson, visible, visibleLine } from "../core/visible.ts";
import { truncate, formatCount, nearest } from "../core/wording.ts";
import type { Judged } from "./action-judge.ts";
import type { AgentContext } from "./agent-context.ts";
import { isIdle } from "./ending/deeds.ts";
import type { NextReply } from "./next-reply.ts";

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

/** The call with its parsed arguments, or what is wrong with them. */
export function prepareCall(
  agent: Pick<AgentContext, "tools">,
  { name, args }: ToolCall,
): PreparedCall | InvalidCall {
  const tool = agent.tools.find((each) => each.name === name);
  if (tool !== undefined) return tool.prepare(args);
  const names = agent.tools.map((each) => each.name);
  const near = nearest(name, names);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  const issue = `there is no tool ${JSON.stringify(name)}; there are: ${names.join(", ")}${hint}`;
  return { kind: "invalid", issues: [issue] };
}

/** Parses arguments replaced by hooks like the model's own; if they do not fit the tool, nothing runs. */
export async function beforeCall(
  agent: AgentContext,
  hooked: Omit<HookedCall, "veto">,
  signal: AbortSignal,
): Promise<HookedCall> {
  const { call, prepared } = hooked;
  const verdict: BeforeCall = await agent.hooks.before(call, { emit: agent.emit, signal });
  if (verdict.kind === "vetoed") {
    const { by, reason, owner } = verdict;
    return { call, prepared, veto: { reason: `the hook ${by}: ${reason}`, byUser: owner === "user" } };
  }
  if (verdict.by === undefined) return hooked;
  const changed = { ...call, args: verdict.args };
  const again = prepareCall(agent, changed);
  if (again.kind === "prepared")
    return { ...hooked, call: changed, prepared: again, by: `the hook ${verdict.by}` };
  const reason = `the hook ${verdict.by} gave arguments that do not fit: ${again.issues.join("; ")}`;
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
  const replaced = await agent.hooks.after(call, result, { emit: agent.emit, signal });
  const noted =
    by === undefined ? "" : `\n[${by} replaced the arguments: ${truncate(inertJson(call.args), MAX_TOLD)}]`;
  const hooked = replaced === undefined && noted === "" ? {} : { hooked: true as const };
  const isKept = replaced === undefined || replaced === result.text;
  if (isKept && noted === "")
    return { ...(prepared.bounded ? result : boundResult(agent, result)), ...hooked };
  const { full: _, ...kept } = result;
  const whole = isKept ? result : kept;
  return boundResult(agent, { ...whole, ...hooked, text: `${replaced ?? result.text}${noted}` });
}

interface CallEnd {
  readonly call: ToolCall;
  readonly judged: Judged;
  readonly result: ToolResult;
  readonly ms: number;
}

/** Emits the end of a call and adds it to the account of the run. */
export function endCall(agent: AgentContext, { call, judged, result, ms }: CallEnd): ToolResult {
  const { kind, text, full = null, exitCode, peak } = result;
  const cause = "cause" in result ? result.cause : null;
  const exit = exitCode === undefined ? {} : { exit_code: exitCode };
  const why = visibleLine(agent.clean(reasonIn(result)));
  const reason = why === "" ? {} : { reason: why };
  const most = peak === undefined ? {} : { peak };
  agent.emit({ type: "call.ended", call: call.id, kind, cause, text, full, ms, ...exit, ...most, ...reason });
  if (result.missed !== undefined)
    agent.emit({ type: "call.missed", call: call.id, tool: call.name, kind: result.missed, nearest: [] });
  const account = accountOf(call, judged, result);
  agent.ended.push(account);
  agent.deeds.take(account, exitCode, text);
  recordForNextReply(agent.next, call, { result, changes: account.changes });
  return result;
}

/** Records what the model now sees of files, for its next reply. */
function recordForNextReply(
  next: NextReply,
  call: ToolCall,
  { result, changes }: { readonly result: ToolResult; readonly changes: boolean },
): void {
  const path = pathOf(call);
  if (call.name === "edit_file" && result.kind === "failed") next.editFailed(call.args);
  if (call.name === "read_file" && result.kind === "ok" && path !== undefined) next.reads(path);
  if (changes && path !== undefined && result.hooked !== true) next.wrote(path, call.args);
  else if (changes) next.changed(path);
  else if (path !== undefined && isSpentRead(call, result)) next.shown(path, result.text);
}

/** The whole file was shown, or it cannot be read: reading it again shows nothing more. */
const isSpentRead = ({ name, args }: ToolCall, { kind, text }: ToolResult): boolean =>
  name === "read_file" &&
  Object.keys(args).join() === "path" &&
  (kind === "failed" || (kind === "ok" && /\[(?:all \d+ lines|1 line|.*; not shown)\]$/.test(text)));

/** The file that a tool reads or writes; undefined for a command, and for several files at once. */
const pathOf = ({ args }: ToolCall): string | undefined =>
  typeof args["path"] === "string" ? args["path"] : undefined;

/** Why the call did not end well. Empty when it did, or when only the exit code is known. */
function reasonIn(result: ToolResult): string {
  if (result.kind === "ok") return "";
  const {
    text,
    reason = result.kind === "invalid" ? result.issues.join("; ") : firstLine(text.trimStart()),
  } = result;
  return reason.toWellFormed();
}

/** When a running command is blocked, its result says so; this is not counted as a refusal. */
function accountOf(call: ToolCall, judged: Judged, result: ToolResult): EndedCall {
  const { kind, text } = result;
  const { decision, target, rules, changes, command } = judged;
  const [rule] = rules;
  const denied = kind === "denied";
  return {
    call: call.id,
    tool: call.name,
    target,
    kind,
    refused: denied || (kind === "blocked" && !command),
    decision: denied ? decision : kind === "blocked" ? "deny" : decision,
    rule: denied ? (rule?.id ?? "none") : "walls",
    // Includes the grant that would let it run, if there is one.
    reason: denied ? (result.reason?.toWellFormed() ?? rule?.reason ?? "") : firstLine(text),
    changes: changes && hasChanged(result),
    ...(isIdle(call.name, call.args) ? { idle: true } : {}),
  };
}

const hasChanged = ({ kind, unchanged }: ToolResult): boolean => kind === "ok" && unchanged !== true;

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";

/** Ends a call that is not run at all: an unknown tool, an unreadable input, or a repetition. */
export function endUnrun(agent: AgentContext, call: ToolCall, result: ToolResult): ToolResult {
  return endCall(agent, { call, judged: UNJUDGED, result, ms: 0 });
}

const UNJUDGED: Judged = {
  decision: "allow",
  contained: true,
  rules: [],
  target: "",
  changes: false,
  mayWrite: false,
  lasting: false,
  command: false,
  hosts: [],
  grants: [],
  effects: [],
  asks: [],
};

/** The part of a result that the model and the user get to see. */
export function boundResult(agent: Pick<AgentContext, "clean" | "outputs">, result: ToolResult): ToolResult {
  return { ...result, ...cutToBounds(agent.clean(result.text), agent.outputs) };
}

/** Most bytes of one result that go to the model. */
export const MAX_BYTES = 30_000;
/** Room for the line that says what is left out. */
const MARKER_BYTES = 200;
const HEAD_BYTES = Math.floor(((MAX_BYTES - MARKER_BYTES) * 2) / 3);
const TAIL_BYTES = MAX_BYTES - MARKER_BYTES - HEAD_BYTES;

interface Bounded {
  readonly text: string;
  /** The id under which the whole text is kept, when `text` is not all of it. */
  readonly full?: string;
}

/** Cuts a result to head and tail for the model, with control characters visible; `show_full` has the whole. */
export function cutToBounds(output: string, outputs: Outputs): Bounded {
  const text = visible(output.toWellFormed());
  if (fits(text, MAX_BYTES)) return { text };
  const head = headLines(headWithin(text, HEAD_BYTES));
  const tail = tailLines(tailWithin(text, TAIL_BYTES));
  const full = outputs.keep(text);
  const left = text.length - head.length - tail.length;
  const more = `show_full ${JSON.stringify({ id: full, offset: head.length })} goes on from here`;
  const marker = `[… ${formatCount(left)} of ${formatCount(text.length)} characters left out; ${more} …]`;
  return { text: `${head}${head.endsWith("\n") ? "" : "\n"}${marker}\n${tail}`, full };
}

/** Cuts to whole lines when they make up more than half of the text. */
function headLines(head: string): string {
  const end = head.lastIndexOf("\n") + 1;
  return end > head.length / 2 ? head.slice(0, end) : head;
}

function tailLines(tail: string): string {
  const start = tail.indexOf("\n") + 1;
  return start < tail.length / 2 ? tail.slice(start) : tail;
}
