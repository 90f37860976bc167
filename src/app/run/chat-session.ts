import type { AgentContext } from "../../agent/agent-context.ts";
import { type Finished, runRequest } from "../../agent/agent-run.ts";
import { remembering } from "../../agent/approvers.ts";
import { networkOf } from "../../agent/context/prompt.ts";
import { PromptSize } from "../../agent/context/history.ts";
import { Limits } from "../../agent/limits.ts";
import type { Memory } from "../../agent/context/memory.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import {
  type Checkpoints,
  lastStep,
  NO_CHECKPOINTS,
  type Session,
  type SessionStore,
  settledIn,
} from "../../core/session.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent, Emit } from "../../core/events.ts";
import type { Extensions } from "../../core/tool.ts";
import { type Connection, type AnswerGrant, installs } from "../../core/network.ts";
import type { Provider, Usage } from "../../core/model-provider.ts";
import {
  boxNote,
  type RequestedModel,
  requestedModel,
  modeNote,
  networkNote,
  smallModelEvent,
  undoNote,
} from "./person-request.ts";
import type { Approver, Box, Index, OwnedBox } from "../../core/ports.ts";
import { NO_USAGE, sumUsage } from "../../models/token-usage.ts";
import { unlessAborted } from "../../platform/waits.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import { checkpointsFor, undoneSteps } from "../sessions/checkpoint-access.ts";
import { logAfterEnd } from "../sessions/session-access.ts";
import { type HarnessRequests, SessionGrants } from "./session-grants.ts";
import type { Host } from "../host.ts";
import type { ModelClient } from "../model-access.ts";
import { agentContext, type CanaryWatch } from "./agent-assembly.ts";
import { runSink, type Sink, startedEvent } from "./event-sink.ts";
import { connectionEvent, LazyBox, readyEvent } from "./lazy-box.ts";
import { giveUpFrozen } from "./run-task.ts";
import {
  briefingFrom,
  type SessionPrompt,
  sessionPrompt,
  type SessionState,
  sessionState,
} from "./session-state.ts";

/** One session that a chat continues. */
export class Conversation {
  readonly session: Session;
  readonly state: SessionState;
  readonly prompt: SessionPrompt;
  readonly resumed: boolean;
  readonly extensions: Pick<Extensions, "ready">;
  /** Usage of all requests of the session, including earlier ones. */
  usage: Usage;
  /** A lower bound of tokens: only what was counted. */
  counted: { readonly prompt: number; readonly completion: number };
  /** The number of messages whose box no longer exists; undefined if no box was closed. */
  boxless: number | undefined;
  #size: { readonly model: string; readonly size: PromptSize } | undefined;

  constructor(parts: Pick<Conversation, "session" | "state" | "prompt" | "resumed" | "extensions">) {
    this.session = parts.session;
    this.state = parts.state;
    this.prompt = parts.prompt;
    this.resumed = parts.resumed;
    this.extensions = parts.extensions;
    const turns = parts.session.records().flatMap((each) => (each.kind === "turn" ? [each.result] : []));
    this.usage = turns.reduce((sum, { usage }) => sumUsage(sum, usage), NO_USAGE);
    this.counted = turns.reduce((sum, { usage }) => withCounted(sum, usage), { prompt: 0, completion: 0 });
  }

  get memory(): Memory {
    return this.state.memory;
  }

  /** A person has taken back everything after this record. */
  takeBack(to: number): void {
    this.memory.rollBack(to);
    logAfterEnd(this.session, { type: "rolled_back", record_count: to });
  }

  forget(): void {
    this.memory.clear();
    logAfterEnd(this.session, { type: "rolled_back", record_count: 0 });
  }

  spend(usage: Usage): void {
    this.usage = sumUsage(this.usage, usage);
    this.counted = withCounted(this.counted, usage);
  }

