import { CanaryTouched, EXIT, HarnessError } from "../core/errors.ts";
import { repetitionIn, type Message, type ToolCall, withoutRepetition } from "../core/model-provider.ts";
import type { ToolResult } from "../core/tool.ts";
import type { AgentContext } from "./agent-context.ts";
import { endUnfinished, readCall, runCall, waves } from "./call.ts";
import { type LoopEnd, standingRefusal, WaitsForPerson, waitsFor } from "./ending/outcome.ts";
import { NOTICE } from "./context/history.ts";
import { ask, askAside, type ModelReply } from "./model-request.ts";
import type { Demand } from "./next-reply.ts";
import { askOutsideConversation } from "./small-models.ts";

/** What remains of a reply when its run is resumed; its open calls are in the history. */
type RestOfRound = Omit<Round, "calls">;

/**
 * Asks the model, runs its calls and shows it the results, until it answers or something ends the run. On cancellation
 * the history goes back to the start of the turn; what finished calls did to files stays. `left`: the rest of the last
 * reply, which is finished first.
 */
export async function runLoop(
  agent: AgentContext,
  signal: AbortSignal,
  left?: RestOfRound,
): Promise<LoopEnd> {
  const either = AbortSignal.any([signal, agent.noBox]);
  let next = left === undefined ? undefined : resumedTurn(agent, left, either);
  for (;;) {
    if (agent.pause?.aborted === true) return { how: "cancelled" };
    const { mark, run } = next ?? newTurn(agent, either);
    next = undefined;
    const end = await run().catch((thrown: unknown) => {
      if (!either.aborted) return boxLost(thrown);
      return undefined;
    });
    if (either.aborted) agent.rollBack(mark);
    if (signal.aborted) return { how: "cancelled" };
    if (agent.noBox.aborted) return boxLost(agent.noBox.reason);
    if (end !== undefined) return end;
  }
}

interface Turn {
  /** The history count to go back to when the turn is cancelled. */
  readonly mark: number;
  readonly run: () => Promise<LoopEnd | undefined>;
}

function newTurn(agent: AgentContext, signal: AbortSignal): Turn {
  const spent = agent.limits.reached("turn");
  const end =
    spent === undefined
      ? (taskWaits(agent) ?? endOfRepeatingCandidate(agent))
      : ({ how: "limit", ...spent } as const);
  return {
    mark: agent.history.count,
    run: () => (end === undefined ? turn(agent, signal) : Promise.resolve(end)),
  };
}

/** A background task's question parks the run like one of its own. */
function taskWaits({ tasks }: AgentContext): LoopEnd | undefined {
  const stopped = tasks?.waiting;
  return stopped && parkedAt(stopped, [], []);
}

/** Gives up a candidate that repeats itself. */
function endOfRepeatingCandidate({ ends, deeds, next }: AgentContext): LoopEnd | undefined {
  const reason = ends?.demands.reasonToGiveUp(deeds, next.shownFiles);
  if (reason === undefined) return undefined;
  ends?.verification?.givenUp();
  return { how: "unverified", reason };
}

/** The parked turn. Undefined, so that a new one begins, when all its calls have results. */
function resumedTurn(agent: AgentContext, left: RestOfRound, signal: AbortSignal): Turn | undefined {
  const open = agent.history.openReply;
  if (open === undefined && left.note !== undefined)
    agent.history.add({ role: "user", text: `${NOTICE}${left.note}` });
  return open && { mark: open.at, run: () => runRound(agent, { ...left, calls: open.calls }, signal) };
}

