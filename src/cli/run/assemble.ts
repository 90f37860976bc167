import type { AnswerGate } from "../../agent/answer.ts";
import { PromptSize } from "../../agent/context/size.ts";
import { Guard, Malformed } from "../../agent/guard.ts";
import type { Judge } from "../../agent/judge.ts";
import type { Limits } from "../../agent/limits.ts";
import { Memory } from "../../agent/memory.ts";
import { Offer, type Seat } from "../../agent/seat.ts";
import { Spent } from "../../agent/spent.ts";
import { spawnFrom } from "../../agent/subagents.ts";
import type { Settings } from "../../config/schema.ts";
import type { Approver } from "../../core/ports.ts";
import type { Capabilities } from "../../core/provider.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import type { AnyTool } from "../../core/tool.ts";
import { toolsFor } from "../../tools/index.ts";
import type { Spawn } from "../../tools/desk.ts";
import type { ModelSeat } from "../model-seat.ts";
import { briefingFrom } from "./briefing.ts";
import { compactorFor } from "./compactor.ts";
import type { LazyBox } from "./lazy-box.ts";
import { isLocalModel } from "./local-model.ts";
import type { Sink } from "./sink.ts";
import type { SessionPrompt } from "./system-prompt.ts";

export interface Parts {
  readonly settings: Settings;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly session: Session;
  readonly store: SessionStore;
  readonly sink: Sink;
  readonly box: LazyBox;
  readonly limits: Limits;
  readonly model: ModelSeat;
  readonly capabilities: Capabilities;
  readonly judge: () => Promise<Judge>;
  readonly approver: Approver;
  readonly answer: AnswerGate;
  /** For a session that has none yet. */
  readonly prompt: SessionPrompt;
  readonly signal: AbortSignal;
}

/** Puts the loop's seat together; what is heavy is loaded when it is first used. */
export function seatFor(parts: Parts): Seat {
  const { settings, workspace, session, sink, prompt, capabilities } = parts;
  const records = session.records();
  const memory = new Memory(workspace, records, (record) => session.append(record));
  memory.history.pin(prompt.text);
  const tools = toolsOver(parts, memory, (part, signal) => spawn(part, signal));
  const seat: Seat = {
    ...groundOf(parts),
    ...windowOf(() => seat, { settings, memory, tools, capabilities }),
    provider: parts.model.provider(),
    tools,
    offer: new Offer(),
    history: memory.history,
    rollBack: (to) => {
      memory.rollBack(to);
      sink.emit({ type: "rolled_back", record_count: memory.history.count });
    },
    guard: new Guard(),
    malformed: new Malformed(),
    answer: parts.answer,
    // A session that goes on has been told.
    briefing: records.length > 0 ? nothing : briefingFrom(parts.box, prompt, parts.signal),
    emit: sink.emit,
  };
  const spawn = spawnFrom({
    parent: seat,
    prompt: memory.history.pinned ?? prompt.text,
    emit: sink.forChild,
    memory: () => memory.child(workspace),
    tools: (childs) => toolsOver(parts, childs),
    compactor: (child, history) => compactorFor(child, history, capabilities),
  });
  return seat;
}

const nothing = (): Promise<undefined> => Promise.resolve(undefined);

function groundOf({ settings, session, box, limits, judge, approver }: Parts) {
  return {
    model: settings.chat_model,
    mode: settings.mode,
    limits,
    spent: new Spent(),
    judge,
    approver,
    outputs: session.outputs,
    box: box.box,
    warm: box.warm,
    walls: box.walls,
    ended: [],
    now: () => performance.now(),
    clean: isLocalModel(settings) ? (text: string) => text : maskSecrets,
  };
}

interface Windowed {
  readonly settings: Settings;
  readonly memory: Memory;
  readonly tools: readonly AnyTool[];
  readonly capabilities: Capabilities;
}

const windowOf = (seat: () => Seat, { settings, memory, tools, capabilities }: Windowed) => ({
  size: new PromptSize(settings.chat_model, tools),
  compactor: compactorFor(seat, memory.history, capabilities),
});

const toolsOver = (
  { settings, workspace, session, store }: Parts,
  { seen, shell }: Memory,
  spawn?: Spawn,
): readonly AnyTool[] =>
  toolsFor({
    workspace,
    seen,
    shell,
    outputs: session.outputs,
    notes: store.notes(workspace),
    timeoutMs: settings.timeout,
    ...(spawn === undefined ? {} : { spawn }),
  });
