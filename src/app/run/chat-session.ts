import type { AgentContext } from "../../agent/agent-context.ts";
import { type Finished, runRequest } from "../../agent/agent-run.ts";
import { Limits } from "../../agent/limits.ts";
import type { Memory } from "../../agent/context/memory.ts";
import { networkOf } from "../../agent/context/prompt.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent, Emit } from "../../core/events.ts";
import type { Usage } from "../../core/model-provider.ts";
import { type AnswerGrant, installs } from "../../core/network.ts";
import type { Approver, Box } from "../../core/ports.ts";
import { type Checkpoints, lastStep, NO_CHECKPOINTS, type Session } from "../../core/session.ts";
import { NO_USAGE, sumUsage } from "../../models/token-usage.ts";
import { unlessAborted } from "../../platform/waits.ts";
import { checkpointsFor, undoneSteps } from "../sessions/checkpoint-access.ts";
import { logAfterEnd } from "../sessions/session-access.ts";
import { agentBox, type AgentBoxOpening } from "./agent-box.ts";
import {
  agentContext,
  type AskedModel,
  type OpenSession,
  openSession,
  type SessionParts,
  tellIfSmall,
} from "./composition.ts";
import { runSink, type Sink, startedEvent } from "./event-sink.ts";
import type { LazyBox } from "./lazy-box.ts";
import { boxNote, modeNote, networkNote, undoNote } from "./person-request.ts";
import { giveUpFrozen } from "./run-task.ts";
import type { HarnessRequests } from "./session-grants.ts";
import { briefingFrom, type SessionState } from "./session-state.ts";

/** One session that a chat continues. */
export class Conversation {
  readonly session: Session;
  readonly resumed: boolean;
  readonly opened: OpenSession;
  /** Usage of all requests of the session, including earlier ones. */
  usage: Usage;
  /** A lower bound of tokens: only what was counted. */
  counted: { readonly prompt: number; readonly completion: number };
  /** The number of messages whose box no longer exists; undefined if no box was closed. */
  boxless: number | undefined;

  private constructor({ session, resumed }: SessionParts, opened: OpenSession) {
    this.session = session;
    this.resumed = resumed;
    this.opened = opened;
    const turns = session.records().flatMap((each) => (each.kind === "turn" ? [each.result] : []));
    this.usage = turns.reduce((sum, { usage }) => sumUsage(sum, usage), NO_USAGE);
    this.counted = turns.reduce((sum, { usage }) => withCounted(sum, usage), { prompt: 0, completion: 0 });
  }

  static async open(...[parts, own]: Parameters<typeof openSession>): Promise<Conversation> {
    if (parts.resumed) await giveUpFrozen(parts.host, parts.session);
    return new Conversation(parts, await openSession(parts, own));
  }

  get state(): SessionState {
    return this.opened.state;
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
}

const withCounted = (
  { prompt, completion }: Conversation["counted"],
  { prompt_tokens, completion_tokens }: Usage,
): Conversation["counted"] => ({
  prompt: prompt + (prompt_tokens ?? 0),
  completion: completion + (completion_tokens ?? 0),
});

const REMEDY = "send the message again; a new box will start";

interface OpenBox {
  readonly box: LazyBox;
  readonly conversation: Conversation;
  /** The session's last step before the box began; undefined if the box began with another session. */
  readonly since: number | undefined;
  readonly briefing: AgentContext["briefing"];
}

interface ChatBoxOptions {
  /** How a box for the session with this id is opened. */
  readonly opening: (session: string) => AgentBoxOpening;
  /** One box serves any session. */
  readonly shared: boolean;
  /** Receives the errors that kept a box from starting. */
  readonly failed?: (thrown: unknown) => void;
}

/** The box of a chat: one for all its requests, until it is lost or must be replaced. */
export class ChatBox implements AsyncDisposable {
  readonly #options: ChatBoxOptions;
  readonly #ending = new AbortController();
  #open: OpenBox | undefined;
  /** Receives the events of the box; set by the current request. */
  emit: Emit = () => undefined;

  constructor(options: ChatBoxOptions) {
    this.#options = options;
  }

