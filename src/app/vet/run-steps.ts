/**
 * Runs commands of a repository one after the other in one box, and records what they were observed doing; runs some a
 * second time, past the canaries and as if on another machine.
 */
import type { Canary, Finding, Observed, VetStep } from "../../core/behaviour.ts";
import type { Change, ExecResult, OwnedBox } from "../../core/ports.ts";
import type { Connection } from "../../core/network.ts";
import type { Cause } from "../../core/errors.ts";
import { lastStates, visible } from "../../core/visible.ts";
import type { Advance } from "../../render/tty/live-lines.ts";
import type { ObservedStep } from "../../vet/judge-acts.ts";
import type { PlannedStep } from "../../vet/step-plan.ts";
import { formatDuration } from "../../core/wording.ts";
import { CLOCK_AHEAD } from "./vet-scripts.ts";

export interface Running {
  readonly box: OwnedBox;
  readonly canaries: readonly Canary[];
  readonly timeoutMs: number;
  /** The limit of processes in the box. */
  readonly pids: number;
  /** When everything must be over, on the clock of `performance`. */
  readonly until: number;
  /** Variables for all steps. */
  readonly env: Readonly<Record<string, string>>;
  /** The connections that were requested so far. */
  readonly connections: readonly Connection[];
  readonly onProgress: (far: Advance) => void;
}

export interface RunStep {
  readonly step: VetStep;
  readonly behaved: ObservedStep;
  readonly planned: PlannedStep;
}

interface RunSteps {
  readonly ran: readonly RunStep[];
  /** Why some steps were not run, in plain words. */
  readonly notRun: readonly string[];
}

const KEEP = { head: 64 * 1024, tail: 64 * 1024 };
const OUTPUT_LINES = 12;
const OUTPUT_CHARACTERS = 4000;
const MAX_LISTED = 200;

/** For steps that are repeated. */
interface Repetition {
  readonly env: Readonly<Record<string, string>>;
  /** The number of the first repeated step. */
  readonly first: number;
  /** The step is to believe that it runs elsewhere, such as in CI. */
  readonly isElsewhere: boolean;
}

export async function runSteps(
  running: Running,
  plan: readonly PlannedStep[],
  signal: AbortSignal,
  again?: Repetition,
): Promise<RunSteps> {
  const there = await programsIn(running.box, plan, signal);
  const ran: RunStep[] = [];
  const notRun: string[] = [];
  const waiting = [...plan];
  const seen = await currentChanges(running.box);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const lacks = next.needs.filter((name) => !there.has(name));
    if (lacks.length > 0) {
      const more = next.orElse ?? [];
      notRun.push(missing(next, lacks, more.length > 0));
      waiting.unshift(...more);
      continue;
    }
    const left = running.until - performance.now();
    if (left <= 0) {
      notRun.push(
        `${next.command}: there was no time left for it${again === undefined ? ": --max-time" : ""}`,
      );
      continue;
    }
    const over = ran.length + notRun.length;
    const total = over + 1 + waiting.length;
    running.onProgress({ done: over, total, unit: "commands", now: next.command, steady: false });
    const timeoutMs = Math.max(1000, Math.min(running.timeoutMs, left));
    const at = {
      number: (again?.first ?? 0) + ran.length,
      timeoutMs,
      env: { ...running.env, ...again?.env },
      isElsewhere: again?.isElsewhere === true,
    };
    const one = await runStep(running, next, at, { seen, signal });
    signal.throwIfAborted();
    ran.push(one);
    if (one.step.exit_code !== 0 && again === undefined) waiting.unshift(...(next.orElse ?? []));
  }
  const all = ran.length + notRun.length;
  if (all > 0) running.onProgress({ done: all, total: all, unit: "commands", steady: false });
  return { ran, notRun };
}

const missing = ({ command }: PlannedStep, lacks: readonly string[], more: boolean): string =>
  `${command} was not run: ${lacks.join(" and ")} ${lacks.length === 1 ? "is" : "are"} not in the image${more ? "; the parts of it that are the repository's own were run" : " (use an --env NAME or --image IMAGE that has it, or --allow-domain to download it)"}`;

