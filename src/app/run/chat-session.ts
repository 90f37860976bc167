import type { Seat } from "../../agent/agent-context.ts";
import { type Finished, runRequest } from "../../agent/agent-run.ts";
import { remembering } from "../../agent/approvers.ts";
import { PromptSize } from "../../agent/context/prompt-size.ts";
import { PlainAnswer } from "../../agent/final-answer.ts";
import { Limits } from "../../agent/limits.ts";
import type { Memory } from "../../agent/memory.ts";
import { modeNote } from "../../cli/chat/chat-view.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { type Checkpoints, NO_CHECKPOINTS } from "../../core/checkpoint-port.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Usage } from "../../core/messages.ts";
import type { Provider } from "../../core/model-provider.ts";
import type { Approver, Box, Index, OwnedBox } from "../../core/ports.ts";
import { type Session, type SessionStore, settledIn } from "../../core/session.ts";
import { NO_USAGE, sumUsage } from "../../models/usage.ts";
import { AuditTrail } from "../../sessions/audit/audit-trail.ts";
import { checkpointsFor } from "../checkpoint-access.ts";
import type { ModelClient } from "../model-access.ts";
import { runId } from "../session-access.ts";
import { agentContext } from "./agent-assembly.ts";
import { aboutRun, type Sink, sinkOf } from "./event-sink.ts";
import { boxChanges, type LazyBox, lazyBox, readyEvent } from "./lazy-box.ts";
import { giveUpFrozen } from "./run-task.ts";
import { briefingFrom, type SessionPrompt, sessionPrompt } from "./session-prompt.ts";
import { type SessionState, sessionState } from "./session-state.ts";

/** One session that a chat goes on with. */
export class Conversation {
  readonly session: Session;
  readonly lasting: SessionState;
  readonly prompt: SessionPrompt;
  readonly resumed: boolean;
  /** Of all its requests, earlier ones too. */
  usage: Usage;
  #size: { readonly model: string; readonly size: PromptSize } | undefined;

  constructor(given: Pick<Conversation, "session" | "lasting" | "prompt" | "resumed">) {
    this.session = given.session;
    this.lasting = given.lasting;
    this.prompt = given.prompt;
    this.resumed = given.resumed;
    const turns = given.session.records().flatMap((each) => (each.kind === "turn" ? [each.result] : []));
    this.usage = turns.reduce((sum, { usage }) => sumUsage(sum, usage), NO_USAGE);
  }

  get memory(): Memory {
    return this.lasting.memory;
  }

  spend(usage: Usage): void {
    this.usage = sumUsage(this.usage, usage);
  }

  /** What is learnt of how a model counts stays as long as it is asked. */
  sizeFor(model: string): PromptSize {
    if (this.#size?.model !== model) this.#size = { model, size: new PromptSize(model, this.lasting.tools) };
    return this.#size.size;
  }
}

export interface ConversationParts {
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly settings: Settings;
  readonly workspace: string;
  /** What finds code, when it is asked. */
  readonly index: Index;
}

export async function openConversation(parts: ConversationParts): Promise<Conversation> {
  const { store, session, resumed, settings, workspace, index } = parts;
  const prompt = await sessionPrompt(settings, workspace);
  const timeoutMs = settings.timeout;
  if (resumed) await giveUpFrozen(session);
  const lasting = sessionState({ session, store, workspace, timeoutMs, prompt: prompt.text, index });
  return new Conversation({ session, lasting, prompt, resumed });
}

const REMEDY = "say it again: a new box starts";

interface OpenBox {
  readonly box: LazyBox;
  readonly talk: Conversation;
  readonly briefing: Seat["briefing"];
}

type BoxStart = (signal: AbortSignal, session: string) => Promise<OwnedBox>;

/** The box of a chat: one for all its requests, until it is lost or must be another one. */
export class ChatBox implements AsyncDisposable {
  readonly #start: BoxStart;
  readonly #shared: boolean;
  readonly #ending = new AbortController();
  #held: OpenBox | undefined;
  /** Who is told that it is ready. */
  onReady: Parameters<typeof lazyBox>[1] = () => undefined;

  /** `shared`: one box serves any session. */
  constructor(start: BoxStart, shared: boolean) {
    this.#start = start;
    this.#shared = shared;
  }

