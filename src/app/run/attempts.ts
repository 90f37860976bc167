import { EXIT, Interrupted, signalOf } from "../../core/errors.ts";
import type { AgentEvent, RunChanges } from "../../core/events.ts";
import type { Session } from "../../core/session.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { cleanStrings, JsonLines, type Renderer } from "../../render/renderers.ts";
import { AttemptLines, runSummary } from "../../render/tty/run-summary.ts";
import { appliedPaths } from "../../render/change-lines.ts";
import type { Finished } from "../../agent/agent-run.ts";
import { stderr, stdout } from "../../render/tty/output.ts";
import { systemClock } from "../../render/tty/live-lines.ts";
import { newSession } from "../sessions/session-access.ts";
import { holdSession } from "../sessions/session-hold.ts";
import {
  type Applied,
  type AttemptsPlan,
  type Candidate,
  candidateConfig,
  hasChanges,
  isGreen,
  isHopeless,
  type AttemptsResult,
  combinedEnd,
} from "./attempt-plan.ts";
import { outcomeAfter } from "./event-sink.ts";
import { type RunInput, runTask } from "./run-task.ts";

/** A run of several candidates, with everything that each of them is run with. */
export interface AttemptsInput extends Omit<RunInput, "session" | "resumed" | "parkedRun" | "show"> {
  readonly plan: AttemptsPlan;
  /** A check was named: without it no candidate counts. */
  readonly checkNamed: boolean;
}

interface HoldingInput extends AttemptsInput {
  readonly holds: AsyncDisposableStack;
}

/** A candidate, and the position of its last event, after which one more line is logged. */
interface RanCandidate extends Candidate {
  readonly session: Session;
  readonly last: Pick<AgentEvent, "run" | "seq">;
}

/**
 * Runs the same task several times, each in a session and a layer of its own. The first green candidate ends the
 * others, and its changes are moved into the workspace as `harness apply` does: all of them, or none. The changes of
 * the others stay with their sessions.
 */
export async function runAttempts(input: AttemptsInput): Promise<Finished> {
  const { plan, limits, signal, flags } = input;
  const view = attemptsView({ ...flags, count: plan.count });
  // Held until every session has the note on all candidates, and the first one's changes are applied.
  await using holds = new AsyncDisposableStack();
  try {
    const { candidates, first } = await untilGreen({ ...input, holds }, view);
    const limit = limits.reached("turn")?.text;
    const tried: AttemptsResult = {
      candidates,
      count: plan.count,
      ...(first === undefined ? {} : { first: { ...first, applied: await applyFirst(input, first) } }),
      ...(signal.aborted ? { signal: signalOf(signal) } : {}),
      ...(limit === undefined || candidates.length === plan.count ? {} : { limit }),
    };
    await dropEmpty(input, candidates);
    const whole = combinedEnd(tried);
    const behind = first ?? candidates.at(-1);
    if (behind === undefined) throw new TypeError("a run without a candidate");
    logAttempts(candidates, whole, behind);
    view.finish({ ...whole, run: behind.last.run, seq: behind.last.seq + 1 });
    return whole;
  } finally {
    view.end();
  }
}

/**
 * Logs the outcome in every candidate's session. The candidate to continue from is logged last, so that its session is
 * the most recent.
 */
function logAttempts(
  candidates: readonly RanCandidate[],
  { exit_code, attempts = [] }: Finished,
  behind: RanCandidate,
): void {
  const applied = attempts.findIndex((each) => each.applied) + 1;
  const which = applied === 0 ? "none was applied" : `candidate ${applied} was applied`;
  const others = candidates.filter((each) => each !== behind);
  for (const { session, nth, last } of [...others, behind]) {
    const isTaken = nth === behind.nth && exit_code === EXIT.done;
    const text = isTaken ? "Applied to the workspace." : `Candidate ${nth} of ${attempts.length}: ${which}.`;
    session.log({ type: "notice", text, attempts, run: last.run, seq: last.seq + 1, candidate: nth });
  }
}

interface Ended {
  readonly candidates: readonly RanCandidate[];
  readonly first?: RanCandidate;
}

/**
 * Runs candidates one after the other, or some side by side, until one is green, a limit of the whole run is spent, or
 * a person ends it.
 */
async function untilGreen(input: HoldingInput, view: AttemptsView): Promise<Ended> {
  const { plan, signal, limits } = input;
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const candidates: RanCandidate[] = [];
  const found: { begun: number; first?: RanCandidate; hopeless?: true } = { begun: 0 };
  const goesOn = (): boolean =>
    found.begun < plan.count &&
    (found.begun === 0 || !(stop.aborted || found.hopeless === true || limits.reached("turn") !== undefined));
  const worker = async (): Promise<void> => {
    while (goesOn()) {
      found.begun += 1;
      const ran = await tryOne({ ...input, signal: stop }, found.begun, view);
      candidates.push(ran);
      if (isHopeless(ran.finished)) found.hopeless = true;
      if (!ran.green || found.first !== undefined) continue;
      found.first = ran;
      over.abort(new Interrupted("overtaken"));
    }
  };
  const workers = Array.from({ length: plan.jobs }, () =>
    worker().catch((thrown: unknown) => {
      over.abort(new Interrupted("overtaken"));
      throw thrown;
    }),
  );
  const failed = (await Promise.allSettled(workers)).find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  const { first } = found;
  const inOrder = candidates.toSorted((one, other) => one.nth - other.nth);
  return { candidates: inOrder, ...(first === undefined ? {} : { first }) };
}