/** One request to the model and its calls. Undefined when there is more to do. */
async function turn(agent: AgentContext, signal: AbortSignal): Promise<LoopEnd | undefined> {
  const { history, limits, compactor } = agent;
  limits.turn();
  const building = agent.now() - compactor.askedMs;
  const shown = history.view();
  const sizes = { tokens: agent.size.tokens(shown), prompt: agent.size.parts(shown) };
  agent.emit({ type: "turn.started", turn: limits.turns, record_count: history.count, ...sizes });
  // A pause drops a pending request, which loses nothing; running calls are finished.
  const either = agent.pause === undefined ? signal : AbortSignal.any([signal, agent.pause]);
  const fitted = await compactor.fit(either);
  if (either.aborted) return { how: "cancelled" };
  if (fitted.kind === "too_long") return { how: "too_long", reason: tooLong(fitted) };
  const format = agent.answer.format();
  const options = { building: building + compactor.askedMs, format };
  const apart = await askOutsideConversation(agent, options, either);
  if (apart === "nothing") return undefined;
  if (apart === undefined) constrainNext(agent);
  const reply = apart ?? (await ask(agent, options, either));
  if (reply.kind === "failed") return afterFailure(agent, reply, signal);
  const isRepetitive = repeatsItself(agent, reply);
  // A model that sees its repetitions goes on repeating.
  const message = isRepetitive
    ? { ...reply.message, text: withoutRepetition(reply.message.text) }
    : reply.message;
  history.add(message);
  if (message.calls.length + reply.malformed.length > 0) {
    agent.answer.called();
    const calls = { calls: message.calls, malformed: reply.malformed, unrun: holdsUnrun(reply) };
    return runRound(agent, calls, signal);
  }
  if (isRepetitive) agent.next.after("repeats itself");
  const taken = agent.answer.take(
    { text: message.text, edges: reply.edges },
    reply.stop === "length",
    isRepetitive,
  );
  if ("how" in taken) return taken.how === "answered" ? endByHooks(agent, taken, signal) : taken;
  history.add(taken);
  return undefined;
}

type Replied = Extract<ModelReply, { readonly kind: "replied" }>;

/** Whether a small model's reply was cut off because it repeated itself. */
const repeatsItself = ({ isWeak }: AgentContext, { stop, message: { text } }: Replied): boolean =>
  stop === "length" && isWeak && repetitionIn(text) !== undefined;

/** Constrains the next reply by what was done and by what the model still sees. */
function constrainNext(agent: AgentContext): void {
  // A model answers a question better when it looks for itself.
  const isChange = agent.intent.intent === "change";
  if (agent.history.compaction !== undefined || !isChange) agent.next.nothingShown();
  if (agent.isWeak) agent.next.simplify();
  const demand = agent.ends?.demands.next(agent);
  if (demand === undefined) return;
  // Even a model that calls tools well would otherwise look for a file that says how to run it.
  if (demand === "run") agent.next.after("no usable call");
  // A small model that sees all files and has to call something only greps for what it was shown, or runs the check
  // again.
  const acts = agent.deeds.acted ? "edit" : "act";
  agent.next.demand(agent.next.seesAll && demand !== "run" ? acts : demand);
}

type Answered = Extract<LoopEnd, { readonly how: "answered" }>;

/** The model is told once about background tasks that still run; its next answer ends them. */
async function endOfTasks(
  agent: AgentContext,
  answer: Answered,
  signal: AbortSignal,
): Promise<LoopEnd | undefined> {
  const waits = taskWaits(agent);
  if (waits !== undefined) return waits;
  const open = isLastTurn(agent) ? undefined : agent.tasks?.beforeAnswer();
  if (open !== undefined) return tellModel(agent, open);
  // Nothing may change the workspace after the check.
  await agent.tasks?.endAll();
  return earnedEnd(agent, answer, signal);
}

/** Shows an earned end to the hooks, which may delay it or reword the answer. */
async function endByHooks(
  agent: AgentContext,
  answer: Answered,
  signal: AbortSignal,
): Promise<LoopEnd | undefined> {
  const end = await endOfTasks(agent, answer, signal);
  if (end?.how !== "answered" || signal.aborted) return end;
  const stopAnswer = await agent.hooks.stop(end.text, { emit: agent.emit, signal });
  if (stopAnswer.kind === "continues") return isLastTurn(agent) ? end : tellModel(agent, stopAnswer.text);
  if (stopAnswer.text === end.text) return end;
  const fitted = agent.answer.take({ text: stopAnswer.text }, false);
  if ("how" in fitted && fitted.how === "answered") return fitted;
  agent.emit({
    type: "notice",
    text: "A hook changed the answer so that it does not fit the output schema: the answer stays as it was.",
  });
  return end;
}

