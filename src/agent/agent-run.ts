import { type BoxLog, EMPTY_LOG } from "../core/box-log.ts";
import { EXIT, HarnessError, signalOf } from "../core/errors.ts";
import type { EventBody, RunChanges } from "../core/events.ts";
import type { Intent } from "../core/messages.ts";
import { type Parked, PARKED_FORM, type RunGiven, type SessionRecord } from "../core/session.ts";
import type { AgentContext } from "./agent-context.ts";
import type { EndRules } from "./ending/earned-end.ts";
import { asksToLook, guessIntent } from "./ending/intent.ts";
import { work } from "./loop.ts";
import {
  denialsOf,
  type Ending,
  type LoopEnd,
  NEW_BOX,
  outcomeOf,
  type Proved,
  type Waiting,
} from "./ending/outcome.ts";
import { NOTHING_SEEN, preflight } from "./preflight.ts";
import { repetitionAtEnd } from "./repetition-guard.ts";
import { saysChanged, saysTestsPass } from "./ending/claims.ts";
import { checkNote } from "./ending/check-words.ts";
import { NOTICE } from "./context/history.ts";
import { seenWith, type ToldHandoff } from "./ending/run-changes.ts";

/** One request of the user. */
export interface Request {
  readonly prompt: string;
  /** For the model behind the prompt; it is no part of what is wanted. */
  readonly note?: string;
  /** What a person took back of files since; where a parked run goes on, the model is told with the first results. */
  readonly taken?: string;
  /** Given by the user; guessed from the prompt when left out. */
  readonly intent?: Intent;
  readonly strict: boolean;
  /** A call of an earlier request of the session succeeded. */
  readonly workedBefore?: boolean;
  /** It has no task of its own: the one before it goes on. */
  readonly goesOn?: boolean;
  /** The model is shown the files with its task, before it asks for any. */
  readonly preflight?: boolean;
  readonly session: string;
  /** Somebody goes on from where they were: nothing stays of a request that was cancelled, or that nothing answered. */
  readonly takesBack?: boolean;
  /** What the workspace is like afterwards; null when nobody can tell. `last`: nothing goes on in its box. */
  readonly changes: (last: boolean) => Promise<Seen>;
  readonly record: (record: SessionRecord) => void;
  /** For a run that may be parked: how it was started. */
  readonly given?: RunGiven;
  /** Has the box stop where a run is parked; until when it is kept, or null. Nothing is asked of it afterwards. */
  readonly park?: () => Promise<number | null>;
  /** What was done in the workspace beside the calls; nothing more is done when it resolves, where the run ends here. */
  readonly leave?: (parked: boolean) => Promise<BoxLog>;
  /** What is told with the end beside all that, when nothing more is done. */
  readonly recorded?: () => Promise<Pick<Finished, "recorded">>;
  /** Absolute and resolved. */
  readonly workspace: string;
}

interface Seen extends ToldHandoff, Pick<Finished, "installed"> {
  readonly changes: RunChanges | null;
  /** Nothing is other than it was but what programs leave for themselves. */
  readonly untouched?: boolean;
}

export type Finished = Extract<EventBody, { readonly type: "run.finished" }>;

/** From a request to its end, which is told whatever happens: what it came to, what was refused, what it cost. */
export async function runRequest(
  agent: AgentContext,
  request: Request,
  signal: AbortSignal,
): Promise<Finished> {
  const either = agent.limits.deadline(signal);
  prepare(agent, request);
  const stuck = repetitionAtEnd(agent.history.messages);
  if (stuck !== undefined) agent.rollBack(stuck.mark);
  const before = agent.history.count;
  agent.deeds.shownBefore = request.workedBefore === true;
  if (request.goesOn === true) agent.deeds.goOn();
  const opening = await openingOf(agent, request, either);
  const news = agent.tasks?.news();
  const lines = [...(stuck === undefined ? [] : [stuck.text]), ...(news?.lines ?? [])];
  const lost = lines.map((line) => `\n\n${NOTICE}${line}`).join("");
  agent.history.add({
    role: "user",
    text: `${request.prompt}${lost}${request.taken ?? ""}${request.note ?? ""}${opening}`,
  });
  news?.told();
  const ending = endingOf(await workWithTasks(agent, either), { signal, agent });
  const unanswered = agent.history.count === before + 1;
  if (request.takesBack === true && (ending.how === "cancelled" || unanswered)) agent.rollBack(before);
  return finish(agent, request, ending);
}

