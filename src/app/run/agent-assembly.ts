import type { AgentContext } from "../../agent/agent-context.ts";
import {
  BackgroundTasks,
  type Subagent,
  type SubagentStart,
  WriteOrder,
} from "../../agent/background-tasks.ts";
import { boundResult } from "../../agent/call-result.ts";
import { Compactor, type CompactorOptions } from "../../agent/context/compaction.ts";
import { SUMMARY_SCHEMA } from "../../agent/context/conversation-summary.ts";
import type { History, PromptSize } from "../../agent/context/history.ts";
import { type AnswerGate, PlainAnswer } from "../../agent/ending/outcome.ts";
import { Deeds } from "../../agent/ending/deeds.ts";
import type { EndRules } from "../../agent/ending/end-rules.ts";
import { RunIntent } from "../../agent/ending/intent.ts";
import { Guard, type Limits, Malformed, Spent } from "../../agent/limits.ts";
import { askAside } from "../../agent/model-request.ts";
import { NextReply } from "../../agent/next-reply.ts";
import { foreground, subagent } from "../../agent/subagents.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { Checkpoints, Outputs, Parked } from "../../core/session.ts";
import type { Capabilities, Provider } from "../../core/model-provider.ts";
import { type Plan, planKept } from "../../core/run-record.ts";
import type { Approver, OwnedBox } from "../../core/ports.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { unlessAborted } from "../../platform/waits.ts";
import { cleanStrings } from "../../render/renderers.ts";
import type { TaskPart } from "../../tools/tool-context.ts";
import type { Host } from "../host.ts";
import { isLocalModel } from "../model-access.ts";
import { lazyJudge } from "../project/policy-context.ts";
import type { Sink } from "./event-sink.ts";
import { connectionEvent, LazyBox, readyEvent } from "./lazy-box.ts";
import type { SessionGrants } from "./session-grants.ts";
import type { SessionState } from "./session-state.ts";
import { CanaryTouched, EXIT } from "../../core/errors.ts";
import type { Emit } from "../../core/events.ts";
import { type Connection, installs } from "../../core/network.ts";
import type { BoxOpening } from "../boxes/box-access.ts";
import { clipped } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";

export interface AgentParts {
  readonly host: Host;
  readonly settings: Settings;
  /** Whether the model has few parameters; `reported`: billions of parameters, as its server reports. */
  readonly isWeak: (reported?: number) => boolean;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly outputs: Outputs;
  readonly state: SessionState;
  /** The same for all requests of a session, so that a scenario continues. */
  readonly provider: Provider;
  readonly capabilities: Promise<Capabilities>;
  readonly size: PromptSize;
  readonly sink: Sink;
  readonly box: LazyBox;
  readonly checkpoints: Checkpoints;
  /** Left out if the model is told nothing of the workspace. */
  readonly briefing?: AgentContext["briefing"];
  readonly limits: Limits;
  readonly approver: Approver;
  readonly grants: Pick<SessionGrants, "domains" | "grant">;
  /** Left out if any answer will do. */
  readonly answer?: AnswerGate;
  /** Left out or null if a person, or another agent, reads every answer. */
  readonly ends?: EndRules | null;
  /** The parked run that is resumed. */
  readonly parked?: Parked;
  readonly boxNote?: string | undefined;
  readonly signal: AbortSignal;
}

/** The context of one request; heavy parts are loaded on first use. */
export async function agentContext(parts: AgentParts): Promise<AgentContext> {
  const { settings, workspace, state, box, sink, parked, signal } = parts;
  const judge = lazyJudge(parts.host, settings, workspace, parts.grants.domains);
  const { memory } = state;
  const { history } = memory;
  const capabilities = await parts.capabilities;
  const local = isLocalModel(parts.host, settings);
  const isWeak = parts.isWeak(capabilities.parameters);
  const showPlan = (plan: Plan): void => sink.emit({ type: "plan", steps: plan });
  state.planTo(showPlan);
  const { begin, tasks } = childrenOf(parts, () => context, capabilities);
  const kept = (): string => [planKept(memory.plan), tasks.kept()].filter((text) => text !== "").join("\n\n");
  const context: AgentContext = {
    model: settings.chat_model,
    isWeak,
    provider: local ? parts.provider : withoutSecrets(parts.provider),
    mode: settings.mode,
    limits: parts.limits,
    spent: new Spent(parked?.spent.usage),
    checkpoints: parts.checkpoints,
    judge,
    approver: parts.approver,
    grant: parts.grants.grant,
    outputs: parts.outputs,
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
    size: parts.size,
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
  state.workedOnBy({ isWeak, judge, mode: settings.mode });
  state.subagentsBy({
    run: foreground(begin, parked?.children ?? []),
    begin: (part, signal) => tasks.begin(part, signal),
    look: (look, signal) => tasks.look(look, signal),
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

type AgentBoxOpening = Omit<BoxOpening, "watchChanges">;

/** The box of one run: it starts when it is first needed, and events of the run report it. */
export function runBox(opening: Omit<AgentBoxOpening, "onConnection">, emit: Emit, remedy?: string): LazyBox {
  const { settings, warn } = opening;
  const onConnection = (connection: Connection): void => emit(connectionEvent(connection));
  return new LazyBox(
    (signal, end) => agentBox({ ...opening, onConnection }, { emit, end }, signal),
    (ms, ready) => emit(readyEvent(ms, ready)),
    {
      ...(remedy === undefined ? {} : { remedy }),
      warn,
      tell: (text) => emit({ type: "notice", text }),
      installs: settings.allow_domains.some(installs),
    },
  );
}

export interface CanaryWatch {
  readonly emit: Emit;
  /** Ends the run. */
  readonly end: (why: CanaryTouched) => void;
}

/** A box that an agent works in: its changes are watched, and it holds canaries unless the settings want none. */
export async function agentBox(
  opening: AgentBoxOpening,
  watch: CanaryWatch,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const { openBoxFor } = await import("../boxes/box-access.ts");
  const box = await openBoxFor({ ...opening, watchChanges: true }, signal);
  return opening.settings.canaries ? withCanaries(box, watch) : box;
}

/** The box with canaries in it; a touch by any of its commands is reported, and ends the run. */
async function withCanaries(box: OwnedBox, { emit, end }: CanaryWatch): Promise<OwnedBox> {
  const { canaryBox, plantCanaries } = await import("../../boxes/canaries.ts");
  const canaries = await plantCanaries(box);
  return canaryBox(box, canaries, ({ canary, path, command, by }) => {
    const programs = by.map((words) => commandText(words));
    emit({ type: "canary", canary, path: visibleLine(path), command: commandText(command), by: programs });
    const way = programs.length === 0 ? "" : `, by ${programs.join(" > ")}`;
    end(new CanaryTouched(EXIT.failed, `A canary was touched: ${canary} (${visibleLine(path)})${way}`));
  });
}

const MAX_COMMAND_LENGTH = 200;

function commandText(words: readonly string[]): string {
  const line = visibleLine(words.join(" "));
  return clipped(line, MAX_COMMAND_LENGTH);
}
