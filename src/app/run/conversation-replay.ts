import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { Finished } from "../../agent/agent-run.ts";
import { Limits } from "../../agent/limits.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { HarnessError } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Approver } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import type { Host } from "../host.ts";
import { passingSession } from "../sessions/passing-session.ts";
import { aboutSession } from "../sessions/session-access.ts";
import { removeLayer } from "../sessions/session-changes.ts";
import { answeringAgain, PastInterrupt, sayingAgain } from "./past-person.ts";
import {
  type DoneBehind,
  type RecordedCall,
  type RecordedRequest,
  recordedRequests,
  type SaidThen,
  scenarioOf,
} from "./recorded-conversation.ts";
import { firstDifference, type Rerun } from "./replay-run.ts";
import { ReplayedChat } from "./replayed-chat.ts";
import { runTask } from "./run-task.ts";

/** A call of a conversation that was played again. */
export interface ReplayedCall extends Rerun {
  /** From 1. */
  readonly request: number;
  readonly agent: string | null;
  readonly tool: string;
}

/** How a request of it ended. */
export interface ReplayedEnd {
  readonly request: number;
  readonly outcome: "same" | "differs";
  readonly then: RecordedRequest["end"];
  readonly now: RecordedRequest["end"];
  /** Why it ended otherwise now; empty where it did not. */
  readonly reason: string;
}

interface ConversationInput {
  readonly host: Host;
  readonly config: Pick<Config, "settings" | "origins">;
  readonly store: SessionStore;
  /** What was recorded, in order. */
  readonly events: Iterable<AgentEvent>;
  /**
   * Whether what a person allowed then is allowed now: it was said here, to a session of this state folder. A file's words
   * are anybody's: its noes count, and where it says that somebody said yes nobody is there.
   */
  readonly ownWord: boolean;
  /** Where it is played again, absolute and resolved. */
  readonly workspace: string;
  readonly isolation: "overlay" | "copy";
  readonly onCall: (call: ReplayedCall) => void;
  readonly onEnd: (end: ReplayedEnd) => void;
}

/**
 * Plays the requests of a session once more: the loop is that of a run, the replies are those that were recorded, calls
 * are judged by the rules of today and made in a layer over the folder. Nothing of it stays. It has no network, no
 * secrets, and nothing that users added: no hooks, no servers, no tools of theirs.
 */
export async function replayConversation(given: ConversationInput, signal: AbortSignal): Promise<void> {
  const { host, store, events, workspace, isolation } = given;
  const requests = recordedRequests(events);
  const prompt = `replay of: ${requests[0]?.task ?? ""}`;
  const shape = shapeOf(given.config.settings, isolation);
  await using passing = await passingSession(host, store, aboutSession(shape, { workspace, prompt }));
  const { session, folder } = passing;
  const file = path.join(folder, "replies.jsonl");
  const settings = { ...shape, chat_model: file };
  const failure: { thrown?: HarnessError } = {};
  // A box that was still beginning when nobody wanted it any more is none.
  const failed = (thrown: unknown): void => {
    if (thrown instanceof HarnessError) failure.thrown ??= thrown;
  };
  const { origins } = given.config;
  await using chat = new ReplayedChat({ host, origins, store, session, workspace, failed });
  for (const [index, request] of requests.entries()) {
    await writeFile(file, scenarioOf(request), { mode: 0o600 });
    const before = recordedRequests(eventsOf(session)).length;
    const playing = { settings, session, request, isFirst: index === 0, chat, failed };
    const reason = await play(given, playing, signal);
    signal.throwIfAborted();
    const now = recordedRequests(eventsOf(session))[before];
    const isSame = tell(given, index + 1, { then: request, now, reason });
    // What this machine lacks is no difference of the conversation: it ends the replay, as it would end a run.
    if (!isSame && failure.thrown !== undefined) throw failure.thrown;
    delete failure.thrown;
    await playBehind(given, playing, request, index + 1);
  }
}

function* eventsOf(session: Session): Generator<AgentEvent> {
  for (const { event } of session.timeline()) yield event;
}

/** What then had a network or a secret gets none by being looked at again. */
const shapeOf = (
  settings: Settings,
  isolation: Settings["isolation"],
): Settings & { readonly provider: "scripted" } => ({
  ...settings,
  isolation,
  provider: "scripted",
  base_url: null,
  capabilities: [],
  max_context_tokens: null,
  allow_domains: [],
  secrets: {},
  hooks: [],
  tools: {},
  mcp: {},
  web: { fetch: false, search: null },
  on_ask: "contained",
  attempts: 1,
});

