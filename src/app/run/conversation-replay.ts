import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { Finished } from "../../agent/agent-run.ts";
import { unattended } from "../../agent/approvers.ts";
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
import {
  type RecordedCall,
  recordedRequests,
  type RecordedRequest,
  type SaidThen,
  scenarioOf,
} from "./recorded-conversation.ts";
import { firstDifference, type Rerun } from "./replay-run.ts";
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
  for (const [index, request] of requests.entries()) {
    await writeFile(file, scenarioOf(request), { mode: 0o600 });
    const before = recordedRequests(eventsOf(session)).length;
    const { finished, thrown } = await play(
      given,
      { settings, session, request, isFirst: index === 0 },
      signal,
    );
    signal.throwIfAborted();
    const now = recordedRequests(eventsOf(session))[before];
    const isSame = tell(given, index + 1, { then: request, now, reason: finished.reason });
    // What this machine lacks is no difference of the conversation: it ends the replay, as it would end a run.
    if (!isSame && thrown !== undefined) throw thrown;
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
}

async function play(
  { host, config, store, workspace, ownWord }: ConversationInput,
  { settings, session, request, isFirst }: Playing,
  signal: AbortSignal,
): Promise<{ readonly finished: Finished; readonly thrown: HarnessError | undefined }> {
  const { intent, check, task, turns, mode, earned } = request;
  const said = ownWord ? request.said : request.said.filter(({ runs }) => !runs);
  const max_turns = turns ?? settings.max_turns;
  const failure: { thrown?: HarnessError } = {};
  // A box that was still beginning when nobody wanted it any more is none.
  const failed = (thrown: unknown): void => {
    if (thrown instanceof HarnessError) failure.thrown ??= thrown;
  };
  const finished = await runTask({
    host,
    settings: {
      ...settings,
      max_turns,
      check: check ?? null,
      // The host's network would be the box's.
      mode: mode === "read-only" ? mode : "workspace-write",
    },
    origins: config.origins,
    flags: {
      json: false,
      quiet: true,
      strict: false,
      passing: true,
      "no-verify": check === undefined,
      ...(intent === undefined ? {} : { intent }),
    },
    limits: new Limits({ turns: max_turns }, () => performance.now()),
    store,
    session,
    resumed: !isFirst,
    workspace,
    prompt: task,
    signal,
    show: { take: () => undefined, end: () => undefined },
    observers: { take: () => undefined, failed, [Symbol.asyncDispose]: noWork },
    replayed: { approver: sayingAgain(said), asks: earned },
  });
  return { finished, thrown: failure.thrown };
}

const noWork = (): Promise<void> => Promise.resolve();

/** What a person said to the same call then; to all others nobody is there. */
function sayingAgain(said: readonly SaidThen[]): Approver {
  const left = [...said];
  const nobody = unattended("contained");
  return {
    ask: (question, signal) => {
      const args = JSON.stringify(question.args);
      const at = left.findIndex((each) => each.tool === question.tool && JSON.stringify(each.args) === args);
      const [found] = at === -1 ? [] : left.splice(at, 1);
      if (found === undefined) return nobody.ask(question, signal);
      const { runs, told } = found;
      const word = told === undefined ? {} : { word: told };
      return Promise.resolve({ runs, by: "person", reason: "", ...word });
    },
  };
}

interface Played {
  readonly then: RecordedRequest;
  readonly now: RecordedRequest | undefined;
  /** Why it ended as it did now. */
  readonly reason: string;
}

/** Gives whether it has come to the same end. */
function tell({ onCall, onEnd }: ConversationInput, request: number, { then, now, reason }: Played): boolean {
  const left = [...(now?.calls ?? [])];
  for (const call of then.calls) {
    const at = left.findIndex((each) => isSameCall(each, call));
    const [again] = at === -1 ? [] : left.splice(at, 1);
    onCall({ request, agent: call.agent, tool: call.tool, ...compared(call, again) });
  }
  for (const call of left)
    onCall({
      request,
      agent: call.agent,
      tool: call.tool,
      ...compared({ ...call, verdict: null, end: null }, call),
      outcome: "differs",
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

const isSameCall = (one: RecordedCall, other: RecordedCall): boolean =>
  one.agent === other.agent &&
  one.tool === other.tool &&
  JSON.stringify(one.args) === JSON.stringify(other.args);

function compared(then: RecordedCall, now: RecordedCall | undefined): Rerun {
  const about = { call: then.call, command: shown(then) };
  const [before, after] = [ended(then), now === undefined ? null : ended(now)];
  const not = { ...about, outcome: "not run", then: before, now: null, difference: null } as const;
  if (now === undefined) return { ...not, reason: "the conversation did not come to it" };
  const reason = verdictChange(then, now);
  const difference = firstDifference(withoutNames(then.end?.text), withoutNames(now.end?.text)) ?? null;
  const same =
    reason === "" &&
    difference === null &&
    before?.kind === after?.kind &&
    before?.exit_code === after?.exit_code;
  return { ...about, outcome: same ? "same" : "differs", then: before, now: after, difference, reason };
}

function verdictChange({ verdict: then }: RecordedCall, { verdict: now }: RecordedCall): string {
  if (then === null || now === null || (then.decision === now.decision && then.runs === now.runs)) return "";
  const words = ({ decision, runs }: typeof then): string => `${decision}, ${runs ? "run" : "not run"}`;
  return `judged otherwise: then ${words(then)}; now ${words(now)}`;
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
