import type { AgentContext } from "../../agent/agent-context.ts";
import { type EarlierAnswers, refusedBy, remembering } from "../../agent/approvers.ts";
import {
  BackgroundTasks,
  type Subagent,
  type SubagentStart,
  WriteOrder,
} from "../../agent/background-tasks.ts";
import { boundResult } from "../../agent/call-result.ts";
import { Compactor, type CompactorOptions } from "../../agent/context/compaction.ts";
import { SUMMARY_SCHEMA } from "../../agent/context/conversation-summary.ts";
import { Deeds } from "../../agent/ending/deeds.ts";
import type { EndRules } from "../../agent/ending/end-rules.ts";
import { RunIntent } from "../../agent/ending/intent.ts";
import { type AnswerGate, PlainAnswer } from "../../agent/ending/outcome.ts";
import type { History } from "../../agent/context/history.ts";
import { Guard, type Limits, Malformed, Spent } from "../../agent/limits.ts";
import { askAside } from "../../agent/model-request.ts";
import { NextReply } from "../../agent/next-reply.ts";
import { foreground, subagent } from "../../agent/subagents.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { Emit } from "../../core/events.ts";
import type { Capabilities, Provider } from "../../core/model-provider.ts";
import type { AnswerGrant } from "../../core/network.ts";
import type { Approver, Box } from "../../core/ports.ts";
import { type Plan, planKept } from "../../core/run-record.ts";
import { maskSecrets } from "../../core/secrets.ts";
import {
  type Checkpoints,
  type Parked,
  type Session,
  type SessionStore,
  settledIn,
} from "../../core/session.ts";
import type { Extensions } from "../../core/tool.ts";
import { unlessAborted } from "../../platform/waits.ts";
import { cleanStrings, type Renderer } from "../../render/renderers.ts";
import type { TaskPart } from "../../tools/tool-context.ts";
import type { Host } from "../host.ts";
import { isLocalModel, type ModelClient } from "../model-access.ts";
import { lazyJudge } from "../project/policy-context.ts";
import { runSink, type Sink, type WaitingSink, waitingSink } from "./event-sink.ts";
import type { LazyBox } from "./lazy-box.ts";
import { requestedModel, smallModelEvent } from "./person-request.ts";
import { type Observers, observersFor } from "./run-observers.ts";
import { type HarnessRequests, SessionGrants } from "./session-grants.ts";
import {
  runIndex,
  type SessionPrompt,
  sessionPrompt,
  type SessionState,
  sessionState,
  type SessionStateParts,
} from "./session-state.ts";

/**
 * How work on a session is composed: the same for a run, a request of a chat, a replay, and the calls of another agent.
 * The parts are opened in this order, and closed in the opposite one:
 *
 * - events: what observes and shows them, the audit and the log, behind one sink (`openEvents`)
 * - checkpoints of the workspace (`checkpointsFor`)
 * - the box in which calls run (`agentBox`)
 * - what users added: hooks, servers, skills and tools (`openExtensions`)
 * - the session: search, prompt, memory and tools (`openSession`)
 * - the agent: model, policy, grants, approver and limits (`agentContext`)
 *
 * A run opens each of them once. A chat keeps its box, its extensions and its session, and opens the rest for each
 * request; what is served to another agent keeps its session, and opens the rest for each box.
 */

/** What all parts are opened with. */
export interface SessionParts {
  readonly host: Host;
  readonly settings: Settings;
  /** The origin of each setting. */
  readonly origins: Config["origins"];
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly store: SessionStore;
  readonly session: Session;
  /** The session was worked on before. */
  readonly resumed: boolean;
  readonly warn: (text: string) => void;
}

export interface RunEvents extends WaitingSink, AsyncDisposable {
  /** Records what ended a run, or a part of one, for diagnosis. */
  readonly failed: Observers["failed"];
}