  /** For the next request; one that could not start, or is no more, is tried anew. */
  async for(talk: Conversation): Promise<Omit<OpenBox, "talk">> {
    if (this.#held?.box.walls.aborted === true) await this.close();
    if (this.#held?.talk === talk) return this.#held;
    if (!this.#shared) await this.close();
    const start = (signal: AbortSignal): Promise<OwnedBox> => this.#start(signal, talk.session.id);
    const box = this.#held?.box ?? lazyBox(start, (ms, ready) => this.onReady(ms, ready), { remedy: REMEDY });
    const { history } = talk.memory;
    const briefing = briefingFrom(box, talk.prompt, { history, signal: this.#ending.signal });
    this.#held = { box, talk, briefing };
    return this.#held;
  }

  /** That of the request that is worked on. */
  readonly now = (): Promise<Box> =>
    this.#held?.box.box() ?? Promise.reject(new HarnessError(EXIT.sandbox, "the chat has no box", REMEDY));

  async close(): Promise<void> {
    const box = this.#held?.box;
    this.#held = undefined;
    await box?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the chat has ended"));
    await this.close();
  }
}

/** What one request of a chat is worked on with. */
export interface TurnInput {
  readonly settings: Settings;
  /** Who set each of them. */
  readonly origins: Config["origins"];
  readonly workspace: string;
  readonly store: SessionStore;
  readonly talk: Conversation;
  readonly box: ChatBox;
  readonly model: ModelClient;
  readonly provider: Provider;
  readonly approver: Approver;
  readonly show: (event: AgentEvent) => void;
  readonly signal: AbortSignal;
}

/** Runs one request of a person to its end. What it throws has left the history as it was. */
export async function chatTurn(ground: TurnInput, text: string): Promise<Finished> {
  const { settings, workspace, talk, box, signal } = ground;
  const { session, memory } = talk;
  const sink = sinkIn(ground);
  const resumed = talk.resumed || memory.history.count > 0;
  const { store } = ground;
  const parts = { settings, workspace, session, store, emit: sink.emit, resumed };
  await using checkpoints = await checkpointsFor(parts);
  const seat = await turnContext(ground, sink, checkpoints);
  const before = memory.history.count;
  sink.emit({
    type: "run.started",
    task: text,
    session: session.id,
    resumed,
    workspace,
    mode: settings.mode,
    provider: settings.provider,
    model: settings.chat_model,
  });
  const held = await box.for(talk);
  try {
    const finished = await runRequest(
      seat,
      {
        prompt: text,
        note: modeNote(memory.history.view(), session.info().mode, settings.mode),
        strict: false,
        session: session.id,
        takesBack: true,
        changes: () => boxChanges(held.box, signal),
        record: (each) => session.append(each),
        leave: () => held.box.log(),
        workspace,
      },
      signal,
    );
    talk.spend(finished.usage);
    return finished;
  } catch (thrown) {
    seat.rollBack(before);
    throw thrown;
  }
}

/** The older part of the conversation is summarised; whether it is shorter now. Events say what became of it. */
export async function compactNow(ground: TurnInput): Promise<boolean> {
  const seat = await turnContext(ground, sinkIn(ground), NO_CHECKPOINTS);
  const shorter = await seat.compactor.now("manual", ground.signal);
  ground.talk.spend(seat.spent.usage);
  return shorter;
}

function sinkIn({ settings, origins, talk: { session }, show }: TurnInput): Sink {
  const trail = new AuditTrail(session.audit, aboutRun(settings, origins));
  return sinkOf(session, runId(session), (event) => trail.take(event), show);
}

async function turnContext(ground: TurnInput, sink: Sink, checkpoints: Checkpoints): Promise<Seat> {
  const { settings, talk, signal } = ground;
  const { box, briefing } = await ground.box.for(talk);
  ground.box.onReady = (ms, box) => sink.emit(readyEvent(ms, box));
  return agentContext({
    settings,
    workspace: ground.workspace,
    outputs: talk.session.outputs,
    checkpoints,
    lasting: talk.lasting,
    provider: ground.provider,
    capabilities: ground.model.capabilities(settings.chat_model, signal),
    size: talk.sizeFor(settings.chat_model),
    sink,
    box,
    briefing,
    limits: new Limits({ turns: settings.max_turns }, () => performance.now()),
    approver: remembering({ always: settledIn(talk.session.records()) }, ground.approver),
    answer: new PlainAnswer(),
    signal,
  });
}
