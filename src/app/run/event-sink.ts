import manifest from "../../../package.json" with { type: "json" };
import type { Config } from "../../config/load-config.ts";
import { withoutValues } from "../../config/mcp-settings.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { AgentEvent, EventBody, RunChanges, RunStatus } from "../../core/events.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { isReplyPiece, type Session, type Step } from "../../core/session.ts";
import type { Price } from "../../core/model-provider.ts";
import { priceToday } from "../model-access.ts";
import { POLICY_VERSION } from "../../policy/policy-version.generated.ts";
import { cleanStrings, type Renderer, rendererFor, rendererNamed } from "../../render/renderers.ts";
import { systemClock } from "../../render/tty/live-lines.ts";
import { stderr, stdout } from "../../render/tty/output.ts";
import { AuditTrail, type RunAbout } from "../../sessions/audit-trail.ts";
import { runId } from "../sessions/session-access.ts";
import { desktopNotice, isWatched, withNotice } from "./run-observers.ts";
import type { AgentContext } from "../../agent/agent-context.ts";
import type { Finished, WorkspaceOutcome } from "../../agent/agent-run.ts";
import type { Limits } from "../../agent/limits.ts";
import { denialsOf, type RunOutcome, outcomeOf } from "../../agent/ending/outcome.ts";
import { EXIT, type ExitCode, Interrupted } from "../../core/errors.ts";
import { visible } from "../../core/visible.ts";
import { NO_USAGE } from "../../models/token-usage.ts";
import { describeFailure } from "../stderr-messages.ts";
import type { Untrusted } from "../project/project-trust.ts";
import { hasChanges } from "./attempt-plan.ts";

/** Handles each event as it arrives. */
type Take = (event: AgentEvent) => void;

export interface Sink {
  readonly emit: (body: EventBody) => void;
  /** Returns the emitter for one more subagent. */
  readonly forChild: () => (body: EventBody) => void;
  /**
   * Emits the last event of a failed run, after an end for each open call. The events are shown even if they cannot be
   * stored; returns the failures to store them.
   */
  readonly last: (body: EventBody) => readonly unknown[];
}

export interface WaitingSink extends Sink {
  readonly begin: (first: readonly EventBody[]) => void;
  readonly begun: () => boolean;
}

/** Holds events back until the run begins, so that its first event comes first. */
export function waitingSink(sink: Sink): WaitingSink {
  const early: EventBody[] = [];
  const state = { begun: false };
  return {
    ...sink,
    emit: (body) => {
      if (state.begun) sink.emit(body);
      else early.push(body);
    },
    begun: () => state.begun,
    begin: (first) => {
      // A run whose first event cannot be stored has not begun.
      for (const body of first) {
        sink.emit(body);
        state.begun = true;
      }
      for (const body of early.splice(0)) sink.emit(body);
    },
  };
}

/**
 * Numbers the events of a run. Each event is audited and stored in one step, without its secrets, before it is shown.
 * `run.finished` is the last one: later events, for instance of a subagent that is still ending, are dropped. An end
 * that cannot be stored does not count.
 */
export function sinkOf(session: Session, run: string, audit: Take, show: Take, candidate?: number): Sink {
  const stamp = candidate === undefined ? { run } : { run, candidate };
  const count = { events: 0, children: 0, ends: 0 };
  const numbered = (body: EventBody, agent?: string): AgentEvent => {
    count.events += 1;
    const whose = agent === undefined ? stamp : { ...stamp, agent };
    return { ...body, ...whose, seq: count.events };
  };
  const keep = (event: AgentEvent): void => session.log(cleanStrings(event, maskSecrets));
  const record = (event: AgentEvent): void =>
    session.atomically(() => {
      audit(event);
      keep(event);
    });
  const open = new OpenCalls();
  const tell = (event: AgentEvent): void => {
    open.take(event);
    show(event);
  };
  const send = (body: EventBody, agent?: string): void => {
    if (count.ends > 0) return;
    const event = numbered(body, agent);
    if (!isReplyPiece(event)) record(event);
    if (body.type === "run.finished") count.ends += 1;
    tell(event);
  };
  return {
    emit: (body) => send(body),
    last: (body) => {
      if (count.ends > 0) return [];
      count.ends += 1;
      const ends = open.left.map(({ call, agent }) => numbered({ ...UNKNOWN_END, call }, agent));
      return [...ends, numbered(body)].flatMap((event) => {
        const failures = [audit, keep].flatMap((write) => failureOf(() => write(event)));
        tell(event);
        return failures;
      });
    },
    forChild: () => {
      count.children += 1;
      const agent = `a${count.children}`;
      return (body) => send(body, agent);
    },
  };
}

