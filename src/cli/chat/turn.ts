import { PlainAnswer } from "../../agent/answer.ts";
import { remembering } from "../../agent/approvers.ts";
import { Limits } from "../../agent/limits.ts";
import { type Finished, runRequest } from "../../agent/run.ts";
import type { Seat } from "../../agent/seat.ts";
import type { Config } from "../../config/load.ts";
import type { Settings } from "../../config/schema.ts";
import type { AgentEvent } from "../../core/events.ts";
import { type Checkpoints, NO_CHECKPOINTS } from "../../core/checkpoints.ts";
import { settledIn } from "../../core/parked.ts";
import type { Approver } from "../../core/ports.ts";
import type { Provider } from "../../core/provider.ts";
import type { SessionStore } from "../../core/session.ts";
import { AuditTrail } from "../../sessions/audit/trail.ts";
import type { ModelSeat } from "../model-seat.ts";
import { aboutRun } from "../run/about-run.ts";
import { seatFor } from "../run/assemble.ts";
import { boxChanges } from "../run/box-changes.ts";
import { checkpointsFor } from "../run/checkpoints.ts";
import { readyEvent } from "../run/lazy-box.ts";
import { runId } from "../run/session-choice.ts";
import { type Sink, sinkOf } from "../run/sink.ts";
import type { ChatBox } from "./chat-box.ts";
import { modeNote } from "./mode-note.ts";
import type { Talk } from "./talk.ts";

/** What one request of a chat is worked on with. */
export interface Ground {
  readonly settings: Settings;
  /** Who set each of them. */
  readonly origins: Config["origins"];
  readonly workspace: string;
  readonly store: SessionStore;
  readonly talk: Talk;
  readonly box: ChatBox;
  readonly model: ModelSeat;
  readonly provider: Provider;
  readonly approver: Approver;
  readonly show: (event: AgentEvent) => void;
  readonly signal: AbortSignal;
}

/** Runs one request of a person to its end. What it throws has left the history as it was. */
export async function turn(ground: Ground, text: string): Promise<Finished> {
  const { settings, workspace, talk, box, signal } = ground;
  const { session, memory } = talk;
  const sink = sinkIn(ground);
  const resumed = talk.resumed || memory.history.count > 0;
  const { store } = ground;
  const parts = { settings, workspace, session, store, emit: sink.emit, resumed };
  await using checkpoints = await checkpointsFor(parts);
  const seat = await seatOf(ground, sink, checkpoints);
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
export async function compactNow(ground: Ground): Promise<boolean> {
  const seat = await seatOf(ground, sinkIn(ground), NO_CHECKPOINTS);
  const shorter = await seat.compactor.now("manual", ground.signal);
  ground.talk.spend(seat.spent.usage);
  return shorter;
}

function sinkIn({ settings, origins, talk: { session }, show }: Ground): Sink {
  const trail = new AuditTrail(session.audit, aboutRun(settings, origins));
  return sinkOf(session, runId(session), (event) => trail.take(event), show);
}

async function seatOf(ground: Ground, sink: Sink, checkpoints: Checkpoints): Promise<Seat> {
  const { settings, talk, signal } = ground;
  const { box, briefing } = await ground.box.for(talk);
  ground.box.onReady = (ms, box) => sink.emit(readyEvent(ms, box));
  return seatFor({
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