/** Whether the answer ends the run. Undefined when the model is told what speaks against that. */
async function earnedEnd(
  agent: AgentContext,
  answer: Answered,
  signal: AbortSignal,
): Promise<LoopEnd | undefined> {
  // A standing refusal ends the run whatever was done: only a person can lift it.
  if (agent.ends === null || standingRefusal(agent.ended) !== undefined) return answer;
  const ask = (messages: readonly Message[]): Promise<string | undefined> =>
    asideText(agent, messages, signal);
  const verdict = await agent.ends.judge(answer.text, agent, { mayTell: !isLastTurn(agent), ask, signal });
  switch (verdict.kind) {
    case "earned":
      return answer;
    case "ends":
      return verdict.end;
    default:
      return verdict.demand === "words"
        ? tellModel(agent, verdict.text)
        : tellModelToCall(agent, verdict.text, verdict.demand);
  }
}

/**
 * The reply to a side question; undefined when it fails, is cut off, or a limit is spent. It gets half of the time that
 * is left: the run could end without it, and must not end with a spent limit because of it.
 */
async function asideText(
  agent: AgentContext,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (agent.limits.reached("aside") !== undefined) return undefined;
  const aside = { messages, maxTokens: SHORT_TEXT, purpose: "expectation" } as const;
  const reply = await askAside(agent, aside, agent.limits.halfway(signal));
  return reply.kind === "failed" || reply.stop === "length" ? undefined : reply.message.text;
}

/** In tokens: enough for a number or a few lines, and too few for endless repetition. */
const SHORT_TEXT = 200;

/**
 * Like `tellModel`, and constrains the next reply if the server can: a weak model, and any that has done nothing at all,
 * has to call a tool.
 */
function tellModelToCall(agent: AgentContext, text: string, demand: Demand): undefined {
  agent.next.after("no usable call");
  if (agent.ends?.facts.isWeak === true) agent.next.demand(demand);
  else if (!agent.deeds.worked) agent.next.demand("call");
  return tellModel(agent, text);
}

const isLastTurn = ({ limits }: AgentContext): boolean => limits.reached("turn") !== undefined;

/** Adds a message for the model; the loop goes on. */
function tellModel(agent: AgentContext, text: string): undefined {
  const [line = ""] = text.split("\n", 1);
  agent.emit({ type: "notice", text: `The model is told: ${line}` });
  agent.history.add({ role: "user", text: `${NOTICE}${text}` });
}

/** When the server finds the request too long, the conversation is compacted further than our estimate required. */
async function afterFailure(
  agent: AgentContext,
  { failure: { kind, reason } }: Extract<ModelReply, { readonly kind: "failed" }>,
  signal: AbortSignal,
): Promise<LoopEnd | undefined> {
  if (kind === "cancelled") return { how: "cancelled" };
  if (kind !== "too_long") return { how: "model_failed", kind, reason };
  const shorter = await agent.compactor.now("refused", signal);
  return shorter ? undefined : { how: "too_long", reason };
}

const tooLong = ({ tokens, window }: { readonly tokens: number; readonly window: number }): string =>
  `the conversation does not fit the model's window: about ${tokens} of ${window} tokens`;

/** The loss of the box ends the loop. Any other error of a call (a full disk under the session) is rethrown. */
export function boxLost(thrown: unknown): Extract<LoopEnd, { readonly how: "touched" | "sandbox_lost" }> {
  if (thrown instanceof CanaryTouched) return { how: "touched", reason: thrown.message };
  if (!(thrown instanceof HarnessError) || thrown.exit !== EXIT.sandbox) throw thrown;
  return { how: "sandbox_lost", reason: `${thrown.message}${thrown.remedy && `; next: ${thrown.remedy}`}` };
}

/** The calls of one reply, or those that are left of it. */
interface Round {
  readonly calls: readonly ToolCall[];
  readonly malformed: Replied["malformed"];
  /** For the model, with the last result. */
  readonly note?: string;
  /** The reply is meant as an answer but contains calls that were not run. */
  readonly unrun?: boolean;
}

/** A failed call that was written as text still stands in the text of its reply. */
const holdsUnrun = ({ message: { calls, text }, malformed }: Replied): boolean =>
  calls.length === 0 && malformed.some(({ name, missed }) => missed !== undefined && text.includes(name));