/**
 * What stands behind the task: what the check says of the workspace as it is, and for a small model what it would have
 * to look at first.
 */
async function openingOf(agent: AgentContext, request: Request, signal: AbortSignal): Promise<string> {
  const verification = agent.ends?.verification ?? null;
  try {
    const checked = await verification?.before(agent, signal);
    const note =
      verification === null || checked === undefined ? "" : checkNote(verification.command, checked);
    // What is to be run is named, or known of the project; a file that looks like it leads away from it.
    const isRun = agent.ends?.asked.runs === true;
    const asks = request.preflight === true && aboutWorkspace(agent.intent.intent) && !isRun;
    const about = { request: request.prompt, ...(checked === undefined ? {} : { checked }) };
    const seen = asks ? await preflight(agent, about, signal) : NOTHING_SEEN;
    agent.next.files(seen.paths, seen.shown);
    agent.deeds.shownWithTask = seen.shown.length > 0;
    if (agent.ends !== null) agent.ends.filesBefore = seen.shown;
    const told = await agent.hooks.begin({ emit: agent.emit, signal });
    return [note, seen.text, told].map((text) => (text === "" ? "" : `\n\n${NOTICE}${text}`)).join("");
  } catch (thrown) {
    // Cancelled, it is the loop that says how this ends.
    if (signal.aborted) return "";
    throw thrown;
  }
}

const aboutWorkspace = (intent: Intent): boolean => intent === "change" || intent === "repo";

/** The same for a run that was parked, from the call that waited on; its figures are those of the whole run. */
export async function goOn(
  agent: AgentContext,
  request: Request,
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

/** Whatever ends the loop, no task goes on behind it: they are kept where it is parked, and ended otherwise. */
async function workWithTasks(agent: AgentContext, ...given: WorkGiven): Promise<LoopEnd> {
  const { tasks } = agent;
  try {
    const end = await work(agent, ...given);
    if (end.how !== "parked" || tasks === undefined) return end;
    const children = [...end.waiting.children, ...(await tasks.pause())];
    return { ...end, waiting: { ...end.waiting, children } };
  } finally {
    await tasks?.endAll();
  }
}

type WorkGiven = Parameters<typeof work> extends [unknown, ...infer Given] ? Given : never;

/** Tells the end of what was worked on, with what it came to. */
export async function finish(agent: AgentContext, request: Request, ending: Ended): Promise<Finished> {
  // The box is asked while it can be. Once the question is known somebody may answer it, and look for the box.
  const changed = ending.how === "parked" ? await request.changes(false) : undefined;
  if (ending.how === "parked") {
    const kept = (await request.park?.()) ?? null;
    request.record({
      kind: "parked",
      parked: { ...parkedOf(agent, request, ending.waiting), ...keptIn(kept) },
    });
    for (const tell of agent.untold.splice(0)) tell();
  }
  const { untouched = false, ...seen } = changed ?? (await request.changes(true));
  const left = await leftBehind(agent, request, ending);
  const isSame = left.log.commits.length + left.log.staged.length === 0 && untouched;
  const said = ending.how === "answered" ? ending.text : "";
  const { proved, ...shown } = provedBy(agent, request, { isSame, said });
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
    ...seenWith(seen, left.log, request.workspace),
    session: request.session,
    ...shown,
    ...(await request.recorded?.()),
    answer: ending.how === "answered" ? ending.text : null,
  };
  request.record({ kind: "turn", result: resultOf(agent, finished) });
  agent.emit(finished);
  return finished;
}

