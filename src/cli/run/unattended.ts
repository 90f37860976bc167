import { unattended } from "../../agent/approvers.ts";
import { changesIn, NO_CHANGES } from "../../agent/changes.ts";
import { Limits } from "../../agent/limits.ts";
import { type Finished, runRequest } from "../../agent/run.ts";
import type { Settings } from "../../config/schema.ts";
import type { Intent, RunChanges } from "../../core/events.ts";
import type { Session, SessionRecord, SessionStore } from "../../core/session.ts";
import { answer } from "../command.ts";
import { noteTo } from "../note.ts";
import { openSessions } from "../session-seat.ts";
import { configFor, workspaceOf } from "../settings.ts";
import { refuseParking, refuseUnbuilt } from "../unbuilt.ts";
import { answerFor } from "./answer-gate.ts";
import { seatFor } from "./assemble.ts";
import { type BudgetFlags, limitsFrom } from "./flags.ts";
import { type LazyBox, lazyBox } from "./lazy-box.ts";
import { promptFrom } from "./prompt.ts";
import { refuseUnpriced } from "./priced.ts";
import { rendererFor } from "./renderer.ts";
import { earlierSession, newSession, runId, workspacePath } from "./session-choice.ts";
import { interruption } from "./signals.ts";
import { sinkOf } from "./sink.ts";
import { sessionPrompt } from "./system-prompt.ts";

export interface RunFlags extends BudgetFlags {
  readonly intent?: Intent | undefined;
  readonly "output-schema"?: string | undefined;
  readonly continue: boolean;
  readonly resume?: string | undefined;
  readonly strict: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly runtime?: string | undefined;
  readonly cwd?: string | undefined;
}

const GO_ON = "Go on with the task.";

/** One task to its end, with nobody there; its exit code. */
export async function runUnattended(words: readonly string[], flags: RunFlags): Promise<number> {
  const { settings } = await configFor({ ...flags });
  refuseUnbuilt(settings);
  refuseParking(settings);
  const limits = new Limits(limitsFrom(flags, settings.max_turns), () => performance.now());
  refuseUnpriced(limits, settings);
  const goesOn = flags.continue || flags.resume !== undefined;
  const prompt = await promptFrom(words, goesOn ? GO_ON : undefined);
  using store = openSessions(noteTo(flags.quiet));
  const given = workspacePath(workspaceOf({ cwd: flags.cwd }));
  const earlier = earlierSession(store, flags, given);
  const workspace = earlier !== undefined && flags.cwd === undefined ? earlier.info().workspace : given;
  const session = earlier ?? newSession(store, settings, { workspace, prompt });
  using interrupted = interruption();
  const { signal } = interrupted;
  const resumed = earlier !== undefined;
  const finished = await play({ settings, flags, limits, store, session, resumed, workspace, prompt, signal });
  if (!flags.json && finished.answer !== null) answer(finished.answer);
  return finished.exit_code;
}

interface Play {
  readonly settings: Settings;
  readonly flags: RunFlags;
  readonly limits: Limits;
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly workspace: string;
  readonly prompt: string;
  readonly signal: AbortSignal;
}

async function play(given: Play): Promise<Finished> {
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

const boxFor = ({ settings, workspace, flags }: Play, onReady: (ms: number) => void): LazyBox =>
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
