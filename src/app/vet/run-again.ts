import type { Finding } from "../../core/behaviour.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { formatDuration } from "../../core/text/bounds.ts";
import { type RunSteps, runSteps } from "./run-steps.ts";
import { CLOCK_AHEAD } from "./stand-ins.ts";

/** What is run a second time, past the canaries and as if it were elsewhere, and what shows only then. */

/** What took longer the first time is not run again: a busy machine makes many seconds of one. */
const QUICK_MS = 15_000;
/** For one that is run a second time, and for all of them. */
const STEP_AGAIN_MS = 20_000;
const AGAIN_MS = 30_000;
const CLOCK = "/tmp/vet-clock";

/** What was ended at a canary is run once more, where it may read the false things: what else it does shows. */
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

/** What build machines of other makers say of themselves. */
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

/** Where it believes to be in CI, another user's, and in another year: what waits for that shows. */
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
  `${command} was not run a second time, as in CI and at another date: it took ${formatDuration(ms)}`;

/** Whether the image could make what puts the clock ahead. */
export async function clockAhead(box: OwnedBox, signal: AbortSignal): Promise<boolean> {
  await box.write(`${CLOCK}.c`, Buffer.from(CLOCK_AHEAD));
  const words = ["gcc", "-shared", "-fPIC", "-O1", "-o", `${CLOCK}.so`, `${CLOCK}.c`, "-ldl"];
  const result = await box.exec(
    { words, folder: "/", timeoutMs: 20_000, keep: { head: 4096, tail: 0 } },
    signal,
  );
  return result.exit_code === 0;
}

/** Numbers of processes and ports differ from run to run, and whether a file was there already. */
const sameAs = ({ rule, path: file, text }: Finding): string =>
  `${rule}\n${(file ?? text).replaceAll(/\d+/g, "0").replace(/^(?:makes|writes) /, "")}`;

export function newIn(first: readonly Finding[], again: readonly Finding[]): readonly Finding[] {
  const known = new Set(first.map(sameAs));
  return again.filter((each) => each.weight !== "note" && !known.has(sameAs(each)) && !LATER.has(each.rule));
}

/** What it did only the second time. */
export function differing(first: readonly Finding[], again: readonly Finding[]): readonly Finding[] {
  const fresh = newIn(first, again);
  return fresh.length === 0
    ? []
    : [
        ...fresh,
        {
          rule: "run.differs",
          weight: "noisy",
          text: `did ${fresh.length} more things where it believed to be in CI, and at another date`,
          ...(fresh[0]?.step === undefined ? {} : { step: fresh[0].step }),
        },
      ];
}

/** A second run may take longer, and finds other files. */
const LATER: ReadonlySet<string> = new Set([
  "run.time",
  "run.sources",
  "run.deletes",
  "run.flood",
  "run.memory",
]);