const UNKNOWN = "the run failed before the end of this call could be recorded";
const UNKNOWN_END = {
  type: "call.ended",
  kind: "cancelled",
  cause: null,
  text: UNKNOWN,
  full: null,
  ms: 0,
  reason: UNKNOWN,
} as const;

/** Calls that were proposed and have no end yet. */
class OpenCalls {
  readonly #open = new Map<string, { readonly call: string; readonly agent: string | undefined }>();

  take(event: AgentEvent): void {
    if (event.type !== "call.proposed" && event.type !== "call.ended") return;
    const { type, call, agent } = event;
    const key = JSON.stringify([agent, call]);
    if (type === "call.proposed") this.#open.set(key, { call, agent });
    else this.#open.delete(key);
  }

  get left(): readonly { readonly call: string; readonly agent: string | undefined }[] {
    return [...this.#open.values()];
  }
}

function failureOf(work: () => void): readonly unknown[] {
  try {
    work();
    return [];
  } catch (thrown) {
    return [thrown];
  }
}

interface RunAudited {
  readonly settings: Settings;
  /** The origin of each setting. */
  readonly origins: Config["origins"];
  readonly session: Session;
  readonly flags?: { readonly candidate?: number };
}

/** Sends the events of one run to the audit, the session and the screen. */
export function runSink({ settings, origins, session, flags }: RunAudited, show: Take): Sink {
  const trail = new AuditTrail(
    session.audit,
    aboutRun({ ...settings, mcp: withoutValues(settings.mcp) }, origins),
  );
  return sinkOf(session, runId(session), (event) => trail.take(event), show, flags?.candidate);
}

interface Started {
  readonly settings: Settings;
  readonly session: Session;
  readonly resumed: boolean;
  readonly workspace: string;
  readonly task: string;
  /** The run is a request of a chat. */
  readonly chat?: true;
  readonly flags?: { readonly strict: boolean };
}

/** The first event of a run. */
export const startedEvent = ({
  settings,
  session,
  resumed,
  workspace,
  task,
  chat,
  flags,
}: Started): EventBody => ({
  type: "run.started",
  task,
  session: session.id,
  resumed,
  workspace,
  mode: settings.mode,
  provider: settings.provider,
  model: settings.chat_model,
  max_turns: settings.max_turns,
  ...(flags?.strict === true ? { strict: true } : {}),
  ...(chat === undefined ? {} : { chat }),
  ...(settings.allow_domains.length === 0 ? {} : { granted: settings.allow_domains }),
  ...priceIn(settings),
});

/** What the project brings but is not trusted, reported at the start. */
export const untrustedNotice = (untrusted: Untrusted | undefined): readonly EventBody[] =>
  untrusted === undefined ? [] : [{ type: "notice", text: untrusted.text, untrusted: untrusted.items }];

/** Today's price. */
function priceIn(settings: Settings): { readonly price?: Price } {
  const price = priceToday(settings);
  return price === undefined ? {} : { price };
}

/**
 * What the audit records of a run besides its events. The settings are those in force, which may differ from those of
 * their origins.
 */
export function aboutRun(settings: Settings, origins: Config["origins"]): RunAbout {
  const each = Object.entries(settings).map(
    ([key, value]) => [key, { value, origin: origins[key] ?? "default" }] as const,
  );
  return {
    settings: Object.fromEntries(each),
    versions: {
      harness: manifest.version,
      policy: POLICY_VERSION,
      node: process.version,
      system: `${process.platform} ${process.arch}`,
    },
  };
}

interface RendererOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly changes: "here" | "waiting" | "gone";
  /** The origin of each setting; left out if no model is asked. */
  readonly origins?: Config["origins"];
  /** For the desktop notice at the end; left out if there is none. */
  readonly tells?: {
    readonly notify: Settings["notify"];
    readonly title: string;
    /** Programs in this folder belong to the run, so the notice does not use them. */
    readonly workspace: string;
  };
}

/** The renderer for `run` and `approve`, chosen by the flags and the terminal. */
export function runRenderer({ changes, origins, tells, ...wanted }: RendererOptions): Renderer {
  const isSet = (key: string): boolean => (origins?.[key] ?? "default") !== "default";
  const shown = rendererNamed(rendererFor(wanted, stderr), {
    stdout,
    stderr,
    clock: systemClock,
    clean: maskSecrets,
    changes,
    isUnchosen: origins !== undefined && !["provider", "chat_model", "base_url"].some(isSet),
  });
  if (tells === undefined || !isWatched(wanted, stderr, process.env["CI"])) return shown;
  const { notify, title, workspace } = tells;
  return withNotice(shown, {
    notify,
    title: maskSecrets(title),
    screen: stderr,
    clock: systemClock,
    desktop: (text) => void desktopNotice(text, process.env, workspace).catch(() => undefined),
  });
}

