import { unattended } from "../../agent/approvers.ts";
import { changesIn, NO_CHANGES } from "../../agent/changes.ts";
import type { Limits } from "../../agent/limits.ts";
import { type Finished, runRequest } from "../../agent/run.ts";
import type { Config } from "../../config/load.ts";
import type { Settings } from "../../config/schema.ts";
import type { Intent, RunChanges } from "../../core/events.ts";
import type { Session, SessionRecord, SessionStore } from "../../core/session.ts";
import { AuditTrail } from "../../sessions/audit/trail.ts";
import { noteTo } from "../note.ts";
import { aboutRun } from "./about-run.ts";
import { answerFor } from "./answer-gate.ts";
import { seatFor } from "./assemble.ts";
import { type LazyBox, lazyBox } from "./lazy-box.ts";
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
  /** Who set each of them. */
  readonly origins: Config["origins"];
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
  const trail = new AuditTrail(session.audit, aboutRun(settings, given.origins));
  const sink = sinkOf(
    session,
    runId(session),
    (event) => trail.take(event),
    (event) => show.take(event),
  );
  try {
    await using box = boxFor(given, (ms, { image }) =>
      sink.emit({ type: "box.ready", ms, ...(image === undefined ? {} : { image }) }),
    );
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
    const { gate, task } = await answerFor(flags["output-schema"], prompt);
    const seat = await seatFor({
      settings,
      workspace,
      session,
      store,
      sink,
      box,
      limits: given.limits,
      approver: unattended(settings.on_ask === "refuse" ? "refuse" : "contained"),
      answer: gate,
      prompt: await sessionPrompt(settings, workspace),
      signal,
    });
    const request = {
      prompt: task,
      ...(flags.intent === undefined ? {} : { intent: flags.intent }),
      strict: flags.strict,
      session: session.id,
      changes: () => changesOf(box, signal),
      record: (each: SessionRecord) => session.append(each),
    };
    return await runRequest(seat, request, signal);
  } finally {
    show.end();
  }
}

const boxFor = ({ settings, workspace, flags }: Play, onReady: Parameters<typeof lazyBox>[1]): LazyBox =>
  lazyBox(async (signal) => {
    const { openBoxFor } = await import("../wire.ts");
    const opening = { settings, workspace, runtime: flags.runtime ?? null, watchChanges: true };
    return openBoxFor({ ...opening, warn: noteTo(flags.quiet) }, signal);
  }, onReady);

/** What a box that is lost had changed nobody can tell. */
async function changesOf({ begun, walls }: LazyBox, signal: AbortSignal): Promise<RunChanges | null> {
  const box = begun();
  if (box === undefined) return NO_CHANGES;
  if (walls.aborted) return null;
  const fresh = signal.aborted ? new AbortController().signal : signal;
  return box.then((ready) => changesIn(ready, fresh)).catch(() => null);
}
