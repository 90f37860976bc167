import type { AnswerGate } from "../../agent/answer.ts";
import { History } from "../../agent/context/history.ts";
import { PromptSize } from "../../agent/context/size.ts";
import { Guard, Malformed } from "../../agent/guard.ts";
import type { Limits } from "../../agent/limits.ts";
import { Offer, type Seat } from "../../agent/seat.ts";
import { SeenState } from "../../agent/seen-state.ts";
import { ShellMemory } from "../../agent/shell-memory.ts";
import { Spent } from "../../agent/spent.ts";
import { spawnFrom } from "../../agent/subagents.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Settings } from "../../config/schema.ts";
import type { Approver } from "../../core/ports.ts";
import type { Session, SessionRecord, SessionStore } from "../../core/session.ts";
import type { Desk } from "../../tools/desk.ts";
import { toolsFor } from "../../tools/index.ts";
import { modelSeat } from "../model-seat.ts";
import { briefingFrom } from "./briefing.ts";
import { compactorFor } from "./compactor.ts";
import type { LazyBox } from "./lazy-box.ts";
import { isLocalModel } from "./local-model.ts";
import { lazyJudge } from "./lazy-judge.ts";
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
  readonly approver: Approver;
  readonly answer: AnswerGate;
  /** For a session that has none yet. */
  readonly prompt: SessionPrompt;
  readonly signal: AbortSignal;
}

/** Puts the loop's seat together; what is heavy is loaded when it is first used. */
export async function seatFor(parts: Parts): Promise<Seat> {
  const { settings, workspace, session, box, sink, signal } = parts;
  const records = session.records();
  const record = (each: SessionRecord): void => session.append(each);
  const history = History.from(records, record);
  history.pin(parts.prompt.text);
  const seen = SeenState.from(records, () => history.count, record);
  const model = modelSeat(settings);
  const capabilities = await model.capabilities(settings.chat_model, signal);
  const local = isLocalModel(settings);
  const desk: Omit<Desk, "spawn" | "seen" | "shell"> = {
    workspace,
    outputs: session.outputs,
    notes: parts.store.notes(workspace),
    timeoutMs: settings.timeout,
  };
  const tools = toolsFor({
    ...desk,
    seen,
    shell: new ShellMemory(workspace, records, record),
    spawn: (part, cancel) => spawn(part, cancel),
  });
  const size = new PromptSize(settings.chat_model, tools);
  const seat: Seat = {
    model: settings.chat_model,
    provider: model.provider(),
    mode: settings.mode,
    limits: parts.limits,
    spent: new Spent(),
    judge: lazyJudge(settings.mode, workspace),
    approver: parts.approver,
    outputs: session.outputs,
    box: box.box,
    warm: box.warm,
    walls: box.walls,
    ended: [],
    now: () => performance.now(),
    clean: local ? (text) => text : maskSecrets,
    tools,
    offer: new Offer(),
    history,
    rollBack: (to) => {
      history.rollBack(to);
      seen.rollBack(to);
      sink.emit({ type: "rolled_back", record_count: history.count });
    },
    size,
    compactor: compactorFor(() => seat, history, capabilities),
    guard: new Guard(),
    malformed: new Malformed(),
    answer: parts.answer,
    briefing: records.length > 0 ? noBriefing : briefingFrom(box, parts.prompt, signal),
    emit: sink.emit,
  };
  const spawn = spawnFrom({
    parent: seat,
    prompt: history.pinned ?? parts.prompt.text,
    emit: sink.forChild,
    compactor: (child, memory) => compactorFor(child, memory, capabilities),
    tools: (memory) =>
      toolsFor({
        ...desk,
        // What its parent has read, it may edit; what it reads itself is no news to its parent.
        seen: seen.copy(() => memory.count),
        shell: new ShellMemory(workspace, [], () => undefined),
      }),
  });
  return seat;
}

/** A session that goes on has been told. */
const noBriefing = (): Promise<undefined> => Promise.resolve(undefined);