/** Runs the calls of one reply: readers side by side, everything else in order. Undefined when the loop goes on. */
async function runRound(
  agent: AgentContext,
  round: Round,
  signal: AbortSignal,
): Promise<LoopEnd | undefined> {
  const { calls, malformed } = round;
  const spent = agent.limits.reached("call");
  if (spent !== undefined && calls.length > 0) return { how: "limit", ...spent };
  for (const { id, name, args } of calls) agent.emit({ type: "call.proposed", call: id, tool: name, args });
  const planned = waves(calls.map((call) => readCall(agent, call)));
  const made = agent.ended.length;
  let good = 0;
  for (const wave of planned) {
    const results = await Promise.all(wave.map((each) => runCall(agent, each, signal)));
    if (signal.aborted || results.includes("stop")) return endUnfinished(agent, calls, made, signal);
    const stopped = results.filter((result) => result instanceof WaitsForPerson);
    const [first] = stopped;
    const ends = wave === planned.at(-1) && first === undefined;
    good += addResults(
      agent,
      finishedCalls(wave, results),
      ends ? await notesAfter(agent, round, made, signal) : "",
    );
    if (first !== undefined) return parkedAt(first, stopped, malformed);
  }
  if (calls.length === 0) agent.history.add({ role: "user", text: (await notices(agent, round)).trim() });
  const bad = calls.length - good + malformed.length;
  if (good === 0 && bad > 0) agent.next.after("no usable call");
  const unrun = round.unrun === true && agent.ends !== null;
  const reason = agent.malformed.replied({ good, bad, unrun });
  return reason === undefined ? undefined : { how: "model_broken", reason };
}

/** What the model is told after the results of a round: the check's result on its changes, and notices. */
async function notesAfter(
  agent: AgentContext,
  round: Round,
  made: number,
  signal: AbortSignal,
): Promise<string> {
  const isChanged = agent.ended.slice(made).some(({ changes, kind }) => changes && kind === "ok");
  const { ends } = agent;
  const checks = isChanged && ends?.facts.isWeak === true ? ends.verification : null;
  const checked = await checks?.between(agent, signal);
  const checkNote = checked === undefined ? "" : `\n\n${NOTICE}${checked}`;
  return checkNote + (await notices(agent, round));
}

interface FinishedCall {
  readonly call: ToolCall;
  readonly result: ToolResult;
}

const finishedCalls = (
  wave: readonly { readonly call: ToolCall }[],
  results: readonly (ToolResult | WaitsForPerson | "stop")[],
): readonly FinishedCall[] =>
  wave.flatMap(({ call }, at) => {
    const result = results[at];
    return result === undefined || result === "stop" || result instanceof WaitsForPerson
      ? []
      : [{ call, result }];
  });

/** Adds results to the history, with `notes` after the last one. Returns how many of the calls were valid. */
function addResults(agent: AgentContext, ended: readonly FinishedCall[], notes: string): number {
  for (const [at, { call, result }] of ended.entries()) {
    const resultText = agent.next.resultText(call, result);
    const text = at === ended.length - 1 ? resultText + notes : resultText;
    agent.history.add({ role: "tool", call: call.id, text });
  }
  return ended.filter(({ result }) => result.kind !== "invalid").length;
}

/** A person is asked about the first call; the others ask again when the run is resumed. */
function parkedAt(
  { question }: WaitsForPerson,
  stopped: readonly WaitsForPerson[],
  malformed: Round["malformed"],
): LoopEnd {
  const children = stopped.flatMap(({ child }) => child ?? []);
  return { how: "parked", reason: waitsFor(question), waiting: { question, malformed, children } };
}

/** Text for the model after its results, so that the prefix of the request stays unchanged. */
async function notices(agent: AgentContext, { malformed, note, unrun }: Round): Promise<string> {
  const lines = malformed.map(
    ({ name, reason }) => `Your call of ${name || "a tool"} was not run: ${reason}`,
  );
  if (note !== undefined) lines.unshift(note);
  if (unrun === true)
    lines.push(
      `What stands in an answer is not run. There are these tools: ${agent.offers.map(({ name }) => name).join(", ")}.`,
    );
  const limit = agent.limits.note();
  if (limit !== undefined) {
    agent.emit({ type: "notice", text: limit });
    lines.push(limit);
  }
  const news = agent.tasks?.news();
  lines.push(...(news?.lines ?? []));
  news?.markDelivered();
  const act = agent.deeds.note(agent.intent.intent);
  if (act !== undefined) lines.push(act);
  const briefing = await agent.briefing();
  const notes = lines.map((line) => `\n\n${NOTICE}${line}`).join("");
  return briefing === undefined ? notes : `${notes}\n\n${briefing}`;
}
