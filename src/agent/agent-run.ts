import { type BoxLog, EMPTY_LOG } from "../core/run-record.ts";
import { EXIT, HarnessError, signalOf } from "../core/errors.ts";
import type { EventBody, RunChanges } from "../core/events.ts";
import type { Intent } from "../core/model-provider.ts";
import { type Parked, PARKED_FORM, type RunOptions, type SessionRecord } from "../core/session.ts";
import type { AgentContext } from "./agent-context.ts";
import type { EndRules } from "./ending/end-rules.ts";
import { asksToLook, guessIntent } from "./ending/intent.ts";
import { runLoop } from "./loop.ts";
import {
  denialsOf,
  type Ending,
  type LoopEnd,
  NEW_BOX,
  outcomeOf,
  type RunFacts,
  type Waiting,
} from "./ending/outcome.ts";
import { NOTHING_SEEN, preflight } from "./small-models.ts";
import { repetitionAtEnd } from "./limits.ts";
import { saysChanged, saysTestsPass } from "./ending/answer-words.ts";
import { checkNote } from "./ending/verification.ts";
import { NOTICE } from "./context/history.ts";
import { withBoxLog, type HandoffReport } from "./ending/run-changes.ts";

/** One request of the user. */
export interface RunRequest {
  readonly prompt: string;
  /** For the model, after the prompt; not part of what the user wants. */
  readonly note?: string;
  /** File changes that a person undid in the meantime; a resumed run tells the model with its first results. */
  readonly taken?: string;
  /** Set by the user; guessed from the prompt when left out. */
  readonly intent?: Intent;
  readonly strict: boolean;
  /** A call of an earlier request of the session succeeded. */
  readonly workedBefore?: boolean;
  /** The prompt has no task of its own but continues the previous one. */
  readonly goesOn?: boolean;
  /** Shows the model files together with its task, before it asks for any. */
  readonly preflight?: boolean;
  readonly session: string;
  /** Interactive: a request that was cancelled or got no answer is removed from the history. */
  readonly takesBack?: boolean;
  /** What has changed in the workspace. `last`: nothing runs in the box any more. */
  readonly changes: (last: boolean) => Promise<WorkspaceOutcome>;
  readonly record: (record: SessionRecord) => void;
  /** How the run was started; only for a run that may be parked. */
  readonly options?: RunOptions;
  /** Stops the box of a parked run. Returns until when it is kept, or null. The box is not used afterwards. */
  readonly park?: () => Promise<number | null>;
  /** Ends the box, or leaves it to be frozen. Returns what was done in the workspace outside of the calls. */
  readonly leave?: (parked: boolean) => Promise<BoxLog>;
  /** Further fields of the last event, requested once nothing runs any more. */
  readonly recorded?: () => Promise<Pick<Finished, "recorded">>;
  /** Absolute and resolved. */
  readonly workspace: string;
}

/** What a request did to the workspace. */
export interface WorkspaceOutcome extends HandoffReport, Pick<Finished, "installed"> {
  /** Null when the changes cannot be determined. */
  readonly changes: RunChanges | null;
  /** Only caches and similar files that programs write for themselves have changed. */
  readonly untouched?: boolean;
}

export type Finished = Extract<EventBody, { readonly type: "run.finished" }>;

/** Works on a request to its end. The last event always states the outcome, the refusals and the cost. */
export async function runRequest(
  agent: AgentContext,
  request: RunRequest,
  signal: AbortSignal,
): Promise<Finished> {
  const either = agent.limits.deadline(signal);
  prepare(agent, request);
  const stuck = repetitionAtEnd(agent.history.messages);
  if (stuck !== undefined) agent.rollBack(stuck.mark);
  const before = agent.history.count;
  if (request.workedBefore === true) agent.deeds.saw("earlier request");
  if (request.goesOn === true) agent.deeds.goOn();
  const opening = await openingOf(agent, request, either);
  const news = agent.tasks?.news();
  const lines = [...(stuck === undefined ? [] : [stuck.text]), ...(news?.lines ?? [])];
  const lost = lines.map((line) => `\n\n${NOTICE}${line}`).join("");
  agent.history.add({
    role: "user",
    text: `${request.prompt}${lost}${request.taken ?? ""}${request.note ?? ""}${opening}`,
  });
  news?.markDelivered();
  const ending = endingOf(await workWithTasks(agent, either), { signal, agent });
  const unanswered = agent.history.count === before + 1;
  if (request.takesBack === true && (ending.how === "cancelled" || unanswered)) agent.rollBack(before);
  return finish(agent, request, ending);
}

/**
 * What the model is told after the task: the result of the check before any change and, for a small model, the files
 * that it would have to look at first.
 */
