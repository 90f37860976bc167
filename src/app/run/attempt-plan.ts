import type { Finished } from "../../agent/agent-run.ts";
import { asksToLook, asksToRun, guessIntent } from "../../agent/ending/intent.ts";
import { TOOL_TEMPERATURE } from "../../agent/next-reply.ts";
import { type RunOutcome, outcomeOf } from "../../agent/ending/outcome.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { countsOf } from "../../core/ports.ts";
import type { Mode } from "../../core/decision.ts";
import { EXIT, HarnessError, type Signal } from "../../core/errors.ts";
import type { CandidateReport, RunChanges } from "../../core/events.ts";
import type { Intent } from "../../core/model-provider.ts";
import { NO_USAGE, sumUsage } from "../../models/token-usage.ts";

/**
 * Decisions on candidates: how many there are, how each is asked, which one counts, and what is reported at the end.
 */

export interface AttemptFlags {
  readonly continue: boolean;
  readonly resume?: string | undefined;
  readonly intent?: Intent | undefined;
  readonly jobs?: number | undefined;
}

export interface AttemptsPlan {
  readonly count: number;
  /** How many run side by side. */
  readonly jobs: number;
  /** For people: why there is one attempt although the settings want several. */
  readonly note?: string;
}

interface AttemptsRequest extends Config {
  readonly flags: AttemptFlags;
  readonly prompt: string;
}

const ONE: AttemptsPlan = { count: 1, jobs: 1 };

/**
 * A flag that cannot have an effect is an error. The setting applies only to requests for a change; everything else
 * gets one attempt, with a note unless the reason is obvious.
 */
export function attemptsFor({ settings, origins, flags, prompt }: AttemptsRequest): AttemptsPlan {
  const { attempts: count, mode } = settings;
  const { jobs = 1, intent } = flags;
  if (count === 1 && flags.jobs !== undefined) throw jobsAlone();
  if (count === 1) return ONE;
  const byFlag = isFlag(origins["attempts"]);
  const why = conflictOf(settings, origins, flags);
  if (why !== undefined && byFlag) throw new HarnessError(EXIT.usage, `--attempts: ${why}`, "leave one out");
  if (why !== undefined) return { ...ONE, note: `one attempt, not ${count} as the settings say: ${why}` };
  // A user who asks for several attempts wants a change, however the request is worded.
  const wantsChange = guessIntent(prompt, mode) === "change" && !asksToRun(prompt) && !asksToLook(prompt);
  if (!byFlag && intent === undefined && !wantsChange) return ONE;
  return { count, jobs: Math.min(jobs, count) };
}

interface RowShape {
  readonly row: number;
  readonly kind: "dir" | "repo";
  readonly mode?: Mode | undefined;
}

/**
 * Refuses `--attempts` for a batch in which a row could not follow it, before any row begins. A row that declares
 * itself read-only has one attempt.
 */
export function refuseVainRows({ settings, origins }: Config, rows: readonly RowShape[]): void {
  if (settings.attempts === 1 || !isFlag(origins["attempts"])) return;
  for (const { row, kind, mode = settings.mode } of rows.filter((each) => each.mode !== "read-only")) {
    // A clone is never worked on in place.
    const isolation = kind === "repo" ? "overlay" : settings.isolation;
    const why = conflictOf({ ...settings, mode, isolation, on_ask: "contained" }, origins, {
      continue: false,
    });
    if (why !== undefined)
      throw new HarnessError(EXIT.usage, `--attempts: ${why} (row ${row})`, "leave one out");
  }
}

const isFlag = (origin: string | undefined): boolean => origin?.startsWith("--") === true;

function conflictOf(
  { mode, on_ask, isolation }: Settings,
  origins: Config["origins"],
  { continue: goesOn, resume, intent }: AttemptFlags,
): string | undefined {
  if (goesOn || resume !== undefined)
    return "candidates start afresh, while --continue and --resume continue a session";
  if (mode === "read-only") return "no candidate can change anything in read-only mode";
  if (intent !== undefined && intent !== "change") return `--intent ${intent} asks for no change`;
  if (on_ask === "park") return "candidates cannot wait for you, as on_ask park requires";
  if (isolation === "bind" && isFlag(origins["isolation"]))
    return "each candidate needs a layer of its own, and --isolation bind has none";
  return undefined;
}

const jobsAlone = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    "--jobs can only be used with --attempts",
    'harness run --attempts 3 --jobs 3 "…"',
  );

