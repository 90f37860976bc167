import { fits, headWithin, tailWithin } from "../core/bytes.ts";
import type { Decision } from "../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { EventBody } from "../core/events.ts";
import type { ToolCall } from "../core/messages.ts";
import type { Answer, Question } from "../core/ports.ts";
import type { EndedCall, Outputs } from "../core/session.ts";
import type { Facts, PreparedCall, ToolResult } from "../core/tool.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { hintFor } from "../policy/ruling.ts";
import type { Judged } from "./action-judge.ts";
import type { Seat } from "./agent-context.ts";
import { Stopped } from "./outcome.ts";

/**
 * A call whose input could be read: judged, then run, then bounded and told. Rejects only when the box is lost, and as
 * `Stopped` when it has to wait for a person.
 */
export async function runCall(
  seat: Seat,
  call: ToolCall,
  prepared: PreparedCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  const judge = await seat.judge();
  const { facts, run: work } = prepared.state();
  const judged = judge.judge(facts);
  const answer = await settle(seat, { call, facts, judged }, signal);
  seat.emit({ ...decided(call, judged, answer), judged: { ...facts, hosts: judged.hosts } });
  // The time that a person takes to answer is not the call's.
  const began = seat.now();
  const result = answer.runs
    ? await kept(seat, call, judged, () => run(seat, call, work, signal))
    : refusal(judged, answer);
  return ended(seat, { call, judged, result: bounded(seat, prepared, result), ms: seat.now() - began });
}

/** A call that is not run at all: no such tool, an input that cannot be read, a repetition. */
export function endUnrun(seat: Seat, call: ToolCall, result: ToolResult): ToolResult {
  return ended(seat, { call, judged: UNJUDGED, result, ms: 0 });
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
};

/** What the workspace was like before and after it is kept, unless it is known to change nothing there. */
function kept<T>(
  { checkpoints, limits }: Seat,
  { id }: ToolCall,
  { mayWrite, lasting }: Judged,
  work: () => Promise<T>,
): Promise<T> {
  return mayWrite ? checkpoints.around({ call: id, turn: limits.turns, lasting }, work) : work();
}

interface Doubtful {
  readonly call: ToolCall;
  readonly facts: Facts;
  readonly judged: Judged;
}

async function settle(seat: Seat, doubtful: Doubtful, signal: AbortSignal): Promise<Settled> {
  const { decision } = doubtful.judged;
  if (decision === "deny") return { runs: false, by: "policy", reason: "" };
  const question = questionOf(seat, doubtful);
  if (seat.approver.refuses?.(question) === true) return { runs: false, by: "person", reason: "" };
  if (decision === "allow") return { runs: true, by: "policy", reason: "" };
  const answer = await seat.approver.ask(question, signal);
  if (answer !== "waits") return answer;
  const { call, tool, text, folder, mode } = question;
  const { contained, rules } = doubtful.judged;
  const where = folder === undefined ? {} : { folder };
  seat.emit({ type: "call.parked", call, tool, text, ...where, mode, contained, rules });
  throw new Stopped(question);
}

const questionOf = (seat: Seat, { call, facts: { folder }, judged }: Doubtful): Question => ({
  call: call.id,
  tool: call.name,
  args: call.args,
  text: judged.target,
  ...(folder === undefined ? {} : { folder }),
  decision: { decision: judged.decision, contained: judged.contained, rules: judged.rules },
  mode: seat.mode,
  writes: judged.changes,
});

type Settled = Omit<Answer, "by"> & { readonly by: Answer["by"] | "policy" };

const decided = (
  { id }: ToolCall,
  { decision, contained, rules }: Decision,
  { runs, by }: Settled,
): Extract<EventBody, { readonly type: "call.decided" }> => ({
  type: "call.decided",
  call: id,
  decision,
  contained,
  rules,
  runs,
  by,
});

/** Whatever a tool does wrong is its result; only the loss of the box goes further. */
async function run(
  seat: Seat,
  { name }: ToolCall,
  work: ReturnType<PreparedCall["state"]>["run"],
  signal: AbortSignal,
): Promise<ToolResult> {
  if (signal.aborted) return CANCELLED;
  try {
    return await work(seat.box, signal);
  } catch (thrown) {
    if (signal.aborted) return CANCELLED;
    if (thrown instanceof Stopped) throw thrown;
    if (thrown instanceof HarnessError && thrown.exit === EXIT.sandbox) throw thrown;
    return { kind: "failed", cause: "program", text: `${name} broke: ${reasonOf(thrown)}` };
  }
}

