import type { AnswerGate } from "../../agent/answer.ts";
import type { PromptSize } from "../../agent/context/size.ts";
import { Guard, Malformed } from "../../agent/guard.ts";
import type { Limits } from "../../agent/limits.ts";
import type { Seat } from "../../agent/seat.ts";
import { Spent } from "../../agent/spent.ts";
import { spawnFrom } from "../../agent/subagents.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Settings } from "../../config/schema.ts";
import type { Checkpoints } from "../../core/checkpoints.ts";
import type { Parked } from "../../core/parked.ts";
import type { Approver, Box } from "../../core/ports.ts";
import type { Capabilities, Provider } from "../../core/provider.ts";
import type { Outputs } from "../../core/session.ts";
import { compactorFor } from "./compactor.ts";
import type { LazyBox } from "./lazy-box.ts";
import { isLocalModel } from "./local-model.ts";
import { lazyJudge } from "./lazy-judge.ts";
import type { Lasting } from "./lasting.ts";
import type { Sink } from "./sink.ts";
import { withoutSecrets } from "./without-secrets.ts";

export interface Parts {
  readonly settings: Settings;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly outputs: Outputs;
  readonly lasting: Lasting;
  /** The same for all requests of a session: a scenario goes on where it was. */
  readonly provider: Provider;
  readonly capabilities: Promise<Capabilities>;
  readonly size: PromptSize;
  readonly sink: Sink;
  readonly box: LazyBox;
  readonly checkpoints: Checkpoints;
  readonly briefing: Seat["briefing"];
  readonly limits: Limits;
  readonly approver: Approver;
  readonly answer: AnswerGate;
  /** The run goes on from here. */
  readonly parked?: Parked;
  readonly boxNote?: string | undefined;
  readonly signal: AbortSignal;
}

/** Puts the seat of one request together; what is heavy is loaded when it is first used. */
export async function seatFor(parts: Parts): Promise<Seat> {
  const { settings, workspace, lasting, box, sink, parked, signal } = parts;
  const judge = lazyJudge(settings.mode, workspace);
  const { memory, tools, offer } = lasting;
  const { history } = memory;
  const capabilities = await parts.capabilities;
  const local = isLocalModel(settings);
  const seat: Seat = {
    model: settings.chat_model,
    provider: local ? parts.provider : withoutSecrets(parts.provider),
    mode: settings.mode,
    limits: parts.limits,
    spent: new Spent(parked?.spent.usage),
    checkpoints: parts.checkpoints,
    judge,
    approver: parts.approver,
    outputs: parts.outputs,
    box: () => unlessAborted(box.box(), signal),
    warm: () => {
      box.warm();
      setTimeout(() => void judge().catch(() => undefined), ENGINE_AT_WORK_MS).unref();
    },
    walls: box.walls,
    ...(parts.boxNote === undefined ? {} : { boxNote: parts.boxNote }),
    ended: [...(parked?.ended ?? [])],
    now: () => performance.now(),
    clean: local ? (text) => text : maskSecrets,
    tools,
    offer,
    history,
    rollBack: (to) => {
      memory.rollBack(to);
      sink.emit({ type: "rolled_back", record_count: history.count });
    },
    size: parts.size,
    compactor: compactorFor(() => seat, history, capabilities),
    guard: new Guard(),
    malformed: new Malformed(),
    answer: parts.answer,
    briefing: parts.briefing,
    emit: sink.emit,
  };
  lasting.judgedBy(judge);
  lasting.spawnBy(
    spawnFrom({
      parent: seat,
      prompt: history.pinned ?? "",
      emit: sink.forChild,
      compactor: (child, own) => compactorFor(child, own, capabilities),
      memory: (child) => memory.child(workspace, child),
      parked: parked?.children ?? [],
      tools: lasting.childTools,
    }),
  );
  return seat;
}

/** By then the engine has been asked for a box, and there is time to load the policy. */
const ENGINE_AT_WORK_MS = 40;

/** Nobody who has cancelled waits for a box that is still starting. */
export async function unlessAborted(box: Promise<Box>, signal: AbortSignal): Promise<Box> {
  const cancelled = Promise.withResolvers<never>();
  const cancel = (): void => cancelled.reject(signal.reason as Error);
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    return await Promise.race([box, cancelled.promise]);
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}
