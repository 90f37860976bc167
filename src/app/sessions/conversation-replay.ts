import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { Finished } from "../../agent/agent-run.ts";
import { Limits } from "../../agent/limits.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { HarnessError } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Approver } from "../../core/ports.ts";
import { eventsOf, type Session, type SessionStore } from "../../core/session.ts";
import type { Host } from "../host.ts";
import { passingSession, removeLayer } from "./session-changes.ts";
import { aboutSession } from "./session-access.ts";
import {
  PastInterrupt,
  type RecordedAnswer,
  recordedApprover,
  type RecordedCall,
  recordedPerson,
  type RecordedRequest,
  recordedRequests,
  scenarioOf,
  type UndoEvent,
} from "./recorded-conversation.ts";
import { firstDifference, ReplayedChat, type Rerun } from "./replay-run.ts";
import { runTask } from "../run/run-task.ts";
import { noteTo } from "../stderr-messages.ts";

/** A replayed call of a conversation. */
export interface ReplayedCall extends Rerun {
  /** Starts at 1. */
  readonly request: number;
  readonly agent: string | null;
  readonly tool: string;
}

/** How a replayed request ended. */
export interface ReplayedEnd {
  readonly request: number;
  readonly outcome: "same" | "differs";
  readonly then: RecordedRequest["end"];
  readonly now: RecordedRequest["end"];
  /** Why it ended differently now; empty if it did not. */
  readonly reason: string;
}

interface ConversationInput {
  readonly host: Host;
  readonly config: Pick<Config, "settings" | "origins">;
  readonly store: SessionStore;
  /** The recorded events, in order. */
  readonly events: Iterable<AgentEvent>;
  /**
   * Whether calls that a person allowed then are allowed now. True for a session of this state folder, because the
   * answers were given here. Anybody can write an event file: its refusals count, but its approvals are ignored.
   */
  readonly ownWord: boolean;
  /** The folder of the replay, absolute and resolved. */
  readonly workspace: string;
  readonly isolation: "overlay" | "copy";
  readonly onCall: (call: ReplayedCall) => void;
  readonly onEnd: (end: ReplayedEnd) => void;
}

/**
 * Plays the requests of a session again: with the loop of a run and the recorded replies. Calls are judged by today's
 * rules and made in a layer over the folder. Nothing of it stays. The replay has no network, no secrets, and nothing
 * that users added: no hooks, servers or tools.
 */
export async function replayConversation(input: ConversationInput, signal: AbortSignal): Promise<void> {
  const { host, store, events, workspace, isolation } = input;
  const requests = recordedRequests(events);
  const prompt = `replay of: ${requests[0]?.task ?? ""}`;
  const shape = shapeOf(input.config.settings, isolation);
  await using passing = await passingSession(host, store, aboutSession(shape, { workspace, prompt }));
  const { session, folder } = passing;
  const file = path.join(folder, "replies.jsonl");
  const settings = { ...shape, chat_model: file };
  const failure: { thrown?: HarnessError } = {};
  // A box that failed to start after nobody needed it any more is not a failure.
  const failed = (thrown: unknown): void => {
    if (thrown instanceof HarnessError) failure.thrown ??= thrown;
  };
  const { origins } = input.config;
  await using chat = new ReplayedChat({ host, origins, store, session, workspace, failed });
  for (const [index, request] of requests.entries()) {
    await writeFile(file, scenarioOf(request), { mode: 0o600 });
    const before = recordedRequests(eventsOf(session)).length;
    const playing = { settings, session, request, isFirst: index === 0, chat, failed };
    const reason = await play(input, playing, signal);
    signal.throwIfAborted();
    const now = recordedRequests(eventsOf(session))[before];
    const isSame = report(input, index + 1, { then: request, now, reason });
    // Something that this machine lacks is no difference of the conversation: it ends the replay, as it would end a
    // run.
    if (!isSame && failure.thrown !== undefined) throw failure.thrown;
    delete failure.thrown;
    await repeatUndo(input, playing, request, index + 1);
  }
}

/** A replay gets no network and no secrets, even if the session had them. */
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

/** Anybody can write an event file, so its approvals are ignored. */
const answersIn = ({ ownWord }: ConversationInput, { answers }: RecordedRequest): readonly RecordedAnswer[] =>
  ownWord ? answers : answers.filter(({ runs }) => !runs);

/** Plays one request; returns why it ended as it did. */
async function play(input: ConversationInput, playing: Playing, signal: AbortSignal): Promise<string> {
  const { request, chat } = playing;
  using past = new PastInterrupt(request);
  const either = AbortSignal.any([signal, past.signal]);
  const show = (event: AgentEvent): void => past.take(event);
  const { task: text, mode, turns, freshBox, calls } = request;
  // With full access the box would have the host's network.
  const settings: Settings = {
    ...playing.settings,
    max_turns: turns ?? playing.settings.max_turns,
    check: request.check ?? null,
    mode: mode === "read-only" ? mode : "workspace-write",
  };
  const approver = recordedApprover({ answers: answersIn(input, request), chat: request.chat });
  if (!request.chat) {
    await chat.rest();
    return (await playRun(input, { ...playing, settings }, { approver, show, signal: either })).reason;
  }
  const person = recordedPerson(calls);
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
    warn: noteTo(true),
    prompt: task,
    signal,
    show: { take: show, end: () => undefined },
    observers: { take: () => undefined, failed, [Symbol.asyncDispose]: noWork },
    replayed: { approver, asks: earned, model },
  });
}