/** What of an ending is known by more than the model's word. */
function provedBy(
  { intent: { intent }, deeds, ends, limits }: AgentContext,
  { strict }: Request,
  { isSame, said }: { readonly isSame: boolean; readonly said: string },
): Required<Pick<Finished, "verified" | "grounded">> & { readonly proved: Proved } {
  const { verified = null, bent } = ends?.verification ?? {};
  // Of what was done before it was parked, or for an earlier request, an answer may tell as well.
  const idle = ends !== null && intent === "change" && isSame && !deeds.changedBefore;
  const grounded = groundedBy(intent, deeds);
  const proved = {
    strict,
    grounded,
    word: ends === null && limits.calls === 0 && isWord(intent, said),
    verifiedBy: verified?.exit_code === 0 ? verified.command : undefined,
    bent,
    ...(idle ? idleWords(deeds, ends, said) : {}),
    redTests: ends !== null && verified === null ? redTests(deeds, said) : undefined,
    ran: wasRun(ends, deeds),
  };
  return { verified, grounded, proved };
}

/** Where a change was asked for and no file is changed: what was done shows in the files of the workspace, or was not done. */
function idleWords(
  deeds: AgentContext["deeds"],
  ends: EndRules,
  said: string,
): Pick<Proved, "onlyLooked" | "claims" | "doubted"> {
  const isAllSeen = !deeds.shownBefore && !deeds.actedBeside;
  const claims = isAllSeen && saysChanged(said);
  const { runs, looks } = ends.asked;
  // What was asked for was done by running it, and needed no change.
  if (runs === true && deeds.ran !== undefined && !claims) return {};
  const mayDoubt = isAllSeen && runs !== true && looks !== true;
  return { onlyLooked: deeds.looked, claims, doubted: mayDoubt && ends.doubts(said) };
}

const wasRun = (ends: EndRules | null, { ran }: AgentContext["deeds"]): Proved["ran"] =>
  ends?.asked.runs === true ? ran : undefined;

/** Of what was done for an earlier request a question may ask. */
const isWord = (intent: Intent, said: string): boolean =>
  saysTestsPass(said) || (intent === "change" && saysChanged(said));

const groundedBy = (intent: Intent, { isGrounded }: AgentContext["deeds"]): boolean | null =>
  intent === "repo" ? isGrounded : null;

const redTests = (deeds: AgentContext["deeds"], said: string): string | undefined =>
  saysTestsPass(said) ? deeds.redTests : undefined;

/** What the host would obey and could not be moved out is worse than any other ending but a person's own. */
async function leftBehind(
  agent: AgentContext,
  { leave }: Request,
  ending: Ended,
): Promise<{ readonly log: BoxLog; readonly ending: Ended }> {
  try {
    return { log: (await leave?.(ending.how === "parked")) ?? EMPTY_LOG, ending };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError) || thrown.exit !== EXIT.sandbox) throw thrown;
    const reason = `${thrown.message}${thrown.remedy && `; next: ${thrown.remedy}`}`;
    agent.emit({ type: "notice", text: reason });
    return { log: EMPTY_LOG, ending: ending.how === "cancelled" ? ending : { how: "sandbox_lost", reason } };
  }
}

const keptIn = (kept: number | null): Pick<Parked, "kept"> => (kept === null ? {} : { kept });

const NO_WEB = `this asks for the web, and its tools are off; to turn them on: harness config set web '{"fetch": true}', and --allow-domain HOST for each host`;

/** Has what the request is likely to need begin at once. */
function prepare(agent: AgentContext, { prompt, intent: given }: Request): void {
  const intent = given ?? guessIntent(prompt, agent.mode);
  agent.emit({ type: "intent", intent, by: given === undefined ? "words" : "flag" });
  if (intent === "web" && !agent.tools.some(({ name }) => name.startsWith("web_")))
    agent.emit({ type: "notice", text: NO_WEB });
  agent.intent.begin(intent, given === undefined && asksToLook(prompt));
  if (intent !== "direct") agent.warm();
  if (intent === "change") agent.checkpoints.prepare();
}

export type Ended =
  | Exclude<Ending, { readonly how: "answered" | "parked" }>
  | Extract<LoopEnd, { readonly how: "answered" | "parked" }>;

/** Of two reasons to be cancelled, the person's counts. */
function endingOf(
  end: LoopEnd,
  { signal, agent }: { readonly signal: AbortSignal; readonly agent: AgentContext },
): Ended {
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

function parkedOf(agent: AgentContext, { strict, given }: Request, waiting: Waiting): Parked {
  if (given === undefined) throw new Error("a call waits in a run that cannot be parked");
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
    given,
  };
}
