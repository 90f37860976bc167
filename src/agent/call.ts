import type { Decision } from "../core/decision.ts";
import { type Cause, cutOffBy, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { EventBody } from "../core/events.ts";
import { lastName } from "../core/file-names.ts";
import type { ToolCall } from "../core/model-provider.ts";
import type { Answer, Question } from "../core/ports.ts";
import { type Facts, type InvalidCall, notRun, type PreparedCall, type ToolResult } from "../core/tool.ts";
import { stepFor } from "../policy/refusal-hints.ts";
import type { Judged } from "./action-judge.ts";
import type { AgentContext } from "./agent-context.ts";
import {
  afterCall,
  beforeCall,
  endCall,
  endUnrun,
  type HookedCall,
  judgedByHook,
  prepareCall,
  type Veto,
} from "./call-result.ts";
import { oneLine } from "./context/prompt-text.ts";
import { type LoopEnd, WaitsForPerson } from "./ending/outcome.ts";

/** A call and its parsed input. All calls of a reply are read before the first runs, so that readers run together. */
export interface ReadCall {
  readonly call: ToolCall;
  readonly prepared: PreparedCall | InvalidCall;
  readonly concurrent: boolean;
}

export function readCall(agent: Pick<AgentContext, "tools">, call: ToolCall): ReadCall {
  const prepared = prepareCall(agent, call);
  return { call, prepared, concurrent: prepared.kind === "prepared" && prepared.concurrent };
}

/** Most calls that run side by side. */
const MAX_CONCURRENT = 8;

/** Splits a reply's calls into waves, in order: neighbouring concurrent calls together, every other call alone. */
export function waves<Call extends { readonly concurrent: boolean }>(
  calls: readonly Call[],
): readonly (readonly Call[])[] {
  const all: Call[][] = [];
  for (const call of calls) {
    const last = all.at(-1);
    if (call.concurrent && last?.at(-1)?.concurrent === true && last.length < MAX_CONCURRENT) last.push(call);
    else all.push([call]);
  }
  return all;
}

/**
 * Ends a round that was cancelled, or in which a call was repeated too often. Calls that will not run any more also get
 * their end event. `made`: how many calls had ended before this round.
 */
export function endUnfinished(
  agent: AgentContext,
  calls: readonly ToolCall[],
  made: number,
  signal: AbortSignal,
): Extract<LoopEnd, { readonly how: "cancelled" | "repeated" }> {
  const done = new Set(agent.ended.slice(made).map(({ call }) => call));
  for (const call of calls)
    if (!done.has(call.id)) endUnrun(agent, call, signal.aborted ? cutOff(signal) : notRun(STOPPED));
  return { how: signal.aborted ? "cancelled" : "repeated" };
}

const STOPPED = "Not run: the same calls were repeated over and over, and the run ends with that.";

/** Runs one call to its end, unless it waits for a person, or the model repeats itself: "stop". */
export async function runCall(
  agent: AgentContext,
  read: ReadCall,
  signal: AbortSignal,
): Promise<ToolResult | WaitsForPerson | "stop"> {
  const { call } = read;
  const guarded = agent.guard.check(call, agent.limits.turns);
  if (guarded === "stop") return "stop";
  if (guarded !== "run") agent.next.repeated(call.name);
  const result =
    guarded === "run"
      ? await runWithinLimits(agent, read, signal)
      : endUnrun(agent, call, notRun(guarded.broken));
  if (result instanceof WaitsForPerson) return result;
  agent.guard.ended(call, result.text);
  return result;
}

async function runWithinLimits(
  agent: AgentContext,
  { call, prepared }: ReadCall,
  signal: AbortSignal,
): Promise<ToolResult | WaitsForPerson> {
  if (prepared.kind === "invalid") return endUnrun(agent, call, invalid(call, prepared.issues));
  const spent = agent.limits.reached("call");
  if (spent !== undefined)
    return endUnrun(agent, call, { kind: "failed", cause: "policy", text: `Not run. ${spent.text}` });
  agent.limits.call();
  try {
    return await judgeAndRun(agent, { call, prepared }, signal);
  } catch (thrown) {
    if (!(thrown instanceof WaitsForPerson)) throw thrown;
    agent.limits.uncall();
    return thrown;
  }
}

const invalid = ({ name }: ToolCall, issues: readonly string[]): ToolResult => ({
  kind: "invalid",
  issues,
  text: `${name} was not run, its arguments are wrong:\n${issues.map((issue) => `- ${issue}`).join("\n")}\nCall it again with these mended.`,
});

/**
 * Handles a valid call: hooks may change or veto it, the policy judges it, it runs, hooks see the result, and its end
 * is emitted. Rejects only when the box is lost, and with `WaitsForPerson` when the call has to wait for one; the hooks
 * run again when it is resumed.
 */
async function judgeAndRun(
  agent: AgentContext,
  proposed: Omit<HookedCall, "veto">,
  signal: AbortSignal,
): Promise<ToolResult> {
  const judge = await agent.judge();
  const hooked = await beforeCall(agent, proposed, signal);
  const { call, veto } = hooked;
  if (veto !== undefined && signal.aborted) return endUnrun(agent, call, cutOff(signal));
  const { facts, run: work, shown } = hooked.prepared.state();
  const byPolicy = judge.judge(facts, call.name);
  const judged = veto === undefined ? byPolicy : judgedByHook(byPolicy, veto);
  if (isQuestioned(agent, judged)) return endUnrun(agent, call, QUESTIONED);
  if (agent.next.isReversal(call.args)) return endUnrun(agent, call, notRun(TAKEN_BACK));
  if (agent.next.isBlind(call)) return endUnrun(agent, call, notRun(BLIND));
  const { replaces } = proposed;
  const judgedCall = { call, facts, judged, shown, replaces };
  const answer = veto === undefined ? await answerFor(agent, judgedCall, signal) : VETOED;
  if (answer.edited !== undefined) return editedCall(agent, { call, replaces }, answer.edited, signal);
  agent.emit({ ...decidedEvent(call, judged, answer), judged: { ...facts, hosts: judged.hosts } });
  // The time that a person takes to answer does not count.
  const began = agent.now();
  const result = answer.runs
    ? await runJudged(agent, { call, work, judged, writes: facts.writes }, answer, signal)
    : withFileOfSameName(refusal(judged, answer, veto), agent.next.choices, call, judged);
  const ms = agent.now() - began;
  return endCall(agent, { call, judged, result: await afterCall(agent, hooked, result, signal), ms });
}

/** A command that a person substituted is treated like any call: hooks, policy, and a question if needed. */
function editedCall(
  agent: AgentContext,
  { call: proposed, replaces = String(proposed.args["command"]) }: Pick<HookedCall, "call" | "replaces">,
  command: string,
  signal: AbortSignal,
): Promise<ToolResult> | ToolResult {
  const call = { ...proposed, args: { ...proposed.args, command } };
  const prepared = prepareCall(agent, call);
  if (prepared.kind === "invalid") return endUnrun(agent, call, invalid(call, prepared.issues));
  agent.emit({ type: "call.edited", call: call.id, args: call.args });
  return judgeAndRun(agent, { call, prepared, by: "the user", replaces }, signal);
}

/** If only an answer was requested, a write is turned back once. Refusals by verdict or mode explain themselves. */
function isQuestioned(
  { intent, mode, limits, emit, checkpoints }: AgentContext,
  { changes, decision }: Judged,
): boolean {
  if (!changes || decision === "deny" || mode === "read-only") return false;
  const next = intent.write(limits.turns);
  if (next === "escalated") {
    emit({ type: "intent", intent: "change", by: "escalated" });
    checkpoints.prepare();
  }
  return next === "questioned";
}

const QUESTIONED_TEXT =
  "Not run: this was a question about the repository, and an answer may be all that is wanted. If a change is wanted, say so and make the call again.";
const QUESTIONED = notRun(QUESTIONED_TEXT);

const TAKEN_BACK =
  "Not run: this would only take back your last edit, and leave the file as it was. That edit stands. If it is right, go on or give your final answer; if it was wrong, make another one, or this one again.";

const BLIND =
  "Not run: you read this file in the same reply, so you had not seen what it says when you wrote this. Look at it above, then make the call again with all that is to stay in it, or call edit_file for the part that changes.";

interface JudgedCall {
  readonly call: ToolCall;
  readonly facts: Facts;
  readonly judged: Judged;
  readonly shown?: (() => string) | undefined;
  readonly replaces: string | undefined;
}

async function answerFor(
  agent: AgentContext,
  judgedCall: JudgedCall,
  signal: AbortSignal,
): Promise<CallAnswer> {
  const { decision } = judgedCall.judged;
  if (decision === "deny") return { runs: false, by: "policy", reason: "" };
  const question = questionOf(agent, judgedCall);
  const refused = agent.approver.refuses?.(question);
  if (refused !== undefined) return refused;
  if (decision === "allow") return { runs: true, by: "policy", reason: "" };
  const answer = await agent.approver.ask(question, signal);
  if (answer !== "waits") return answer;
  const { call, tool, text, folder, mode, grants } = question;
  const { contained, rules } = judgedCall.judged;
  const waits = {
    type: "call.parked",
    call,
    tool,
    text,
    ...(folder === undefined ? {} : { folder }),
    mode,
    contained,
    rules,
    ...(grants === undefined ? {} : { grants }),
  } as const;
  agent.onceParked.push(() => agent.emit(waits));
  throw new WaitsForPerson(question);
}

function questionOf(agent: AgentContext, { call, facts, judged, shown, replaces }: JudgedCall): Question {
  const { folder, hosts, services = [], program } = facts;
  // The name of a host or tool does not show what is sent there.
  const isOpaque = program !== undefined || hosts.length + services.length > 0;
  const whole =
    judged.decision !== "ask" ? undefined : isOpaque ? JSON.stringify(call.args, null, 2) : shown?.();
  return {
    call: call.id,
    tool: call.name,
    args: call.args,
    text: judged.target,
    ...(whole === undefined ? {} : { shown: whole }),
    ...(judged.effects.length === 0 ? {} : { effects: judged.effects }),
    ...(folder === undefined ? {} : { folder }),
    decision: { decision: judged.decision, contained: judged.contained, rules: judged.rules },
    ...(judged.asks.length === 0 ? {} : { asks: judged.asks }),
    mode: agent.mode,
    writes: judged.changes,
    ...(replaces === undefined ? {} : { replaces }),
    ...(judged.grants.length === 0 ? {} : { grants: judged.grants }),
    ...(judged.network === undefined ? {} : { network: judged.network.text }),
  };
}

type CallAnswer = Omit<Answer, "by"> & { readonly by: Answer["by"] | "policy" | "hook" };

const VETOED: CallAnswer = { runs: false, by: "hook", reason: "" };

const decidedEvent = (
  { id }: ToolCall,
  { decision, contained, rules }: Decision,
  { runs, by, grant, word }: CallAnswer,
): Extract<EventBody, { readonly type: "call.decided" }> => ({
  type: "call.decided",
  call: id,
  decision,
  contained,
  rules,
  runs,
  by,
  ...(grant === undefined ? {} : { grant }),
  ...(word === undefined ? {} : { told: word }),
});

/**
 * Runs the call with its grant, after earlier calls that write to the same paths, and between checkpoints unless it is
 * known to write nothing in the workspace.
 */
function runJudged(
  agent: AgentContext,
  running: RunningCall,
  answer: CallAnswer,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { call, writes, judged } = running;
  const { checkpoints, limits } = agent;
  const inOrder = () => agent.writes.inOrder(writes, () => run(agent, running, signal));
  const work = () => runWithGrant(agent, answer, signal, inOrder);
  if (!judged.mayWrite) return work();
  return checkpoints.around({ call: call.id, turn: limits.turns, lasting: judged.lasting }, work, signal);
}

/** Runs the call with the grant it was given; a grant for this call alone ends with it. */
async function runWithGrant(
  agent: AgentContext,
  { grant }: CallAnswer,
  signal: AbortSignal,
  work: () => Promise<ToolResult>,
): Promise<ToolResult> {
  if (grant === undefined) return work();
  let withdraw: () => void;
  try {
    withdraw = await agent.grant(grant, signal);
  } catch (thrown) {
    const why = `${grant.domains.join(", ")} could not be granted: ${reasonOf(thrown)}`;
    return { kind: "failed", cause: "network", text: `It was not run: ${why}`, reason: why };
  }
  try {
    return await work();
  } finally {
    if (grant.for === "call") withdraw();
  }
}

interface RunningCall {
  readonly call: ToolCall;
  readonly writes: Facts["writes"];
  readonly work: ReturnType<PreparedCall["state"]>["run"];
  readonly judged: Judged;
}

/** A failure of the tool becomes its result. Only the loss of the box is thrown, if no new box replaces it. */
async function run(
  agent: AgentContext,
  { call: { name }, work, judged: { mayWrite } }: RunningCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (signal.aborted) return cutOff(signal);
  const { box, recovery } = agent;
  try {
    const result = await work(box, signal);
    if (result.kind === "cancelled" && signal.aborted) return { ...result, ...cutOffBy(signal) };
    if (mayWrite) await recovery?.bringHome();
    const loss = recovery?.untoldLoss();
    return loss === undefined ? result : { ...result, text: `${result.text}\n\n${newBoxText(loss)}` };
  } catch (thrown) {
    if (signal.aborted) return cutOff(signal);
    if (thrown instanceof WaitsForPerson) throw thrown;
    const lost = await recovery?.replacedAfter(thrown);
    if (lost !== undefined) return lostCall(name, lost);
    if (thrown instanceof HarnessError && thrown.exit === EXIT.sandbox) throw thrown;
    return { kind: "failed", cause: "program", text: `${name} failed: ${reasonOf(thrown)}` };
  }
}

const ITS_STATE =
  "Files are as the calls before left them; background jobs and what was outside of the workspace are gone.";

const newBoxText = (why: string): string =>
  `[The box was lost before this call (${why}). This is a new one. ${ITS_STATE}]`;

/** The call is not repeated automatically: some of its work may have reached beyond the box. */
const lostCall = (name: string, why: string): ToolResult => ({
  kind: "failed",
  cause: /\bout of memory\b/.test(why) ? "memory" : "program",
  text: `${name} did not finish: its box was lost (${why}), and a new one has taken its place. ${ITS_STATE} What this call had changed is lost. Look at what is there before you run it again.`,
  reason: `the box was lost: ${why}`,
});

/** The result of a call that is not run, or not waited for. */
export const cutOff = (signal: AbortSignal): ToolResult => ({
  kind: "cancelled",
  text: "Cancelled.",
  ...cutOffBy(signal),
});

const REFUSED_BY: Readonly<Record<CallAnswer["by"], string>> = {
  policy: "Denied by the policy",
  person: "The user said no",
  hook: "Refused by a hook",
  mode: "Refused",
  contained: "Refused",
  nobody: "Refused",
};

/** Added to the reason when the network was needed: later readers see neither the model's text nor the rules. */
function nextStep(rule: string | undefined, option: string, hint: string | undefined): string {
  if (option !== "") return `; grant it with ${option}`;
  const isNetwork = rule === "network" || rule === "install" || hint?.includes("--allow-domain") === true;
  return hint !== undefined && isNetwork ? `; what would help: ${hint}` : "";
}

/** No grant lifts a denial. */
const hintOf = ({ rules: [rule], contained, decision, network }: Judged): string | undefined =>
  rule && stepFor(rule.id, contained, decision === "deny" ? undefined : network);

const causeOf = (by: CallAnswer["by"]): Cause => (by === "person" ? "user" : "policy");

/** Small models write absolute paths and leave out a folder: what they mean is a file whose name occurs once. */
function withFileOfSameName(
  refused: ToolResult,
  files: readonly string[],
  { args: { path } }: ToolCall,
  { rules: [rule] }: Judged,
): ToolResult {
  if (rule?.id !== "path.outside" || typeof path !== "string") return refused;
  const [meant, ...more] = files.filter((file) => lastName(file) === lastName(path));
  if (meant === undefined || more.length > 0) return refused;
  return { ...refused, text: `${refused.text}\nThe workspace has ${oneLine(meant)}: give that as the path.` };
}

function refusal(judged: Judged, { by, reason, word }: CallAnswer, veto: Veto | undefined): ToolResult {
  const { rules, grants } = judged;
  const [rule] = rules;
  const why = rule === undefined ? "" : `${rule.reason}${by === "hook" ? "" : ` (rule ${rule.id})`}`;
  const option = by === "nobody" && grants.length > 0 ? `--allow-domain ${grants.join(",")}` : "";
  const hint = option === "" ? hintOf(judged) : `the user runs it again with ${option}`;
  const text = [
    `${REFUSED_BY[by]}: ${[reason, why].filter(Boolean).join(": ")}. It was not run.`,
    word === undefined ? "" : `The user's reason: ${word}`,
    hint === undefined ? "" : `What would help: ${hint}.`,
  ];
  return {
    kind: "denied",
    cause: veto === undefined ? causeOf(by) : veto.byUser ? "user" : "program",
    text: text.filter(Boolean).join("\n"),
    reason: `${rule?.reason ?? reason}${nextStep(rule?.id, option, hint)}`,
  };
}
