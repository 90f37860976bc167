import type { Finding } from "../../core/behaviour.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { formatDuration } from "../../core/wording.ts";
import { type RunSteps, runSteps } from "./run-steps.ts";
import { CLOCK_AHEAD } from "./stand-ins.ts";

/** Second runs of commands: past the canaries, and as if on another machine; and what shows only then. */

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
export function differing(first: readonly Finding[], again: readonly Finding[]): readonly Finding[] {
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