interface StepAt {
  readonly number: number;
  readonly timeoutMs: number;
  readonly env: Readonly<Record<string, string>>;
  readonly isElsewhere: boolean;
}

interface StepContext {
  readonly seen: Map<string, string>;
  readonly signal: AbortSignal;
}

async function runStep(
  running: Running,
  planned: PlannedStep,
  at: StepAt,
  { seen, signal }: StepContext,
): Promise<RunStep> {
  const { box, canaries, connections } = running;
  const before = connections.length;
  const request = {
    // CI marks the run as one of a box. An installation at home has no such variable, so it is removed.
    words: at.isElsewhere ? planned.words : ["env", "-u", "CI", ...planned.words],
    env: at.env,
    timeoutMs: at.timeoutMs,
    keep: KEEP,
    observe: { canaries },
    ...(planned.folder === "" ? {} : { folder: `${box.workspace}/${planned.folder}` }),
  };
  const result = await box.exec(request, signal);
  const changes = changesSince(seen, await currentChanges(box));
  const observed = result.observed ?? NOT_OBSERVED;
  const own = connections.slice(before);
  const { exit_code, cause, reason, duration_ms, timed_out, leftovers, peak } = result;
  const step: VetStep = {
    command: planned.command,
    what: planned.what,
    from: planned.from,
    exit_code,
    cause,
    reason,
    duration_ms,
    observed,
    connections: own,
    changes,
    peak,
    output: outputOf(result),
  };
  const printed = result.stdout.total + result.stderr.total;
  const facts = { number: at.number, what: planned.what, cause, reason, timed_out, leftovers, printed };
  const judgedCause = await limitMet(running, result, step.output, signal);
  return {
    step,
    planned,
    behaved: { ...facts, output: step.output, cause: judgedCause, observed, connections: own, changes },
  };
}

/**
 * The limit that a step met, even if another cause was reported first: a shell continues after a failed write, and a
 * program that starts processes up to the limit continues until its time is over.
 */
async function limitMet(
  { box, pids }: Running,
  { cause, timed_out, peak, exit_code, observed }: ExecResult,
  output: string,
  signal: AbortSignal,
): Promise<Cause | null> {
  if (FULL.test(output)) return "disk";
  if (timed_out && peak.pids >= pids) return "pids";
  const isEnded = exit_code === 0 || cause !== "program" || (observed?.touched ?? null) !== null;
  return !isEnded && (await isTemporaryFull(box, signal)) ? "disk" : cause;
}

/** Folders in memory have a size limit of their own. */
async function isTemporaryFull(box: OwnedBox, signal: AbortSignal): Promise<boolean> {
  const words = ["df", "-P", "/tmp", "/dev/shm"];
  const result = await box.exec({ words, folder: "/", timeoutMs: PROBE_MS, keep: KEEP }, signal);
  return /\s(?:99|100)%\s/.test(new TextDecoder().decode(result.stdout.head));
}

const FULL = /No space left on device|\bENOSPC\b|Disk quota exceeded/;

const NOT_OBSERVED: Observed = {
  by: "none",
  processes: [],
  acts: [],
  missed: { processes: 0, acts: 0 },
  touched: null,
  unseen: [
    "what programs did was not observed, only what they changed, what they reached and how they ended",
  ],
};

function outputOf({ stdout, stderr }: ExecResult): string {
  const text = [stdout, stderr]
    .map(({ head, tail }) => new TextDecoder().decode(tail.length > 0 ? tail : head))
    .filter((each) => each.trim() !== "")
    .join("\n");
  const lines = lastStates(visible(text)).trimEnd().split("\n").slice(-OUTPUT_LINES);
  return lines.join("\n").slice(-OUTPUT_CHARACTERS);
}