interface Playing {
  readonly settings: Settings;
  readonly session: Session;
  readonly request: RecordedRequest;
  readonly isFirst: boolean;
  readonly chat: ReplayedChat;
  readonly failed: (thrown: unknown) => void;
}

/** A file's words are anybody's: where it says that somebody said yes, nobody is there. */
const saidIn = ({ ownWord }: ConversationInput, { said }: RecordedRequest): readonly SaidThen[] =>
  ownWord ? said : said.filter(({ runs }) => !runs);

/** Why it ended as it did. */
async function play(given: ConversationInput, playing: Playing, signal: AbortSignal): Promise<string> {
  const { request, chat } = playing;
  using past = new PastInterrupt(request);
  const either = AbortSignal.any([signal, past.signal]);
  const show = (event: AgentEvent): void => past.take(event);
  const { task: text, mode, turns, freshBox, calls } = request;
  // The host's network would be the box's.
  const settings: Settings = {
    ...playing.settings,
    max_turns: turns ?? playing.settings.max_turns,
    check: request.check ?? null,
    mode: mode === "read-only" ? mode : "workspace-write",
  };
  const approver = sayingAgain({ said: saidIn(given, request), chat: request.chat });
  if (!request.chat) {
    await chat.rest();
    return (await playRun(given, { ...playing, settings }, { approver, show, signal: either })).reason;
  }
  const person = answeringAgain(calls);
  const turn = {
    text,
    model: request.model,
    settings,
    freshBox,
    resumed: !playing.isFirst,
    approver,
    person,
    show,
  };
  return (await chat.play(turn, either))?.reason ?? "";
}

interface Watched {
  readonly approver: Approver;
  readonly show: (event: AgentEvent) => void;
  readonly signal: AbortSignal;
}

function playRun(
  { host, config, store, workspace }: ConversationInput,
  { settings, session, request, isFirst, failed }: Playing,
  { approver, show, signal }: Watched,
): Promise<Finished> {
  const { intent, check, task, earned, strict, candidate, model } = request;
  return runTask({
    host,
    settings,
    origins: config.origins,
    flags: {
      json: false,
      quiet: true,
      strict,
      ...(candidate === undefined ? {} : { candidate }),
      passing: true,
      "no-verify": check === undefined,
      ...(intent === undefined ? {} : { intent }),
    },
    limits: new Limits({ turns: settings.max_turns }, () => performance.now()),
    store,
    session,
    resumed: !isFirst,
    workspace,
    prompt: task,
    signal,
    show: { take: show, end: () => undefined },
    observers: { take: () => undefined, failed, [Symbol.asyncDispose]: noWork },
    replayed: { approver, asks: earned, model },
  });
}

const noWork = (): Promise<void> => Promise.resolve();

/** What a person took back behind a request is taken back again; what cannot be is told. */
async function playBehind(
  { host, onCall }: ConversationInput,
  { session, chat }: Pick<Playing, "session" | "chat">,
  { behind }: RecordedRequest,
  nth: number,
): Promise<void> {
  for (const done of behind)
    if (done.type === "rolled_back") chat.takeBack(done.record_count);
    else if (done.to === 0 && done.whole) {
      await chat.leaveBox();
      await removeLayer(host, session);
    } else onCall({ ...NOT_UNDONE, request: nth, command: undoneWords(done) });
}

const undoneWords = ({ to }: Extract<DoneBehind, { readonly type: "files.undone" }>): string =>
  to === null ? "files brought back" : `files taken back to step ${to}`;

const NOT_UNDONE = {
  agent: null,
  tool: "undo",
  call: "",
  outcome: "not run",
  then: null,
  now: null,
  difference: null,
  reason:
    "only what takes back all that the session had changed is done again: what follows may differ by it",
} as const;

const because = ({ ownWord }: ConversationInput, { network, mode }: RecordedRequest): Otherwise => ({
  network,
  fullAccess: mode === "danger-full-access",
  ownWord,
});

interface Played {
  readonly then: RecordedRequest;
  readonly now: RecordedRequest | undefined;
  /** Why it ended as it did now. */
  readonly reason: string;
}