/** Added to the base temperature, from the first candidate on; the last value applies to all later candidates. */
const RISES = [0, 0.3, 0.5, 0.7, 0.8] as const;
/** The highest temperature that every server accepts. */
const MAX_TEMPERATURE = 1;

/** The first candidate is asked like any run, each later one at a higher temperature; null: the default. */
export function temperatureOf(nth: number, base: number | null): number | null {
  if (nth === 1) return base;
  const rise = RISES[Math.min(nth, RISES.length) - 1] ?? 0;
  const wanted = Math.min((base ?? TOOL_TEMPERATURE) + rise, Math.max(base ?? 0, MAX_TEMPERATURE));
  return Math.round(wanted * 100) / 100;
}

/** The settings of a candidate, and who set them. */
export function candidateConfig(nth: number, { settings, origins }: Config): Config {
  const temperature = temperatureOf(nth, settings.temperature);
  const isolation = settings.isolation === "bind" ? "overlay" : settings.isolation;
  return {
    settings: { ...settings, temperature, isolation },
    origins: {
      ...origins,
      ...(temperature === settings.temperature ? {} : { temperature: "--attempts" }),
      ...(isolation === settings.isolation ? {} : { isolation: "--attempts" }),
    },
  };
}

export interface Candidate {
  /** Starts at 1. */
  readonly nth: number;
  readonly finished: Finished;
  readonly green: boolean;
}

export const hasChanges = (changes: RunChanges | null): boolean => {
  if (changes === null) return false;
  const { added, modified, deleted } = countsOf(changes);
  return added + modified + deleted > 0;
};

/**
 * Whether the candidate ended well and its check passed. Without a check there must be a change; a named check must
 * have been run.
 */
export function isGreen(
  { exit_code, verified, changes }: Pick<Finished, "exit_code" | "verified" | "changes">,
  checkNamed: boolean,
): boolean {
  if (exit_code !== EXIT.done) return false;
  if (verified !== undefined && verified !== null) return verified.exit_code === 0;
  return !checkNamed && hasChanges(changes);
}

/** Whether the candidate had no model or no box from the start: every other candidate would fail the same way. */
export const isHopeless = ({ exit_code, tool_calls }: Finished): boolean =>
  (exit_code === EXIT.model || exit_code === EXIT.sandbox) && tool_calls === 0;

/** The outcome of applying the first green candidate. */
export type Applied =
  | { readonly how: "applied"; readonly changes: RunChanges }
  | { readonly how: "conflict"; readonly refused: readonly { path: string; reason: string }[] }
  /** Dangerous paths that need a person's yes. */
  | { readonly how: "blocked"; readonly paths: readonly string[] }
  | { readonly how: "failed"; readonly outcome: RunOutcome };

export interface AttemptsResult {
  /** The candidates that were begun, at least one, in order. */
  readonly candidates: readonly Candidate[];
  readonly count: number;
  readonly first?: Candidate & { readonly applied: Applied };
  /** A person ended the run with this signal. */
  readonly signal?: Signal;
  /** Why no more candidates were begun. */
  readonly limit?: string;
}

/**
 * The end of the whole run, made of the ends of its candidates: their total cost, and the outcome of the first green
 * one.
 */
export function combinedEnd(tried: AttemptsResult): Finished {
  const { candidates, first } = tried;
  const all = candidates.map(({ finished }) => finished);
  const shown = first?.finished ?? all.at(-1);
  if (shown === undefined) throw new TypeError("a run without a candidate");
  const isApplied = first?.applied.how === "applied";
  return {
    type: "run.finished",
    ...outcomeOfAll(tried),
    turns: sum(all, ({ turns }) => turns),
    tool_calls: sum(all, ({ tool_calls }) => tool_calls),
    usage: all.reduce((usage, each) => sumUsage(usage, each.usage), NO_USAGE),
    denials: isApplied ? shown.denials : all.flatMap(({ denials }) => denials),
    ...(first === undefined ? noneDone(shown) : doneBy(first)),
    session: shown.session,
    grounded: null,
    ...(shown.recorded === undefined ? {} : { recorded: shown.recorded }),
    attempts: candidates.map((each) => candidateSummary(each, isApplied && each.nth === first.nth)),
  };
}

type Done = Pick<Finished, "changes" | "handoff" | "handoff_left_out" | "installed" | "verified" | "answer">;

function doneBy({ finished, applied }: NonNullable<AttemptsResult["first"]>): Done {
  const { handoff, handoff_left_out, installed, verified = null, answer } = finished;
  return {
    handoff,
    ...(handoff_left_out === undefined ? {} : { handoff_left_out }),
    ...(installed === undefined ? {} : { installed }),
    verified,
    ...(applied.how === "applied"
      ? { changes: applied.changes, answer }
      : { changes: NOTHING, answer: null }),
  };
}