  /** What was learnt of a model's token count stays until another model is asked. */
  sizeFor(model: string): PromptSize {
    if (this.#size?.model !== model)
      this.#size = { model, size: new PromptSize(model, () => this.state.offers) };
    return this.#size.size;
  }
}

const withCounted = (
  { prompt, completion }: Conversation["counted"],
  { prompt_tokens, completion_tokens }: Usage,
): Conversation["counted"] => ({
  prompt: prompt + (prompt_tokens ?? 0),
  completion: completion + (completion_tokens ?? 0),
});

export interface ConversationParts {
  readonly host: Host;
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly settings: Settings;
  readonly workspace: string;
  /** Finds code, when it is asked. */
  readonly index: Index;
  readonly extensions: Extensions;
  readonly person?: AskPerson | undefined;
  /** Nothing of the conversation is to be kept. */
  readonly passing?: boolean;
}

export async function openConversation(parts: ConversationParts): Promise<Conversation> {
  const {
    host,
    store,
    session,
    resumed,
    settings,
    workspace,
    index,
    extensions,
    person,
    passing = false,
  } = parts;
  const prompt = await sessionPrompt(host, settings, workspace, extensions.prompt);
  const timeoutMs = settings.timeout;
  if (resumed) await giveUpFrozen(host, session);
  const state = sessionState({
    session,
    store,
    workspace,
    timeoutMs,
    prompt: prompt.text,
    index,
    extensions,
    person,
    passing,
  });
  return new Conversation({ session, state, prompt, resumed, extensions });
}

const REMEDY = "send the message again; a new box will start";

interface OpenBox {
  readonly box: LazyBox;
  readonly conversation: Conversation;
  /** The session's last step before the box began; undefined if the box began with another session. */
  readonly since: number | undefined;
  readonly briefing: AgentContext["briefing"];
}

type BoxStart = (signal: AbortSignal, session: string, watch: CanaryWatch) => Promise<OwnedBox>;

/** The box of a chat: one for all its requests, until it is lost or must be replaced. */
export class ChatBox implements AsyncDisposable {
  readonly #start: BoxStart;
  readonly #shared: boolean;
  readonly #ending = new AbortController();
  #open: OpenBox | undefined;
  /** Called when the box is ready. */
  onReady: ConstructorParameters<typeof LazyBox>[1] = () => undefined;
  /** Called with the connections that the box made or was refused; set by the current request. */
  onConnection: (connection: Connection) => void = () => undefined;
  /** Receives the event of a touched canary. */
  emit: Emit = () => undefined;

  /** `shared`: one box serves any session. */
  constructor(start: BoxStart, shared: boolean) {
    this.#start = start;
    this.#shared = shared;
  }