/** Gives whether it has come to the same end. */
function tell(given: ConversationInput, request: number, { then, now, reason }: Played): boolean {
  const { onCall, onEnd } = given;
  const left = [...(now?.calls ?? [])];
  for (const call of then.calls) {
    const at = left.findIndex((each) => isSameCall(each, call));
    const [again] = at === -1 ? [] : left.splice(at, 1);
    onCall({ request, agent: call.agent, tool: call.tool, ...compared(call, again, because(given, then)) });
  }
  for (const call of left)
    onCall({
      request,
      agent: call.agent,
      tool: call.tool,
      call: call.call,
      command: shown(call),
      outcome: "differs",
      then: null,
      now: ended(call),
      difference: null,
      reason: "it was not made then",
    });
  const end = now?.end ?? null;
  const isSame = isSameEnd(then.end, end);
  const outcome = isSame ? "same" : "differs";
  onEnd({ request, outcome, then: then.end, now: end, reason: isSame ? "" : reason });
  return isSame;
}

/** One that was killed has no end to be compared. */
const isSameEnd = (then: RecordedRequest["end"], now: RecordedRequest["end"]): boolean =>
  then === null || (then.status === now?.status && then.exit_code === now.exit_code);

/** What a call of the past came to then, beside what it comes to now. */

const isSameCall = (one: RecordedCall, other: RecordedCall): boolean =>
  one.agent === other.agent &&
  one.tool === other.tool &&
  JSON.stringify(one.args) === JSON.stringify(other.args);

/** What a replay has otherwise than the request had, which tells why its calls may come to something else. */
interface Otherwise {
  readonly network: boolean;
  readonly fullAccess: boolean;
  readonly ownWord: boolean;
}

/** A call of then beside what it came to now. */
function compared(then: RecordedCall, now: RecordedCall | undefined, otherwise: Otherwise): Rerun {
  const about = { call: then.call, command: shown(then) };
  const [before, after] = [ended(then), now === undefined ? null : ended(now)];
  const not = { ...about, outcome: "not run", then: before, now: null, difference: null } as const;
  if (now === undefined) return { ...not, reason: "the conversation did not come to it" };
  const changed = verdictChange(then, now);
  const difference = differenceOf(then, now);
  if (changed === "" && difference === null && endsTheSame(then, now))
    return { ...about, outcome: "same", then: before, now: after, difference, reason: "" };
  const reason = [changed, why(then, now, otherwise)].filter(Boolean).join("; ");
  return { ...about, outcome: "differs", then: before, now: after, difference, reason };
}

/** How far a command came that somebody ended is of that moment alone; and one that was killed has no end to be compared. */
const wasEnded = ({ end: then }: RecordedCall, { end: now }: RecordedCall): boolean =>
  then === null || (then.kind === "cancelled" && now?.kind === "cancelled");

const differenceOf = (then: RecordedCall, now: RecordedCall): Rerun["difference"] =>
  wasEnded(then, now)
    ? null
    : (firstDifference(withoutNames(then.end?.text), withoutNames(now.end?.text)) ?? null);

const endsTheSame = (then: RecordedCall, now: RecordedCall): boolean =>
  wasEnded(then, now) || (then.end?.kind === now.end?.kind && then.end?.exit_code === now.end?.exit_code);

function verdictChange({ verdict: then }: RecordedCall, { verdict: now }: RecordedCall): string {
  if (then === null || now === null || (then.decision === now.decision && then.runs === now.runs)) return "";
  const words = ({ decision, runs }: typeof then): string => `${decision}, ${runs ? "run" : "not run"}`;
  return `judged otherwise: then ${words(then)}; now ${words(now)}`;
}

function why({ verdict: then }: RecordedCall, { verdict: now }: RecordedCall, otherwise: Otherwise): string {
  if (then?.by === "person" && then.runs && now?.runs === false && !otherwise.ownWord)
    return "a person's yes that stands in a file allows nothing";
  if (otherwise.fullAccess) return "it had full access then, and a replay has workspace-write";
  return otherwise.network ? "it could reach a network then, and a replay has none" : "";
}

/** The names of whole outputs are of one session alone. They stand near the word: a bundle's texts are anybody's. */
export const withoutNames = (text = ""): string =>
  text.replaceAll(/\b(show_full\b[^\n]{0,200}?)\b[a-z0-9]{6,}\b/g, "$1…");

const ended = ({ end }: RecordedCall): Rerun["then"] =>
  end === null ? null : { kind: end.kind, exit_code: end.exit_code };

function shown({ tool, args }: RecordedCall): string {
  const { command, path: file } = args;
  const about =
    typeof command === "string" ? command : typeof file === "string" ? file : JSON.stringify(args);
  return tool === "bash" ? about : `${tool} ${about}`;
}