/** The events of one run: observed, shown, audited and stored. `shared` observers are left open. */
export async function openEvents(
  parts: SessionParts & { readonly flags?: { readonly candidate?: number } },
  show: Renderer,
  shared?: Observers,
): Promise<RunEvents> {
  await using opened = new AsyncDisposableStack();
  const observers = shared ?? opened.use(await observersFor(parts));
  opened.defer(() => show.end());
  const sink = runSink(parts, (event) => {
    show.take(event);
    observers.take(event);
  });
  const closing = opened.move();
  return {
    ...waitingSink(sink),
    failed: observers.failed,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** What lasts from request to request of a session. */
export interface OpenSession extends AsyncDisposable {
  readonly extensions: Extensions;
  readonly systemPrompt: SessionPrompt;
  readonly state: SessionState;
}

interface SessionOptions extends Pick<SessionStateParts, "person" | "passing" | "waits"> {
  readonly extensions: Extensions;
  /** The box of the run, or of the request being worked on. */
  readonly box: () => Promise<Box>;
  /** The current settings, if they change from request to request. */
  readonly current?: () => Settings;
}

export async function openSession(
  parts: SessionParts,
  { extensions, box, current = () => parts.settings, ...own }: SessionOptions,
): Promise<OpenSession> {
  const index = runIndex({ ...parts, settings: current, session: parts.session.id, box });
  const systemPrompt = await sessionPrompt(parts.host, parts.settings, parts.workspace, extensions.prompt);
  const state = sessionState({ ...parts, ...own, prompt: systemPrompt.text, index, extensions });
  return { extensions, systemPrompt, state, [Symbol.asyncDispose]: () => index[Symbol.asyncDispose]() };
}

/** The model that a request asks. */
export interface AskedModel extends ReturnType<typeof requestedModel> {
  /** The same for all requests of a session, so that a scenario continues. */
  readonly provider: Provider;
  readonly capabilities: Promise<Capabilities>;
}

/** Its server is asked about the model while everything else is prepared. */
export const askedModel = (
  client: ModelClient,
  about: Parameters<typeof requestedModel>[0] & { readonly signal: AbortSignal },
  provider = client.provider(),
): AskedModel => ({
  ...requestedModel(about),
  provider,
  capabilities: client.capabilities(about.settings.chat_model, about.signal),
});

export async function tellIfSmall(model: AskedModel, emit: Emit): Promise<void> {
  const event = smallModelEvent(model, (await model.capabilities).parameters);
  if (event !== undefined) emit(event);
}

interface AgentParts extends SessionParts, Pick<OpenSession, "state"> {
  readonly sink: Sink;
  readonly checkpoints: Checkpoints;
  readonly box: LazyBox;
  readonly model: AskedModel;
  readonly limits: Limits;
  /** Asked what no earlier answer in the session settles. */
  readonly approver: Approver;
  /** The answer to the question for which the run was parked. */
  readonly once?: EarlierAnswers["once"] | undefined;
  /** Requests of the harness itself, to which a person's grants apply, too; left out if there are none. */
  readonly requests?: HarnessRequests;
  /** Keeps a person's grant for longer than a call; left out if the session's records are enough. */
  readonly keepGrant?: (grant: AnswerGrant) => Promise<void>;
  /** Left out if the model is told nothing of the workspace. */
  readonly briefing?: AgentContext["briefing"];
  /** Left out if any answer will do. */
  readonly answer?: AnswerGate;
  /** Left out or null if a person, or another agent, reads every answer. */
  readonly ends?: EndRules | null;
  /** The parked run that is resumed. */
  readonly parked?: Parked | undefined;
  readonly boxNote?: string | undefined;
  readonly signal: AbortSignal;
}

/** The context of one request; heavy parts are loaded on first use. */
export async function agentContext(parts: AgentParts): Promise<AgentContext> {
  const { host, settings, workspace, session, state, box, sink, model, parked, signal } = parts;
  const grants = new SessionGrants(parts);
  const judge = lazyJudge(host, settings, workspace, grants.domains);
  const { memory } = state;
  const { history } = memory;
  const capabilities = await model.capabilities;
  const local = isLocalModel(host, settings);
  const isWeak = model.isWeak(capabilities.parameters);
  const showPlan = (plan: Plan): void => sink.emit({ type: "plan", steps: plan });
  const { begin, tasks } = childrenOf(parts, () => context, capabilities);
  const kept = (): string => [planKept(memory.plan), tasks.kept()].filter((text) => text !== "").join("\n\n");
  const context: AgentContext = {
    model: settings.chat_model,
    isWeak,
    provider: local ? model.provider : withoutSecrets(model.provider),
    mode: settings.mode,
    limits: parts.limits,
    spent: new Spent(parked?.spent.usage),
    checkpoints: parts.checkpoints,
    judge,
    approver: remembering({ always: settledIn(session.records()), once: parts.once }, parts.approver),
    grant: grants.grant,
    outputs: session.outputs,
    box: () => unlessAborted(box.box(), signal),
    warm: () => {
      box.warm();
      setTimeout(() => void judge().catch(() => undefined), ENGINE_AT_WORK_MS).unref();
    },
    noBox: box.noBox,
    recovery: box,
    ...(parts.boxNote === undefined ? {} : { boxNote: parts.boxNote }),
    tasks,
    writes: new WriteOrder(),
    ended: [...(parked?.ended ?? [])],
    onceParked: [],
    now: () => performance.now(),
    hooks: state.hooks,
    clean: local ? (text) => text : maskSecrets,
    get tools() {
      return state.tools;
    },
    get offers() {
      return state.offers;
    },
    intent: new RunIntent(),
    history,
    rollBack: (to) => {
      const { plan } = memory;
      memory.rollBack(to);
      sink.emit({ type: "rolled_back", record_count: history.count });
      if (memory.plan !== plan) showPlan(memory.plan);
    },
    size: state.sizeFor(settings.chat_model),
    compactor: compactorFor(() => context, history, { ...capabilities, kept }),
    guard: new Guard(),
    malformed: new Malformed(),
    answer: parts.answer ?? new PlainAnswer(),
    ends: parts.ends ?? null,
    next: new NextReply(settings.temperature),
    deeds: new Deeds(parked?.ended),
    briefing: parts.briefing ?? (() => Promise.resolve(undefined)),
    emit: sink.emit,
  };
  state.beginRequest({
    isWeak,
    refused: refusedBy(judge, settings.mode),
    planned: showPlan,
    subagents: {
      run: foreground(begin, parked?.children ?? []),
      begin: (part, signal) => tasks.begin(part, signal),
      look: (look, signal) => tasks.look(look, signal),
    },
  });
  return context;
}

/** Starts subagents, and keeps those that run in the background. */
function childrenOf(
  { state, sink, workspace, parked }: AgentParts,
  context: () => AgentContext,
  capabilities: Capabilities,
): { readonly begin: (part: TaskPart, how: SubagentStart) => Subagent; readonly tasks: BackgroundTasks } {
  const { memory } = state;
  const begin = (part: TaskPart, how: SubagentStart): Subagent =>
    subagent(
      {
        parent: context(),
        prompt: memory.history.pinned ?? "",
        emit: sink.forChild,
        compactor: (child, own) => compactorFor(child, own, capabilities),
        memory: (child) => memory.child(workspace, child),
        tools: state.childTools,
      },
      part,
      how,
    );
  const tasks = new BackgroundTasks({
    begin,
    parked: parked?.children ?? [],
    memory: memory.tasks,
    bounded: (result) => boundResult(context(), result),
    notice: (text) => sink.emit({ type: "notice", text }),
    now: () => performance.now(),
  });
  return { begin, tasks };
}

/** After this time the engine has been asked for a box, which leaves time to load the policy. */
const ENGINE_AT_WORK_MS = 40;

/**
 * Masks what looks like a secret in all messages to the provider, because the history may hold texts that were shown
 * only to a local model. The same text is masked the same way in every request.
 */
export const withoutSecrets = (provider: Provider): Provider => ({
  stream: (request, signal) =>
    provider.stream({ ...request, messages: cleanStrings(request.messages, maskSecrets) }, signal),
  capabilities: (model, signal) => provider.capabilities(model, signal),
});

/** The most tokens of the window that are reserved for the reply; never more than a quarter of the window. */
const MAX_REPLY_TOKENS = 8192;

/** A summary that was cut off lacks its last part. */
const CUT = { kind: "cut", reason: "the summary was cut at its length limit", remedy: "" } as const;

/** Keeps an agent's history within its model's window. */
function compactorFor(
  agent: () => AgentContext,
  history: History,
  { context, origin, kept }: Pick<Capabilities, "context" | "origin"> & Pick<CompactorOptions, "kept">,
): Compactor {
  return new Compactor(history, {
    window: context - Math.min(MAX_REPLY_TOKENS, Math.floor(context / 4)),
    // The table's window for a model family is only a better guess.
    known: origin.context !== "guess" && origin.context !== "table",
    tokens: (messages) => agent().size.tokens(messages),
    summarise: async (messages, signal) => {
      const reply = await askAside(
        agent(),
        { messages, format: SUMMARY_SCHEMA, purpose: "compaction" },
        signal,
      );
      if (reply.kind === "failed") return reply.failure;
      return reply.stop === "length" ? CUT : reply.message.text;
    },
    emit: (event) => agent().emit(event),
    now: () => agent().now(),
    ...(kept === undefined ? {} : { kept }),
    keep: (trigger, signal) => agent().hooks.compacting(trigger, { emit: agent().emit, signal }),
  });
}