const NO_OUTCOME: WorkspaceOutcome = { changes: null, handoff: [] };

/** How far a run has come. */
export interface RunProgress {
  readonly sink: WaitingSink;
  agent?: AgentContext;
  finished?: Finished;
  /** The run's changes at the time of the failure. */
  seen?: WorkspaceOutcome | undefined;
  /** Where a person finds those changes, and what can be done with them. */
  where?: string;
}

/**
 * Ends a failed run with one last event, even if the event cannot be stored. A failure after the last event (a box that
 * cannot be removed, say) only shows on stderr and in the exit code. A run that has not begun throws.
 */
export function failedRun(
  thrown: unknown,
  { limits, session }: { readonly limits: Limits; readonly session: Session },
  { sink, agent, finished, seen = NO_OUTCOME, where }: RunProgress,
): Finished {
  if (!sink.begun()) throw thrown;
  const outcome = outcomeAfter(thrown);
  if (finished !== undefined) {
    stderr.write(`error: ${visible(outcome.reason)}\n`);
    return { ...finished, exit_code: outcome.exit_code };
  }
  const { untouched: _, ...fields } = seen;
  const failed: Finished = {
    type: "run.finished",
    ...outcome,
    reason: where === undefined ? outcome.reason : `${outcome.reason}; ${where}`,
    turns: limits.turns,
    tool_calls: limits.calls,
    usage: agent?.spent.whole ?? NO_USAGE,
    denials: denialsOf(agent?.ended ?? []),
    ...fields,
    session: session.id,
    verified: null,
    grounded: null,
    answer: null,
  };
  if (agent !== undefined) recordEnd(session, agent, failed);
  const unwritten = new Set(sink.last(failed).map((each) => outcomeAfter(each).reason));
  unwritten.delete(outcome.reason);
  for (const reason of unwritten) stderr.write(`error: ${visible(reason)}\n`);
  return failed;
}

interface FailedAt {
  readonly flags: { readonly passing?: boolean };
  readonly settings: Pick<Settings, "isolation">;
  readonly session: Pick<Session, "id" | "steps">;
  readonly workspace: string;
}

/** Where a person finds the changes that a run had made when it failed. */
export function whereChangesAre(
  { flags, settings, session: { id, steps }, workspace }: FailedAt,
  changes: RunChanges | null,
): string {
  if (changes !== null && !hasChanges(changes)) return "nothing had been changed";
  if (flags.passing === true) return "its changes are removed with its folder";
  const shows = `harness diff ${id} shows them`;
  return settings.isolation === "bind"
    ? `its changes so far are in ${workspace}: ${undoneBy(id, steps.all(), shows)}`
    : `its changes so far are kept beside ${workspace}: ${shows}, harness apply ${id} applies them`;
}

/** After a full disk, for example, nothing of a change may be known but its path. */
function undoneBy(id: string, steps: readonly Pick<Step, "kind">[], shows: string): string {
  const isLost = steps.at(-1)?.kind === "lost";
  if (!steps.some(({ kind }) => kind === "call"))
    return "no checkpoint could be saved, so harness cannot undo them";
  if (!isLost) return `${shows}, harness undo ${id} takes them back`;
  return `harness undo ${id} takes back only those before the point from which no checkpoint could be saved`;
}

/**
 * Stores the end for lists of sessions, if possible. If it is not possible, the run's own failure has the same reason.
 */
function recordEnd(
  session: Session,
  { intent: { intent }, spent: { usage } }: AgentContext,
  { status, reason, turns, tool_calls: toolCalls }: Finished,
): void {
  const result = { intent, status, reason, usage, turns, toolCalls, answer: null };
  try {
    session.append({ kind: "turn", result });
  } catch {
    // The end is shown anyway.
  }
}

/** The outcome of a run that failed with this error. */
export function outcomeAfter(thrown: unknown): RunOutcome {
  // If the clean-up failed too, the first failure counts.
  if (thrown instanceof SuppressedError) return outcomeAfter(thrown.suppressed);
  if (thrown instanceof Interrupted)
    return outcomeOf({ how: "cancelled", signal: thrown.signal }, [], { strict: false });
  const { exit, message, remedy } = describeFailure(thrown, []);
  const exit_code = exit as ExitCode;
  const reason = `${message}${remedy === "" ? "" : `; next: ${remedy}`}`;
  return { status: STATUS_OF.get(exit_code) ?? "failed", exit_code, reason };
}

const STATUS_OF: ReadonlyMap<ExitCode, RunStatus> = new Map([
  [EXIT.model, "model"],
  [EXIT.sandbox, "sandbox"],
  [EXIT.interrupted, "interrupted"],
  [EXIT.terminated, "interrupted"],
  [EXIT.hangup, "interrupted"],
]);