async function openingOf(agent: AgentContext, request: RunRequest, signal: AbortSignal): Promise<string> {
  const verification = agent.ends?.verification ?? null;
  try {
    const checked = await verification?.before(agent, signal);
    const note =
      verification === null || checked === undefined ? "" : checkNote(verification.command, checked);
    // The request or the project names what to run; a file with a similar name would mislead.
    const isRun = agent.ends?.facts.only === "run";
    const asks = request.preflight === true && aboutWorkspace(agent.intent.intent) && !isRun;
    const about = { request: request.prompt, ...(checked === undefined ? {} : { checked }) };
    const seen = asks ? await preflight(agent, about, signal) : NOTHING_SEEN;
    agent.next.files(seen.paths, seen.shown);
    if (seen.shown.length > 0) agent.deeds.saw("files with the task");
    if (agent.ends !== null) agent.ends.filesBefore = seen.shown;
    const hookText = await agent.hooks.begin({ emit: agent.emit, signal });
    return [note, seen.text, hookText].map((text) => (text === "" ? "" : `\n\n${NOTICE}${text}`)).join("");
  } catch (thrown) {
    // When the run is cancelled, the loop decides how it ends.
    if (signal.aborted) return "";
    throw thrown;
  }
}

const aboutWorkspace = (intent: Intent): boolean => intent === "change" || intent === "repo";

/** Like `runRequest`, for a parked run, starting at the waiting call. Its figures cover the whole run. */
export async function resumeRequest(
  agent: AgentContext,
  request: RunRequest,
  parked: Parked,
  signal: AbortSignal,
): Promise<Finished> {
  const either = agent.limits.deadline(signal);
  agent.intent.begin(parked.intent);
  if (parked.intent === "change") agent.checkpoints.prepare();
  agent.tasks?.resume(either);
  const left = { malformed: parked.malformed, note: `${agent.boxNote ?? NEW_BOX}${request.taken ?? ""}` };
  const end = await workWithTasks(agent, either, left);
  return finish(agent, request, endingOf(end, { signal, agent }));
}

/** No background task outlives the loop: tasks are stored when the run is parked, and ended otherwise. */
async function workWithTasks(agent: AgentContext, ...args: LoopArguments): Promise<LoopEnd> {
  const { tasks } = agent;
  try {
    const end = await runLoop(agent, ...args);
    if (end.how !== "parked" || tasks === undefined) return end;
    const children = [...end.waiting.children, ...(await tasks.pause())];
    return { ...end, waiting: { ...end.waiting, children } };
  } finally {
    await tasks?.endAll();
  }
}

type LoopArguments = Parameters<typeof runLoop> extends [unknown, ...infer Given] ? Given : never;

/** Emits the end of a request with its outcome. */
export async function finish(
  agent: AgentContext,
  request: RunRequest,
  ending: RequestEnd,
): Promise<Finished> {
  // The box is asked before it stops: once the question is stored, somebody may answer it and look for the box.
  const changed = ending.how === "parked" ? await request.changes(false) : undefined;
  if (ending.how === "parked") {
    const kept = (await request.park?.()) ?? null;
    request.record({
      kind: "parked",
      parked: { ...parkedOf(agent, request, ending.waiting), ...keptUntil(kept) },
    });
    for (const tell of agent.onceParked.splice(0)) tell();
  }
  const { untouched = false, ...seen } = changed ?? (await request.changes(true));
  const left = await leaveBox(agent, request, ending);
  const isSame = left.log.commits.length + left.log.staged.length === 0 && untouched;
  const answer = ending.how === "answered" ? ending.text : "";
  const { proved, ...shown } = knownOutcome(agent, request, { isSame, answer });
  const { status, exit_code, reason } = outcomeOf(left.ending, agent.ended, proved);
  const finished: Finished = {
    type: "run.finished",
    status,
    exit_code,
    reason,
    turns: agent.limits.turns,
    tool_calls: agent.limits.calls,
    usage: agent.spent.whole,
    denials: denialsOf(agent.ended),
    ...seen,
    ...withBoxLog(seen, left.log, request.workspace),
    session: request.session,
    ...shown,
    ...(await request.recorded?.()),
    answer: ending.how === "answered" ? ending.text : null,
  };
  request.record({ kind: "turn", result: resultOf(agent, finished) });
  agent.emit(finished);
  return finished;
}

/** What is known about the outcome beyond the model's word. */
function knownOutcome(
  { intent: { intent }, deeds, ends, limits }: AgentContext,
  { strict }: RunRequest,
  { isSame, answer }: { readonly isSame: boolean; readonly answer: string },
): Required<Pick<Finished, "verified" | "grounded">> & { readonly proved: RunFacts } {
  const { verified = null, tampering } = ends?.verification ?? {};
  // An answer may also report what was done before the run was parked, or for an earlier request.
  const idle = ends !== null && intent === "change" && isSame && !deeds.changedBefore;
  const grounded = groundedBy(intent, deeds);
  const proved = {
    strict,
    grounded,
    unbacked: ends === null && limits.calls === 0 && claimsDeed(intent, answer),
    verifiedBy: verified?.exit_code === 0 ? verified.command : undefined,
    tampering,
    ...(idle ? idleProof(deeds, ends, answer) : {}),
    redTests: ends !== null && verified === null ? redTests(deeds, answer) : undefined,
    ran: requestedRun(ends, deeds),
  };
  return { verified, grounded, proved };
}