const noWork = (): Promise<void> => Promise.resolve();

/** Repeats what a person took back after a request; reports what cannot be repeated. */
async function repeatUndo(
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

const undoneWords = ({ to }: Extract<UndoEvent, { readonly type: "files.undone" }>): string =>
  to === null ? "files brought back" : `files taken back to step ${to}`;

const NOT_UNDONE = {
  agent: null,
  tool: "undo",
  call: "",
  outcome: "not run",
  then: null,
  now: null,
  difference: null,
  reason: "only an undo of all changes of the session is repeated: what follows may differ because of this",
} as const;

const replayDifferences = (
  { ownWord }: ConversationInput,
  { network, mode }: RecordedRequest,
): ReplayDifferences => ({
  network,
  fullAccess: mode === "danger-full-access",
  ownWord,
});

interface Played {
  readonly then: RecordedRequest;
  readonly now: RecordedRequest | undefined;
  /** Why the request ended as it did now. */
  readonly reason: string;
}

/** Reports the differences; returns whether the request came to the same end. */
function report(input: ConversationInput, request: number, { then, now, reason }: Played): boolean {
  const { onCall, onEnd } = input;
  const left = [...(now?.calls ?? [])];
  for (const call of then.calls) {
    const at = left.findIndex((each) => isSameCall(each, call));
    const [again] = at === -1 ? [] : left.splice(at, 1);
    onCall({
      request,
      agent: call.agent,
      tool: call.tool,
      ...compareCall(call, again, replayDifferences(input, then)),
    });
  }
  for (const call of left)
    onCall({
      request,
      agent: call.agent,
      tool: call.tool,
      call: call.call,
      command: callText(call),
      outcome: "differs",
      then: null,
      now: endOf(call),
      difference: null,
      reason: "the recorded run did not make it",
    });
  const end = now?.end ?? null;
  const isSame = isSameEnd(then.end, end);
  const outcome = isSame ? "same" : "differs";
  onEnd({ request, outcome, then: then.end, now: end, reason: isSame ? "" : reason });
  return isSame;
}

/** A killed request has no end to compare. */
const isSameEnd = (then: RecordedRequest["end"], now: RecordedRequest["end"]): boolean =>
  then === null || (then.status === now?.status && then.exit_code === now.exit_code);

/** Whether both are the same call of the conversation. */
const isSameCall = (one: RecordedCall, other: RecordedCall): boolean =>
  one.agent === other.agent &&
  one.tool === other.tool &&
  JSON.stringify(one.args) === JSON.stringify(other.args);

/** How a replay differs from the original request, which explains why its calls may end differently. */
interface ReplayDifferences {
  readonly network: boolean;
  readonly fullAccess: boolean;
  readonly ownWord: boolean;
}

/** Compares a recorded call with its replay. */
function compareCall(then: RecordedCall, now: RecordedCall | undefined, otherwise: ReplayDifferences): Rerun {
  const about = { call: then.call, command: callText(then) };
  const [before, after] = [endOf(then), now === undefined ? null : endOf(now)];
  const not = { ...about, outcome: "not run", then: before, now: null, difference: null } as const;
  if (now === undefined) return { ...not, reason: "the conversation did not get that far" };
  const changed = verdictChange(then, now);
  const difference = differenceOf(then, now);
  if (changed === "" && difference === null && endsTheSame(then, now))
    return { ...about, outcome: "same", then: before, now: after, difference, reason: "" };
  const reason = [changed, differenceReason(then, now, otherwise)].filter(Boolean).join("; ");
  return { ...about, outcome: "differs", then: before, now: after, difference, reason };
}

/**
 * Whether the outputs cannot be compared: a cancelled command got as far as it happened to, and a killed one has no
 * end.
 */
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
  return `judged differently: then ${words(then)}; now ${words(now)}`;
}

function differenceReason(
  { verdict: then }: RecordedCall,
  { verdict: now }: RecordedCall,
  otherwise: ReplayDifferences,
): string {
  if (then?.by === "person" && then.runs && now?.runs === false && !otherwise.ownWord)
    return "a person's approval in a file allows nothing";
  if (otherwise.fullAccess) return "it had full access then, and a replay has workspace-write";
  return otherwise.network ? "it could reach a network then, and a replay has none" : "";
}

/**
 * Removes the names of whole outputs, which are unique to a session. Only names near `show_full` count, because anybody
 * can write the texts of a bundle.
 */
export const withoutNames = (text = ""): string =>
  text.replaceAll(/\b(show_full\b[^\n]{0,200}?)\b[a-z0-9]{6,}\b/g, "$1…");

const endOf = ({ end }: RecordedCall): Rerun["then"] =>
  end === null ? null : { kind: end.kind, exit_code: end.exit_code };

function callText({ tool, args }: RecordedCall): string {
  const { command, path: file } = args;
  const about =
    typeof command === "string" ? command : typeof file === "string" ? file : JSON.stringify(args);
  return tool === "bash" ? about : `${tool} ${about}`;
}
