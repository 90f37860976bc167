import { unattended } from "../../agent/approvers.ts";
import { PromptSize } from "../../agent/context/size.ts";
import { guessIntent } from "../../agent/intent/guess.ts";
import type { Limits } from "../../agent/limits.ts";
import { type Finished, runRequest } from "../../agent/run.ts";
import type { Settings } from "../../config/schema.ts";
import type { Intent } from "../../core/events.ts";
import type { Session, SessionRecord, SessionStore } from "../../core/session.ts";
import { modelSeat } from "../model-seat.ts";
import { noteTo } from "../note.ts";
import { answerFor } from "./answer-gate.ts";
import { seatFor } from "./assemble.ts";
import { boxChanges } from "./box-changes.ts";
import { briefingFrom } from "./briefing.ts";
import { type LazyBox, lazyBox } from "./lazy-box.ts";
import { lastingOf } from "./lasting.ts";
import { rendererFor } from "./renderer.ts";
import { runId } from "./session-choice.ts";
import { sinkOf } from "./sink.ts";
import { sessionPrompt } from "./system-prompt.ts";

/** How it is played, beside the settings. */
export interface PlayFlags {
  readonly intent?: Intent | undefined;
  readonly "output-schema"?: string | undefined;
  readonly strict: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly runtime?: string | undefined;
}

export interface Play {
  readonly settings: Settings;
  readonly flags: PlayFlags;
  readonly limits: Limits;
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly workspace: string;
  readonly prompt: string;
  readonly signal: AbortSignal;
}

/** One request with nobody there, from its first event to its last. */
export async function play(given: Play): Promise<Finished> {
  const { settings, flags, store, session, workspace, prompt, signal } = given;
  const show = rendererFor(flags);
  const sink = sinkOf(session, runId(session), (event) => show.take(event));
  try {
    await using box = boxFor(given, (ms) => sink.emit({ type: "box.ready", ms }));
    sink.emit({
      type: "run.started",
      task: prompt,
      session: session.id,
      resumed: given.resumed,
      workspace,
      mode: settings.mode,
      provider: settings.provider,
      model: settings.chat_model,
    });
    const model = modelSeat(settings);
    const capabilities = model.capabilities(settings.chat_model, signal);
    // Beside all that follows, so that it is there when the first call comes; a greeting needs none.
    if ((flags.intent ?? guessIntent(prompt)) !== "direct") box.warm();
    const { gate, task } = await answerFor(flags["output-schema"], prompt);
    const pinned = await sessionPrompt(settings, workspace);
    const timeoutMs = settings.timeout;
    const lasting = lastingOf({ session, store, workspace, timeoutMs, prompt: pinned.text });
    const seat = await seatFor({
      settings,
      workspace,
      outputs: session.outputs,
      lasting,
      provider: model.provider(),
      capabilities,
      size: new PromptSize(settings.chat_model, lasting.tools),
      sink,
      box,
      briefing: briefingFrom(box, pinned, { history: lasting.memory.history, signal }),
      limits: given.limits,
      approver: unattended(settings.on_ask === "refuse" ? "refuse" : "contained"),
      answer: gate,
      signal,
    });
    const request = {
      prompt: task,
      ...(flags.intent === undefined ? {} : { intent: flags.intent }),
      strict: flags.strict,
      session: session.id,
      changes: () => boxChanges(box, signal),
      record: (each: SessionRecord) => session.append(each),
    };
    return await runRequest(seat, request, signal);
  } finally {
    show.end();
  }
}

const boxFor = ({ settings, session, workspace, flags }: Play, onReady: (ms: number) => void): LazyBox =>
  lazyBox(async (signal) => {
    const { openBoxFor } = await import("../wire.ts");
    const opening = {
      settings,
      workspace,
      runtime: flags.runtime ?? null,
      watchChanges: true,
      keep: session.id,
    };
    return openBoxFor({ ...opening, warn: noteTo(flags.quiet) }, signal);
  }, onReady);