async function currentChanges(box: OwnedBox): Promise<Map<string, string>> {
  const seen = new Map<string, string>();
  for (const { what, kind, mode, path } of (await box.changes()).all)
    seen.set(path, `${what satisfies Change["what"]} ${kind} ${mode}`);
  return seen;
}

/** The changes since `before`, which is then replaced by `now`. */
function changesSince(before: Map<string, string>, now: Map<string, string>): VetStep["changes"] {
  const lists = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  let more = 0;
  for (const [path, text] of now) {
    if (before.get(path) === text) continue;
    const list = lists[text.slice(0, text.indexOf(" ")) as keyof typeof lists];
    if (list.length < MAX_LISTED) list.push(path);
    else more += 1;
  }
  // Files that an earlier step made and this one deleted.
  for (const [path, text] of before)
    if (!now.has(path) && text.startsWith("added") && lists.deleted.length < MAX_LISTED)
      lists.deleted.push(path);
  before.clear();
  for (const [path, text] of now) before.set(path, text);
  return { ...lists, more };
}

const PROBE_MS = 20_000;
const PYTHON_MODULES: ReadonlySet<string> = new Set(["pip", "pytest"]);

/** The programs, or Python modules, that the steps need and the image has. */
async function programsIn(
  box: OwnedBox,
  plan: readonly PlannedStep[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const all = (steps: readonly PlannedStep[]): readonly string[] =>
    steps.flatMap(({ needs, orElse }) => [...needs, ...all(orElse ?? [])]);
  const wanted = [...new Set(all(plan))];
  if (wanted.length === 0) return new Set();
  const programs = wanted.filter((name) => !PYTHON_MODULES.has(name));
  const modules = wanted.filter((name) => PYTHON_MODULES.has(name));
  const asking = `python3 -I -c 'import importlib.util as u
for m in "${modules.join(" ")}".split():
    u.find_spec(m) and print(m)' 2>/dev/null`;
  const script = `for p in "$@"; do command -v "$p" >/dev/null 2>&1 && echo "$p"; done
${modules.length === 0 ? "" : asking}
true`;
  const words = ["sh", "-c", script, "sh", ...programs];
  const result = await box.exec({ words, folder: "/", timeoutMs: PROBE_MS, keep: KEEP }, signal);
  const found = new TextDecoder().decode(result.stdout.head).split("\n");
  // A path such as `./gradlew` is looked up when the step runs.
  return new Set([...found, ...wanted.filter((name) => name.startsWith("./"))]);
}

/** A command that took longer the first time is not repeated: on a busy machine a second may become many. */
const QUICK_MS = 15_000;
/** For one repeated command, and for all repetitions together. */
const STEP_AGAIN_MS = 20_000;
const AGAIN_MS = 30_000;
const CLOCK = "/tmp/vet-clock";

/**
 * Repeats the commands that were ended at a canary, and lets them read the false values, so that their further acts
 * show.
 */
export async function runPastCanaries(
  running: Parameters<typeof runSteps>[0],
  first: RunSteps,
  signal: AbortSignal,
): Promise<RunSteps> {
  const touched = first.ran.filter(({ step }) => step.observed.touched !== null);
  if (touched.length === 0) return { ran: [], notRun: [] };
  const plan = touched.map(({ planned }) => ({
    ...planned,
    orElse: [],
    command: `${planned.command} (again: past the canary)`,
  }));
  const until = Math.min(running.until, performance.now() + AGAIN_MS);
  const bounds = { until, timeoutMs: Math.min(running.timeoutMs, STEP_AGAIN_MS) };
  return runSteps({ ...running, ...bounds, canaries: [] }, plan, signal, {
    env: {},
    first: first.ran.length,
    isElsewhere: false,
  });
}

/** Variables that CI systems of other vendors set. */
const OTHER_MACHINES = {
  GITLAB_CI: "true",
  JENKINS_URL: "http://localhost:8080/",
  CIRCLECI: "true",
  TRAVIS: "true",
  BUILDKITE: "true",
  TF_BUILD: "True",
  TEAMCITY_VERSION: "2024.03",
  CODEBUILD_BUILD_ID: "build:1",
  BITBUCKET_BUILD_NUMBER: "7",
  DRONE: "true",
} as const;

/** Repeats the commands as another user in CI in another year, so that code that waits for this shows. */
export async function runAgain(
  running: Parameters<typeof runSteps>[0],
  {
    first,
    number,
    clock,
  }: { readonly first: RunSteps; readonly number: number; readonly clock: Promise<boolean> },
  signal: AbortSignal,
): Promise<RunSteps> {
  const fits = first.ran.filter(({ step }) => step.what !== "given" && step.observed.touched === null);
  const quick = fits.filter(({ step }) => step.duration_ms < QUICK_MS);
  const slow = fits.filter(({ step }) => step.duration_ms >= QUICK_MS);
  const notRun = slow.map(({ planned, step }) => notAgain(planned.command, step.duration_ms));
  if (quick.length === 0) return { ran: [], notRun };
  const ahead = await clock;
  const env = {
    CI: "true",
    GITHUB_ACTIONS: "true",
    CONTINUOUS_INTEGRATION: "true",
    ...OTHER_MACHINES,
    BUILD_NUMBER: "7",
    USER: "runner",
    LOGNAME: "runner",
    ...(ahead ? { LD_PRELOAD: `${CLOCK}.so` } : {}),
  };
  const again = { env, first: number, isElsewhere: true };
  const plan = quick.map(({ planned }) => ({
    ...planned,
    command: `${planned.command} (again: CI, ${ahead ? "400 days later" : "same day"})`,
  }));
  const until = Math.min(running.until, performance.now() + AGAIN_MS);
  const timeoutMs = Math.min(running.timeoutMs, STEP_AGAIN_MS);
  const second = await runSteps({ ...running, until, timeoutMs }, plan, signal, again);
  return { ran: second.ran, notRun: [...notRun, ...second.notRun] };
}

const notAgain = (command: string, ms: number): string =>
  `${command} was not run a second time, as if in CI and on another date: it took ${formatDuration(ms)}`;

/** Whether the image could compile the library that sets the clock ahead. */
export async function clockAhead(box: OwnedBox, signal: AbortSignal): Promise<boolean> {
  await box.write(`${CLOCK}.c`, Buffer.from(CLOCK_AHEAD));
  const words = ["gcc", "-shared", "-fPIC", "-O1", "-o", `${CLOCK}.so`, `${CLOCK}.c`, "-ldl"];
  const result = await box.exec(
    { words, folder: "/", timeoutMs: 20_000, keep: { head: 4096, tail: 0 } },
    signal,
  );
  return result.exit_code === 0;
}

/** Ignores differences between any two runs: process and port numbers, and whether a file already existed. */
const sameAs = ({ rule, path: file, text }: Finding): string =>
  `${rule}\n${(file ?? text).replaceAll(/\d+/g, "0").replace(/^(?:makes|writes) /, "")}`;

export function newIn(first: readonly Finding[], again: readonly Finding[]): readonly Finding[] {
  const known = new Set(first.map(sameAs));
  return again.filter((each) => each.weight !== "note" && !known.has(sameAs(each)) && !LATER.has(each.rule));
}

/** Findings of the second run only. */
export function secondRunFindings(first: readonly Finding[], again: readonly Finding[]): readonly Finding[] {
  const fresh = newIn(first, again);
  return fresh.length === 0
    ? []
    : [
        ...fresh,
        {
          rule: "run.differs",
          weight: "noisy",
          text: `did ${fresh.length} more things when run as if in CI and on another date`,
          ...(fresh[0]?.step === undefined ? {} : { step: fresh[0].step }),
        },
      ];
}

/** Rules that say nothing here: a second run may take longer, and finds other files. */
const LATER: ReadonlySet<string> = new Set([
  "run.time",
  "run.sources",
  "run.deletes",
  "run.flood",
  "run.memory",
]);