async function tryOne(input: HoldingInput, nth: number, view: AttemptsView): Promise<RanCandidate> {
  const { plan: _, holds, checkNamed, ...others } = input;
  const { settings, origins } = candidateConfig(nth, input);
  const session = newSession(input.store, settings, input);
  holds.use(await holdSession(input.host, session.id));
  const shown = view.of(nth);
  const last = { run: "", seq: 0 };
  const finished = await runTask({
    ...others,
    settings,
    origins,
    flags: { ...input.flags, intent: "change", candidate: nth },
    limits: input.limits.attempt(),
    session,
    resumed: false,
    untrusted: nth === 1 ? input.untrusted : undefined,
    show: {
      take: (event) => {
        Object.assign(last, { run: event.run, seq: event.seq });
        shown.take(event);
      },
      end: () => shown.end(),
    },
  });
  const green = isGreen(finished, checkNamed);
  view.ended({ nth, finished, green });
  return { nth, finished, green, session, last };
}

/** Moves all of the first candidate's changes into the workspace, or none. */
async function applyFirst(
  { host, store, warn, signal }: AttemptsInput,
  first: RanCandidate,
): Promise<Applied> {
  try {
    signal.throwIfAborted();
    const { applySession } = await import("../sessions/apply-changes.ts");
    const outcome = await applySession(host, store, first.session, {
      accept: [],
      dryRun: false,
      interactive: false,
      prompter: undefined,
      say: warn,
      onlyWhole: true,
      signal,
    });
    if (outcome.blocked.length > 0) return { how: "blocked", paths: outcome.blocked };
    if (!outcome.done) return { how: "conflict", refused: outcome.refused };
    const moved = new Set(appliedPaths(outcome).map(({ path }) => path));
    return { how: "applied", changes: appliedOnly(first.finished.changes, moved) };
  } catch (thrown) {
    return { how: "failed", outcome: outcomeAfter(thrown) };
  }
}

/** Removes the layers of candidates that changed nothing: the layer of a copy would be the whole workspace. */
async function dropEmpty({ host, store }: AttemptsInput, candidates: readonly RanCandidate[]): Promise<void> {
  const empty = candidates.filter(({ finished: { changes } }) => changes !== null && !hasChanges(changes));
  if (empty.length === 0) return;
  const { dropEmptyLayer } = await import("../sessions/session-changes.ts");
  for (const { session } of empty) await dropEmptyLayer(host, store, session);
}

/** Leaves out changes that the workspace already had, because the user made the same change meanwhile. */
function appliedOnly(changes: RunChanges | null, moved: ReadonlySet<string>): RunChanges {
  const of = (paths: readonly string[] = []): readonly string[] => paths.filter((path) => moved.has(path));
  const { added, modified, deleted, ...others } = changes ?? {
    added: [],
    modified: [],
    deleted: [],
    ignored: 0,
  };
  return { ...others, added: of(added), modified: of(modified), deleted: of(deleted) };
}

type WholeEvent = Extract<AgentEvent, { readonly type: "run.finished" }>;

interface AttemptsView {
  /** Renders the events of one candidate. */
  readonly of: (nth: number) => Renderer;
  readonly ended: (candidate: Candidate) => void;
  readonly finish: (whole: WholeEvent) => void;
  readonly end: () => void;
}

interface ViewOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly count: number;
}

const attemptsView = (wanted: ViewOptions): AttemptsView => (wanted.json ? asJson() : asLines(wanted));

const jsonLines = (): Renderer => new JsonLines(stdout, systemClock, maskSecrets);

/** Each candidate's streamed texts are buffered separately, because a secret may come in pieces. */
function asJson(): AttemptsView {
  return {
    of: (candidate) => {
      const own = jsonLines();
      return { take: (event) => own.take(asCandidates(event, candidate)), end: () => own.end() };
    },
    ended: () => undefined,
    finish: (whole) => {
      const last = jsonLines();
      last.take(whole);
      last.end();
    },
    end: () => undefined,
  };
}

/** Only the whole run may have a `run.finished`. */
const asCandidates = (event: AgentEvent, candidate: number): AgentEvent =>
  event.type === "run.finished"
    ? { ...event, type: "candidate.finished", candidate }
    : { ...event, candidate };

function asLines({ quiet, count }: ViewOptions): AttemptsView {
  const began = performance.now();
  const lines = new AttemptLines(stderr, { quiet, count, clock: systemClock });
  return {
    of: (nth) => ({
      take: (event) => lines.take(cleanStrings({ ...event, candidate: nth }, maskSecrets)),
      end: () => undefined,
    }),
    ended: ({ nth, green, finished }) =>
      lines.ended(nth, green, cleanStrings<Finished>(finished, maskSecrets)),
    finish: (whole) => {
      lines.end();
      const summary = cleanStrings(whole, maskSecrets);
      const applied = summary.attempts?.some((each) => each.applied) === true;
      const about = { ms: performance.now() - began, quiet, changes: applied ? "here" : "kept" } as const;
      stderr.write(runSummary(summary, about, stderr));
    },
    end: () => lines.end(),
  };
}