  /** The box for the next request. A box that could not start, or is lost, is replaced. */
  async for(conversation: Conversation): Promise<Omit<OpenBox, "conversation">> {
    if (this.#open?.box.noBox.aborted === true) await this.close();
    if (this.#open?.conversation === conversation) return this.#open;
    if (!this.#shared) await this.close();
    const start: ConstructorParameters<typeof LazyBox>[0] = (signal, end) =>
      this.#start(signal, conversation.session.id, { emit: (event) => this.emit(event), end });
    const box =
      this.#open?.box ??
      new LazyBox(start, (ms, ready) => this.onReady(ms, ready), {
        remedy: REMEDY,
        tell: (text) => this.emit({ type: "notice", text }),
      });
    const { history } = conversation.memory;
    const briefing = briefingFrom(box, conversation.prompt, { history, signal: this.#ending.signal });
    const since = this.#open === undefined ? lastStep(conversation.session.steps) : undefined;
    this.#open = { box, conversation, since, briefing };
    return this.#open;
  }

  /** The box of the current request. */
  readonly now = (): Promise<Box> =>
    this.#open?.box.box() ?? Promise.reject(new HarnessError(EXIT.sandbox, "the chat has no box", REMEDY));

  get isHeld(): boolean {
    return this.#open !== undefined && !this.#open.box.noBox.aborted;
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    if (open?.box.isUsed === true) open.conversation.boxless = open.conversation.memory.history.count;
    await open?.box[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the chat has ended"));
    await this.close();
  }
}

export interface TurnInput {
  readonly host: Host;
  readonly settings: Settings;
  /** The origin of each setting. */
  readonly origins: Config["origins"];
  readonly workspace: string;
  readonly store: SessionStore;
  readonly conversation: Conversation;
  readonly box: ChatBox;
  readonly requests: HarnessRequests;
  readonly model: ModelClient;
  /** In a replay: the model that replied then. */
  readonly recorded?: RequestedModel | undefined;
  readonly provider: Provider;
  readonly approver: Approver;
  /** Makes a person's grant last for the rest of the chat, or longer. */
  readonly keepGrant: (grant: AnswerGrant) => Promise<void>;
  readonly warn: (text: string) => void;
  readonly show: (event: AgentEvent) => void;
  readonly signal: AbortSignal;
}

/** Runs one request of a person to its end. If it throws, the history is as it was before. */
export async function chatTurn(input: TurnInput, text: string): Promise<Finished> {
  const { settings, workspace, conversation, box, signal } = input;
  const { session, memory } = conversation;
  const sink = sinkOfTurn(input);
  const resumed = conversation.resumed || memory.history.count > 0;
  const { store } = input;
  const open = await box.for(conversation);
  const { since } = open;
  const parts = { host: input.host, settings, workspace, session, store, emit: sink.emit, resumed, since };
  await using checkpoints = await checkpointsFor(parts);
  const capabilities = input.model.capabilities(settings.chat_model, signal);
  const agent = await turnContext(input, { sink, checkpoints, capabilities });
  const before = memory.history.count;
  sink.emit(startedEvent({ settings, session, resumed, workspace, task: text, chat: true }));
  const small = smallModelEvent(
    requestedModel({ settings, replayed: undefined }),
    (await capabilities).parameters,
  );
  if (small !== undefined) sink.emit(small);
  try {
    await unlessAborted(Promise.resolve(conversation.extensions.ready?.()), signal);
    if (settings.allow_domains.some(installs)) await open.box.countPackages(signal);
    const finished = await runRequest(
      agent,
      {
        prompt: text,
        note: await notesFor(input),
        strict: false,
        session: session.id,
        takesBack: true,
        workedBefore: memory.history.messages.some(({ role }) => role === "tool"),
        changes: () => open.box.changes(checkpoints, signal),
        record: (each) => session.append(each),
        leave: () => open.box.log(),
        workspace,
      },
      signal,
    );
    conversation.spend(finished.usage);
    return finished;
  } catch (thrown) {
    agent.rollBack(before);
    throw thrown;
  }
}

/** Summarises the older part of the conversation; returns whether it is shorter now. Events report the outcome. */
export async function compactNow(input: TurnInput): Promise<boolean> {
  const capabilities = input.model.capabilities(input.settings.chat_model, input.signal);
  const sink = sinkOfTurn(input);
  const agent = await turnContext(input, { sink, checkpoints: NO_CHECKPOINTS, capabilities });
  const shorter = await agent.compactor.now("manual", input.signal);
  input.conversation.spend(agent.spent.usage);
  return shorter;
}

/** Notes on what differs from the system prompt. */
async function notesFor({ host, settings, conversation }: TurnInput): Promise<string> {
  const { memory, session, prompt, boxless } = conversation;
  const { mode, allow_domains, install_scripts } = settings;
  const { messages } = memory.history;
  const seen = memory.history.view();
  const taken = undoNote(messages, await undoneSteps(host, session));
  const changed = modeNote(seen, session.info().mode, mode);
  const note = taken + (changed === "" ? boxNote(messages, boxless) : changed);
  if (mode === "danger-full-access" || session.info().mode === "danger-full-access") return note;
  return networkNote(seen, prompt.text, networkOf(mode, allow_domains, install_scripts)) + note;
}

const sinkOfTurn = ({ settings, origins, conversation: { session }, show }: TurnInput): Sink =>
  runSink({ settings, origins, session }, show);

interface TurnParts {
  readonly sink: Sink;
  readonly checkpoints: Checkpoints;
  /** Capabilities of the current model, so that its server is asked only once. */
  readonly capabilities: ReturnType<ModelClient["capabilities"]>;
}

async function turnContext(
  input: TurnInput,
  { sink, checkpoints, capabilities }: TurnParts,
): Promise<AgentContext> {
  const { settings, conversation, signal } = input;
  const { box, briefing } = await input.box.for(conversation);
  input.box.emit = sink.emit;
  input.box.onReady = (ms, box) => sink.emit(readyEvent(ms, box));
  input.box.onConnection = (connection) => sink.emit(connectionEvent(connection));
  const { host, workspace, requests, keepGrant: keep, warn } = input;
  return agentContext({
    host,
    settings,
    isWeak: requestedModel({ settings, replayed: { model: input.recorded } }).isWeak,
    workspace,
    outputs: conversation.session.outputs,
    checkpoints,
    state: conversation.state,
    provider: input.provider,
    capabilities,
    size: conversation.sizeFor(settings.chat_model),
    sink,
    box,
    briefing,
    limits: new Limits({ turns: settings.max_turns }, () => performance.now()),
    grants: new SessionGrants({ host, settings, workspace, box, requests, warn, keep }),
    approver: remembering({ always: settledIn(conversation.session.records()) }, input.approver),
    signal,
  });
}