const CANCELLED: ToolResult = { kind: "cancelled", cause: "user", text: "Cancelled." };

function refusal({ rules }: Judged, { by, reason }: Settled): ToolResult {
  const [rule] = rules;
  const why = rule === undefined ? "" : `${rule.reason} (rule ${rule.id})`;
  const who = by === "policy" ? "Denied by the policy" : by === "person" ? "The user said no" : "Refused";
  const hint = rule && hintFor(rule.id);
  const text = [
    `${who}: ${[reason, why].filter(Boolean).join(": ")}. It was not run.`,
    hint === undefined ? "" : `What would do: ${hint}.`,
  ];
  return {
    kind: "denied",
    cause: by === "person" ? "user" : "policy",
    text: text.filter(Boolean).join("\n"),
    reason: rule?.reason ?? reason,
  };
}

function bounded(seat: Seat, prepared: PreparedCall, result: ToolResult): ToolResult {
  if (prepared.bounded) return result;
  return { ...result, ...bound(seat.clean(result.text), seat.outputs) };
}

interface Ending {
  readonly call: ToolCall;
  readonly judged: Judged;
  readonly result: ToolResult;
  readonly ms: number;
}

function ended(seat: Seat, { call, judged, result, ms }: Ending): ToolResult {
  const { kind, text, full = null, exitCode } = result;
  const cause = "cause" in result ? result.cause : null;
  const exit = exitCode === undefined ? {} : { exit_code: exitCode };
  const why = visibleLine(seat.clean(reasonIn(result)));
  const reason = why === "" ? {} : { reason: why };
  seat.emit({ type: "call.ended", call: call.id, kind, cause, text, full, ms, ...exit, ...reason });
  seat.ended.push(accountOf(call, judged, result));
  return result;
}

/** Why it did not end well; empty where it did, or its exit code is all that is known. */
function reasonIn(result: ToolResult): string {
  if (result.kind === "ok") return "";
  const {
    text,
    reason = result.kind === "invalid" ? result.issues.join("; ") : firstLine(text.trimStart()),
  } = result;
  return reason.toWellFormed();
}

/** A block that a running command meets is told on its result, and is no refusal. */
function accountOf(call: ToolCall, judged: Judged, { kind, text }: ToolResult): EndedCall {
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
    reason: denied ? (rule?.reason ?? "") : firstLine(text),
    changes: kind === "ok" && changes,
  };
}

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";

/** Bytes of one result that go to the model. */
export const MOST_BYTES = 30_000;
/** For the line that says what is left out. */
const MARKER = 200;
const HEAD = Math.floor(((MOST_BYTES - MARKER) * 2) / 3);
const TAIL = MOST_BYTES - MARKER - HEAD;

interface Bounded {
  readonly text: string;
  /** Under which the whole is kept, when the text is not all of it. */
  readonly full?: string;
}

/** What of a result goes to the model: its head and tail, with every control shown; the whole is kept for `show_full`. */
export function bound(given: string, outputs: Outputs): Bounded {
  const text = visible(given.toWellFormed());
  if (fits(text, MOST_BYTES)) return { text };
  const head = headLines(headWithin(text, HEAD));
  const tail = tailLines(tailWithin(text, TAIL));
  const full = outputs.keep(text);
  const left = text.length - head.length - tail.length;
  const more = `show_full ${JSON.stringify({ id: full, offset: head.length })} goes on from here`;
  const marker = `[… ${counted(left)} of ${counted(text.length)} characters left out; ${more} …]`;
  return { text: `${head}${head.endsWith("\n") ? "" : "\n"}${marker}\n${tail}`, full };
}

const counted = (count: number): string => count.toLocaleString("en-US");

/** Whole lines, where they are more than half of it. */
function headLines(head: string): string {
  const end = head.lastIndexOf("\n") + 1;
  return end > head.length / 2 ? head.slice(0, end) : head;
}

function tailLines(tail: string): string {
  const start = tail.indexOf("\n") + 1;
  return start < tail.length / 2 ? tail.slice(start) : tail;
}