  /** The box for the next request. A box that could not start, or is lost, is replaced. */
  async for(conversation: Conversation): Promise<Omit<OpenBox, "conversation">> {
    if (this.#open?.box.noBox.aborted === true) await this.close();
    if (this.#open?.conversation === conversation) return this.#open;
    const { opening, shared, failed } = this.#options;
    if (!shared) await this.close();
    const { session, opened, memory } = conversation;
    const box =
      this.#open?.box ??
      agentBox(
        () => opening(session.id),
        (event) => this.emit(event),
        { remedy: REMEDY, failed },
      );
    const { signal } = this.#ending;
    const briefing = briefingFrom(box, opened.systemPrompt, { history: memory.history, signal });
    const since = this.#open === undefined ? lastStep(session.steps) : undefined;
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

/** What a request of a chat is composed with; the settings are those of now. */
export interface TurnInput extends Omit<SessionParts, "session" | "resumed"> {
  readonly conversation: Conversation;
  readonly box: ChatBox;
  readonly requests: HarnessRequests;
  readonly model: AskedModel;
  readonly approver: Approver;
  /** Makes a person's grant last for the rest of the chat, or longer. */
  readonly keepGrant?: (grant: AnswerGrant) => Promise<void>;
  readonly show: (event: AgentEvent) => void;
  readonly signal: AbortSignal;
}

/** Runs one request of a person to its end. If it throws, the history is as it was before. */
export async function chatTurn(input: TurnInput, text: string): Promise<Finished> {
  const { settings, workspace, conversation, model, signal } = input;
  const { session, memory, opened } = conversation;
  const resumed = conversation.resumed || memory.history.count > 0;
  const parts = { ...input, session, resumed };
  const sink = runSink(parts, input.show);
  const { box, since } = await input.box.for(conversation);
  await using checkpoints = await checkpointsFor({ ...parts, since, emit: sink.emit });
  const agent = await turnContext(input, sink, checkpoints);
  const before = memory.history.count;
  sink.emit(startedEvent({ ...parts, task: text, chat: true }));
  await tellIfSmall(model, sink.emit);
  try {
    await unlessAborted(Promise.resolve(opened.extensions.ready?.()), signal);
    if (settings.allow_domains.some(installs)) await box.countPackages(signal);
    const finished = await runRequest(
      agent,
      {
        prompt: text,
        note: await notesFor(input),
        strict: false,
        session: session.id,
        takesBack: true,
        workedBefore: memory.history.messages.some(({ role }) => role === "tool"),
        changes: () => box.changes(checkpoints, signal),
        record: (each) => session.append(each),
        leave: () => box.log(),
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
  const { conversation, show, signal } = input;
  const sink = runSink({ ...input, session: conversation.session }, show);
  const agent = await turnContext(input, sink, NO_CHECKPOINTS);
  const shorter = await agent.compactor.now("manual", signal);
  conversation.spend(agent.spent.usage);
  return shorter;
}

/** Notes on what differs from the system prompt. */
async function notesFor({ host, settings, conversation }: TurnInput): Promise<string> {
  const { memory, session, opened, boxless } = conversation;
  const { mode, allow_domains, install_scripts } = settings;
  const { messages } = memory.history;
  const seen = memory.history.view();
  const taken = undoNote(messages, await undoneSteps(host, session));
  const changed = modeNote(seen, session.info().mode, mode);
  const note = taken + (changed === "" ? boxNote(messages, boxless) : changed);
  if (mode === "danger-full-access" || session.info().mode === "danger-full-access") return note;
  const network = networkOf(mode, allow_domains, install_scripts);
  return networkNote(seen, opened.systemPrompt.text, network) + note;
}

async function turnContext(input: TurnInput, sink: Sink, checkpoints: Checkpoints): Promise<AgentContext> {
  const { conversation, settings } = input;
  const { session, resumed, state } = conversation;
  const { box, briefing } = await input.box.for(conversation);
  input.box.emit = sink.emit;
  const limits = new Limits({ turns: settings.max_turns }, () => performance.now());
  return agentContext({ ...input, session, resumed, state, sink, checkpoints, box, briefing, limits });
}