/** For a change request that changed no file: any work would show in the workspace. */
function idleProof(
  deeds: AgentContext["deeds"],
  ends: EndRules,
  answer: string,
): Pick<RunFacts, "onlyLooked" | "claims" | "doubted"> {
  const isAllSeen = !deeds.shownBefore && !deeds.actedBeside;
  const claims = isAllSeen && saysChanged(answer);
  // The request only asked to run something.
  if (requestedRun(ends, deeds) !== undefined && !claims) return {};
  const mayDoubt = isAllSeen && ends.facts.only === undefined;
  return { onlyLooked: deeds.looked, claims, doubted: mayDoubt && ends.doubts(answer) };
}

/** A command that only looks counts as the requested one if nothing else was run and it failed. */
function requestedRun(ends: EndRules | null, { ran, triedSince }: AgentContext["deeds"]): RunFacts["ran"] {
  if (ends?.facts.only !== "run") return undefined;
  return ran ?? (triedSince !== "nothing" && triedSince.exitCode !== 0 ? triedSince : undefined);
}

/** Whether an answer without any call claims a deed. A question may be about an earlier request. */
const claimsDeed = (intent: Intent, answer: string): boolean =>
  saysTestsPass(answer) || (intent === "change" && saysChanged(answer));

const groundedBy = (intent: Intent, { isGrounded }: AgentContext["deeds"]): boolean | null =>
  intent === "repo" ? isGrounded : null;

const redTests = ({ lastTests }: AgentContext["deeds"], answer: string): string | undefined =>
  lastTests !== undefined && lastTests.exitCode !== 0 && saysTestsPass(answer)
    ? lastTests.command
    : undefined;

/** A file left behind that the host would obey decides the ending, unless a person cancelled the run. */
async function leaveBox(
  agent: AgentContext,
  { leave }: RunRequest,
  ending: RequestEnd,
): Promise<{ readonly log: BoxLog; readonly ending: RequestEnd }> {
  try {
    return { log: (await leave?.(ending.how === "parked")) ?? EMPTY_LOG, ending };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError) || thrown.exit !== EXIT.sandbox) throw thrown;
    const reason = `${thrown.message}${thrown.remedy && `; next: ${thrown.remedy}`}`;
    agent.emit({ type: "notice", text: reason });
    return { log: EMPTY_LOG, ending: ending.how === "cancelled" ? ending : { how: "sandbox_lost", reason } };
  }
}

const keptUntil = (kept: number | null): Pick<Parked, "kept"> => (kept === null ? {} : { kept });

const NO_WEB = `this request needs the web, but the web tools are off; to turn them on: harness config set web '{"fetch": true}', and --allow-domain HOST for each host`;

/** Starts what the request will probably need. */
function prepare(agent: AgentContext, { prompt, intent: fixed }: RunRequest): void {
  const intent = fixed ?? guessIntent(prompt, agent.mode);
  agent.emit({ type: "intent", intent, by: fixed === undefined ? "words" : "flag" });
  if (intent === "web" && !agent.tools.some(({ name }) => name.startsWith("web_")))
    agent.emit({ type: "notice", text: NO_WEB });
  agent.intent.begin(intent, fixed === undefined && asksToLook(prompt));
  if (intent !== "direct") agent.warm();
  if (intent === "change") agent.checkpoints.prepare();
}

export type RequestEnd =
  | Exclude<Ending, { readonly how: "answered" | "parked" }>
  | Extract<LoopEnd, { readonly how: "answered" | "parked" }>;

/** How the loop ended; a person's cancellation takes precedence over a spent limit. */
function endingOf(
  end: LoopEnd,
  { signal, agent }: { readonly signal: AbortSignal; readonly agent: AgentContext },
): RequestEnd {
  if (end.how !== "cancelled") return end;
  const spent = signal.aborted ? undefined : agent.limits.reached("turn");
  return spent === undefined ? { how: "cancelled", signal: signalOf(signal) } : { how: "limit", ...spent };
}

const resultOf = (
  agent: AgentContext,
  { status, reason, turns, tool_calls, answer }: Finished,
): Extract<SessionRecord, { readonly kind: "turn" }>["result"] => ({
  intent: agent.intent.intent,
  status,
  reason,
  usage: agent.spent.usage,
  turns,
  toolCalls: tool_calls,
  answer,
});

function parkedOf(agent: AgentContext, { strict, options }: RunRequest, waiting: Waiting): Parked {
  if (options === undefined) throw new Error("a call waits in a run that cannot be parked");
  const spent = { ...agent.limits.sofar(), usage: agent.spent.whole };
  const { intent } = agent.intent;
  return {
    form: PARKED_FORM,
    ...waiting,
    intent,
    fixed: false,
    strict,
    spent,
    ended: [...agent.ended],
    given: options,
  };
}