const NOTHING: RunChanges = { added: [], modified: [], deleted: [], ignored: 0 };

/** No candidate was green: nothing of them is in the workspace, and the last one's check says why. */
const noneDone = ({ verified = null }: Finished): Done => ({
  changes: NOTHING,
  handoff: [],
  verified,
  answer: null,
});

const sum = (all: readonly Finished[], of: (one: Finished) => number): number =>
  all.reduce((count, each) => count + of(each), 0);

function candidateSummary({ finished }: Candidate, applied: boolean): CandidateReport {
  const { session, status, exit_code, reason, verified = null } = finished;
  return { session, status, exit_code, reason, verified, applied };
}

function outcomeOfAll(tried: AttemptsResult): RunOutcome {
  const { candidates, first, signal } = tried;
  if (first !== undefined) return outcomeOfFirst(tried, first);
  if (signal !== undefined) return outcomeOf({ how: "cancelled", signal }, [], { strict: false });
  const hopeless = candidates.find(({ finished }) => isHopeless(finished))?.finished;
  if (hopeless !== undefined && candidates.every(({ finished }) => isHopeless(finished)))
    return { status: hopeless.status, exit_code: exitOf(hopeless), reason: hopeless.reason };
  return failed(`${noCandidateText(tried)}; the folder is unchanged.`);
}

const exitOf = ({ exit_code }: Finished): RunOutcome["exit_code"] =>
  exit_code === EXIT.model ? EXIT.model : EXIT.sandbox;

const failed = (reason: string): RunOutcome => ({ status: "failed", exit_code: EXIT.failed, reason });

function noCandidateText({ candidates, count, limit }: AttemptsResult): string {
  const begun = candidates.length;
  const which =
    begun === count ? `None of ${count} candidates` : `None of the candidates started (${begun} of ${count})`;
  const command = candidates.find(({ finished }) => finished.verified)?.finished.verified?.command;
  const passed = command === undefined ? "changed something and finished" : `passed \`${command}\``;
  return `${which} ${passed}${limit === undefined ? "" : ` (${limit.replace(/\.$/, "")})`}`;
}

function outcomeOfFirst(
  tried: AttemptsResult,
  { nth, finished, applied }: NonNullable<AttemptsResult["first"]>,
): RunOutcome {
  const { session, verified } = finished;
  const passed = verified ? `passed \`${verified.command}\`` : "changed something, and no check was run";
  const begun = `${tried.candidates.length} of ${tried.count} candidates`;
  const head = `${begun}: the ${ordinal(nth)} ${passed}`;
  switch (applied.how) {
    case "applied": {
      const done =
        hasChanges(applied.changes) || applied.changes.ignored > 0 ? "applied" : "there was nothing to apply";
      return {
        status: "done",
        exit_code: EXIT.done,
        reason: [head, done, ...otherCandidates(tried, nth)].join("; "),
      };
    }
    case "conflict": {
      const named = applied.refused.slice(0, MAX_NAMED).map(({ path, reason }) => `${path}: ${reason}`);
      const more = applied.refused.length - named.length;
      const why =
        [...named, ...(more > 0 ? [`${more} more`] : [])].join(", ") || "a part of it cannot be read";
      return failed(
        `${head}; not applied, because the folder was changed meanwhile (${why}): harness diff ${session}`,
      );
    }
    case "blocked": {
      const named = applied.paths.slice(0, MAX_NAMED).join(", ");
      const more = applied.paths.length > MAX_NAMED ? ", …" : "";
      const reason = `${head}; not applied, because the host would act on ${named}${more} by itself: harness apply ${session} --accept PATH`;
      return { status: "refused", exit_code: EXIT.refused, reason };
    }
    case "failed": {
      const { outcome } = applied;
      return { ...outcome, reason: `${head}; not applied: ${outcome.reason}` };
    }
  }
}

const MAX_NAMED = 3;

/** Other candidates that have changes to look at. */
function otherCandidates({ candidates }: AttemptsResult, nth: number): readonly string[] {
  const kept = candidates.filter((each) => each.nth !== nth && hasChanges(each.finished.changes));
  const look = kept.map(({ finished }) => `harness diff ${finished.session}`).join(", ");
  return kept.length === 0 ? [] : [`the other${kept.length === 1 ? "" : "s"}: ${look}`];
}

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"] as const;
const ordinal = (nth: number): string => ORDINALS[nth - 1] ?? `${nth}th`;
