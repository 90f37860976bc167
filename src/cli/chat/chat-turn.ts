import type { Seat } from "../../agent/agent-context.ts";
import { type Finished, runRequest } from "../../agent/agent-run.ts";
import { remembering } from "../../agent/approvers.ts";
import { PlainAnswer } from "../../agent/final-answer.ts";
import { Limits } from "../../agent/limits.ts";
import { seatFor } from "../../app/agent-assembly.ts";
import { aboutRun, type Sink, sinkOf } from "../../app/event-sink.ts";
import { boxChanges, readyEvent } from "../../app/lazy-box.ts";
import type { ModelSeat } from "../../app/model-access.ts";
import { checkpointsFor } from "../../app/run-checkpoints.ts";
import { runId } from "../../app/session-choice.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { type Checkpoints, NO_CHECKPOINTS } from "../../core/checkpoint-port.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Provider } from "../../core/model-provider.ts";
import type { Approver } from "../../core/ports.ts";
import { type SessionStore, settledIn } from "../../core/session.ts";
import { AuditTrail } from "../../sessions/audit/audit-trail.ts";
import { modeNote } from "./chat-view.ts";
import type { ChatBox, Talk } from "./conversation.ts";

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
