import path from "node:path";
import { remembering, unattended } from "../../agent/approvers.ts";
import { PromptSize } from "../../agent/context/size.ts";
import { guessIntent } from "../../agent/intent/guess.ts";
import { type Finished, goOn, runRequest } from "../../agent/run.ts";
import type { Seat } from "../../agent/seat.ts";
import { NEW_BOX, SAME_BOX } from "../../agent/stopped.ts";
import type { EventBody } from "../../core/events.ts";
import { type RunGiven, settledIn } from "../../core/parked.ts";
import type { SessionRecord } from "../../core/session.ts";
import type { Index } from "../../core/ports.ts";
import { AuditTrail } from "../../sessions/audit/trail.ts";
import { modelSeat } from "../model-seat.ts";
import { aboutRun } from "./about-run.ts";
import { answerFor } from "./answer-gate.ts";
import { type Parts, seatFor, unlessAborted } from "./assemble.ts";
import { boxChanges } from "./box-changes.ts";
import { briefingFrom } from "./briefing.ts";
import { giveUpFrozen } from "./given-up.ts";
import { checkpointsFor } from "./checkpoints.ts";
import { type LazyBox, readyEvent } from "./lazy-box.ts";
import { indexFor } from "./index-for.ts";
import { lastWord, type SoFar } from "./last-word.ts";
import { lastingOf } from "./lasting.ts";
import type { Play, Reprise } from "./play-parts.ts";
import { rendererFor } from "./renderer.ts";
import { boxFor } from "./run-box.ts";
import { runId } from "./session-choice.ts";
import { type Sink, sinkOf, type Take, type WaitingSink, waitingSink } from "./sink.ts";
import { sessionPrompt } from "./system-prompt.ts";

/** One request with nobody there, from its first event to its last. */
export async function play(given: Play): Promise<Finished> {
  const { flags } = given;
  const waits = given.settings.isolation === "bind" ? "here" : "waiting";
  const show = rendererFor({ ...flags, changes: flags.passing === true ? "gone" : waits });
  const sink = waitingSink(sinkFor(given, (event) => show.take(event)));
  const sofar: SoFar = { sink };
  try {
    return await played(given, sofar);
  } catch (thrown) {
    return lastWord(thrown, given, sofar);
  } finally {
    show.end();
  }
}

async function played(given: Play, sofar: SoFar): Promise<Finished> {
  const { flags, session, signal, reprise } = given;
  const { sink } = sofar;
  if (reprise === undefined) await begin(given, sink);
  // Until the box is gone: what it was told to do may write to the last.
  await using checkpoints = await checkpointsFor({ ...given, emit: sink.emit });
  await using box = boxFor(given, (ms, ready) => sink.emit(readyEvent(ms, ready)));
  const { gate, note } = await answerFor(flags["output-schema"]);
  const said = await claimed(reprise, box, signal);
  if (said !== undefined) sink.begin([startOf(given), said.event]);
  await using index = indexFor(given, box);
  const means = { sink, box, checkpoints, answer: gate, boxNote: said?.note, index };
  const seat = await seatIn(given, means, said?.runs);
  sofar.seat = seat;
  const request = {
    prompt: given.prompt,
    note,
    ...(flags.intent === undefined ? {} : { intent: flags.intent }),
    strict: flags.strict,
    session: session.id,
    changes: (last: boolean) => boxChanges(box, signal, last),
    record: (each: SessionRecord) => session.append(each),
    given: runGiven(given),
    park: () => box.park(),
    leave: (parked: boolean) => box.finish(parked),
    workspace: given.workspace,
  };
  const finished = await (reprise === undefined
    ? runRequest(seat, request, signal)
    : goOn(seat, request, reprise.parked, signal));
  sofar.finished = finished;
  return finished;
}

async function begin(given: Play, sink: WaitingSink): Promise<void> {
  sink.begin([startOf(given)]);
  if (given.resumed) await giveUpFrozen(given.session);
}

/** An answer is not used up by a box that cannot be had. */
async function claimed(
  reprise: Reprise | undefined,
  { box }: LazyBox,
  signal: AbortSignal,
): Promise<(Awaited<ReturnType<Reprise["claim"]>> & { readonly note: string }) | undefined> {
  if (reprise === undefined) return undefined;
  const { kept } = await unlessAborted(box(), signal);
  return { ...(await reprise.claim()), note: kept === undefined ? NEW_BOX : SAME_BOX };
}

/** How it was started, for whoever goes on with it once it is parked. */
const runGiven = ({ settings, origins, flags, limits, prompt, reprise }: Play): RunGiven =>
  reprise?.parked.given ?? {
    task: prompt,
    limits: limits.given,
    settings: aboutRun(settings, origins).settings,
    runtime: flags.runtime ?? null,
    schema: flags["output-schema"] === undefined ? null : path.resolve(flags["output-schema"]),
  };

function sinkFor({ settings, origins, session }: Play, show: Take): Sink {
  const trail = new AuditTrail(session.audit, aboutRun(settings, origins));
  return sinkOf(session, runId(session), (event) => trail.take(event), show);
}

const startOf = ({ settings, session, resumed, workspace, prompt }: Play): EventBody => ({
  type: "run.started",
  task: prompt,
  session: session.id,
  resumed,
  workspace,
  mode: settings.mode,
  provider: settings.provider,
  model: settings.chat_model,
});

async function seatIn(
  { settings, flags, store, session, workspace, prompt, limits, signal, reprise }: Play,
  means: Pick<Parts, "sink" | "box" | "checkpoints" | "answer" | "boxNote"> & { readonly index: Index },
  said: boolean | undefined,
): Promise<Seat> {
  const { box, index, ...others } = means;
  const model = modelSeat(settings);
  const capabilities = model.capabilities(settings.chat_model, signal);
  // Beside all that follows, so that it is there when the first call comes; a greeting needs none.
  if ((flags.intent ?? guessIntent(prompt)) !== "direct") box.warm();
  const pinned = await sessionPrompt(settings, workspace);
  const timeoutMs = settings.timeout;
  const waits = reprise !== undefined;
  const lasting = lastingOf({ session, store, workspace, timeoutMs, prompt: pinned.text, index, waits });
  return seatFor({
    ...others,
    box,
    settings,
    workspace,
    outputs: session.outputs,
    lasting,
    provider: model.provider(),
    capabilities,
    size: new PromptSize(settings.chat_model, lasting.tools),
    briefing: briefingFrom(box, pinned, { history: lasting.memory.history, signal }),
    limits,
    approver: remembering(
      {
        always: settledIn(session.records()),
        ...(reprise === undefined || said === undefined
          ? {}
          : { once: { question: reprise.parked.question, runs: said } }),
      },
      unattended(settings.on_ask),
    ),
    ...(reprise === undefined ? {} : { parked: reprise.parked }),
    signal,
  });
}
