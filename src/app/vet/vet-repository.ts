import { readdir } from "node:fs/promises";
import path from "node:path";
import {
  type Canary,
  type Finding,
  verdictOf,
  type VetReport,
  VET_EXIT,
  type Weight,
} from "../../core/behaviour.ts";
import type { Connection } from "../../core/network.ts";
import { BOX_HOME, type OwnedBox } from "../../core/ports.ts";
import { CANARY_ENV, plantCanaries } from "../../boxes/canaries.ts";
import { projectFiles } from "../../docker/environments/detect-recipe.ts";
import { FolderTree } from "../../platform/folder-tree.ts";
import { headText } from "../../platform/safe-files.ts";
import { handoffOf } from "../../policy/handoff-paths.ts";
import { placeOf } from "../../policy/paths/path-place.ts";
import { judgeActs, type JudgedAround } from "../../vet/judge-acts.ts";
import type { TreeFacts } from "../../vet/compare-versions.ts";
import { type TreeLook, lookAt } from "../../vet/look/look-at.ts";
import { type PlannedStep, planSteps, type ProjectFolder, STAND_INS } from "../../vet/step-plan.ts";
import { projectCheck } from "../run/project-check.ts";
import {
  clockAhead,
  secondRunFindings,
  newIn,
  runAgain,
  runPastCanaries,
  type RunStep,
  runSteps,
} from "./run-steps.ts";
import { PYTHON_STAND_INS } from "./vet-scripts.ts";
import { GIT, SAFE_GIT, stage, type Staged } from "./staging.ts";
import {
  mostPids,
  presetsIn,
  refuseGrants,
  stepsBox,
  type Subject,
  subjectNamed,
  type VetOptions,
} from "./vet-box.ts";

/**
 * What would this repository do? It is examined, its commands are run in a box without anything of the user's, and
 * judged.
 */

export interface VetRequest {
  readonly name: string;
  /** The user's own command, run instead of those that are found. */
  readonly command: readonly string[] | null;
}

export async function vetRepository(
  options: VetOptions,
  wanted: VetRequest,
  signal: AbortSignal,
): Promise<VetReport> {
  const { report } = await vetWithFacts(options, wanted, signal);
  return report;
}

/** The report, with the facts that trees are compared by. */
export async function vetWithFacts(
  options: VetOptions,
  wanted: VetRequest,
  signal: AbortSignal,
): Promise<{ readonly report: VetReport; readonly facts: TreeFacts }> {
  const started = performance.now();
  refuseGrants(options.settings);
  const subject = await subjectNamed(wanted.name);
  const now = subject.kind === "archive" ? "unpacking" : subject.kind === "git" ? "cloning" : "looking";
  options.onProgress({ now });
  await using stack = new AsyncDisposableStack();
  const staged = subject.kind === "folder" ? undefined : stack.use(await stage(options, subject, signal));
  const tree = staged?.tree ?? (subject as Extract<Subject, { readonly kind: "folder" }>).path;
  const tried = await tryTree(options, { tree, staged, command: wanted.command }, signal);
  const report = reportOf({ ...tried, options, kind: subject.kind, name: wanted.name, staged, started });
  return { report, facts: tried.looked.facts };
}

interface Trying {
  readonly tree: string;
  readonly staged: Pick<Staged, "notRun" | "commit"> | undefined;
  readonly command: readonly string[] | null;
  /** Selects the planned commands to run; left out: all. */
  readonly chooses?: (step: PlannedStep) => boolean;
}

interface TryResult {
  readonly looked: TreeLook;
  readonly judged: readonly Finding[];
  readonly steps: readonly RunStep[];
  readonly unseen: readonly string[];
  readonly commit: string | null;
}

export async function tryTree(
  options: VetOptions,
  { tree, staged, command, chooses = () => true }: Trying,
  signal: AbortSignal,
): Promise<TryResult> {
  const obeys = obeysIn(tree);
  const looking = timedLook(options, tree, signal);
  looking.catch(() => undefined);
  if (staged !== undefined && staged.notRun !== null)
    return {
      looked: (await looking).looked,
      judged: [],
      steps: [],
      unseen: [`nothing was run: ${staged.notRun}`],
      commit: staged.commit,
    };
  const planning = command === null ? plannedIn(tree, options) : Promise.resolve([givenStep(command)]);
  planning.catch(() => undefined);
  const connections: Connection[] = [];
  await using box = await stepsBox(options, tree, (one) => connections.push(one), signal);
  const plan = (await planning).filter(chooses);
  const { looked, took } = await looking;
  const [canaries, commit] = await Promise.all([
    preparedIn(box, plan),
    staged?.commit ?? commitIn(box, signal),
  ]);
  const running = {
    box,
    canaries,
    timeoutMs: options.settings.timeout,
    pids: mostPids(options.settings),
    until: performance.now() + Math.max(0, options.maxMs - took),
    env: stepVariables(options),
    connections,
    onProgress: options.onProgress,
  };
  // Compiled while the first commands run, for those that are repeated.
  const clock = command === null && plan.length > 0 ? clockAhead(box, signal) : Promise.resolve(false);
  clock.catch(() => undefined);
  const first = await runSteps(running, plan, signal);
  const around: JudgedAround = {
    workspace: box.workspace,
    home: BOX_HOME,
    files: looked.files,
    obeys,
    placeOf: (file, op) => placeOf(file, op, { workspace: box.workspace, home: BOX_HOME }),
  };
  const judged = first.ran.flatMap(({ behaved }) => judgeActs(behaved, around));
  const past = await runPastCanaries(running, first, signal);
  const behind = past.ran.flatMap(({ behaved }) => judgeActs(behaved, around));
  const again = await runAgain(running, { first, number: first.ran.length + past.ran.length, clock }, signal);
  const more = again.ran.flatMap(({ behaved }) => judgeActs(behaved, around));
  const known = [...judged, ...newIn(judged, behind)];
  const steps = [...first.ran, ...past.ran, ...again.ran];
  const none =
    plan.length === 0
      ? ["no command of a known ecosystem was found; give your own: harness vet REPO -- CMD"]
      : [];
  return {
    looked,
    judged: [...known, ...secondRunFindings(known, more)],
    steps,
    unseen: [
      ...none,
      ...[first, past, again].flatMap(({ notRun }) => notRun),
      ...new Set(steps.flatMap(({ step }) => step.observed.unseen)),
    ],
    commit,
  };
}

/** The look counts against the time for the commands; what is not reached in that time is a finding. */
export async function timedLook(
  { maxMs }: Pick<VetOptions, "maxMs">,
  tree: string,
  signal: AbortSignal,
): Promise<{ readonly looked: TreeLook; readonly took: number }> {
  const started = performance.now();
  const isLate = (): boolean => performance.now() - started > maxMs;
  const looked = await lookAt(new FolderTree(tree), { signal, obeys: obeysIn(tree), isLate });
  return { looked, took: performance.now() - started };
}

/** Why the host runs or obeys a path of the tree. */
const obeysIn =
  (tree: string): JudgedAround["obeys"] =>
  (file) =>
    handoffOf([{ path: file, what: "added", kind: "file" }], tree)[0];

const givenStep = (words: readonly string[]): PlannedStep => ({
  words,
  command: words.join(" "),
  what: "given",
  from: null,
  folder: "",
  needs: [],
});

const HEADS = /^(?:[\w.-]+\.sh|pyproject\.toml|hatch_build\.py|build\.py)$/;
const HEAD_BYTES = 64 * 1024;

async function plannedIn(tree: string, { settings }: VetOptions): Promise<readonly PlannedStep[]> {
  const [{ files }, top, test] = await Promise.all([
    projectFiles(tree),
    readdir(tree, { withFileTypes: true }),
    projectCheck(tree, { scripts: true }),
  ]);
  const texts = new Map<string, Map<string, string>>([["", new Map()]]);
  for (const { name } of top.filter((entry) => entry.isFile())) texts.get("")?.set(name, "");
  for (const { path: file, text } of files) {
    const folder = path.dirname(file) === "." ? "" : path.dirname(file);
    texts.set(folder, (texts.get(folder) ?? new Map<string, string>()).set(path.basename(file), text));
  }
  for (const [name, text] of texts.get("") ?? [])
    if (text === "" && HEADS.test(name))
      texts.get("")?.set(name, await headText(path.join(tree, name), HEAD_BYTES));
  const places = [...texts].map(([folder, names]): ProjectFolder => ({
    folder,
    names: new Set(names.keys()),
    text: (name) => names.get(name) ?? "",
  }));
  return planSteps({ places, test, granted: presetsIn(settings) });
}

/** Tells tools that there is no network, so that connection attempts come from the repository itself. */
function stepVariables({ settings }: VetOptions): Readonly<Record<string, string>> {
  const online = settings.allow_domains.length > 0;
  return {
    ...CANARY_ENV,
    PYTHONPATH: STAND_INS,
    PYTHONDONTWRITEBYTECODE: "1",
    npm_config_update_notifier: "false",
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_ignore_scripts: "false",
    PIP_DISABLE_PIP_VERSION_CHECK: "1",
    ...(online
      ? {}
      : {
          npm_config_offline: "true",
          CARGO_NET_OFFLINE: "true",
          GOPROXY: "off",
          GOTOOLCHAIN: "local",
          GOFLAGS: "-mod=mod",
          PIP_NO_INDEX: "1",
          COMPOSER_DISABLE_NETWORK: "1",
        }),
  };
}

/** Writes the stand-ins for tools, and the canaries, before anything of the repository runs. */
async function preparedIn(box: OwnedBox, plan: readonly PlannedStep[]): Promise<readonly Canary[]> {
  const python = plan.some(({ words, needs }) =>
    [...words, ...needs].some((word) => /python|pip|pytest/.test(word)),
  );
  const files = python ? Object.entries(PYTHON_STAND_INS) : [];
  const [canaries] = await Promise.all([
    plantCanaries(box),
    ...files.map(([name, text]) => box.write(`${STAND_INS}/${name}`, Buffer.from(text))),
  ]);
  return canaries;
}

async function commitIn(box: OwnedBox, signal: AbortSignal): Promise<string | null> {
  const words = [...GIT, "-C", box.workspace, "rev-parse", "--verify", "--quiet", "HEAD"];
  const result = await box.exec(
    { words, env: SAFE_GIT, timeoutMs: 10_000, keep: { head: 256, tail: 0 } },
    signal,
  );
  const text = new TextDecoder().decode(result.stdout.head).trim();
  return result.exit_code === 0 && /^[0-9a-f]{40,64}$/.test(text) ? text : null;
}

interface Reporting extends TryResult {
  readonly options: VetOptions;
  readonly kind: Subject["kind"];
  readonly name: string;
  readonly staged: Pick<Staged, "findings"> | undefined;
  readonly started: number;
}

const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];

const byWeight = (findings: readonly Finding[]): readonly Finding[] =>
  findings.toSorted((one, other) => WEIGHTS.indexOf(one.weight) - WEIGHTS.indexOf(other.weight));

export function reportOf({
  options,
  kind,
  name,
  staged,
  started,
  looked,
  judged,
  steps,
  unseen,
  commit,
}: Reporting): VetReport {
  const findings = byWeight([...judged, ...(staged?.findings ?? []), ...looked.findings]);
  const verdict = verdictOf(findings);
  const took = performance.now() - started;
  const commands = steps.reduce((sum, { step }) => sum + step.duration_ms, 0);
  return {
    verdict,
    exit_code: VET_EXIT[verdict],
    repository: { name, kind, commit, files: looked.files, bytes: looked.bytes },
    findings,
    steps: steps.map(({ step }) => step),
    granted: options.settings.allow_domains,
    runtime: options.runtime ?? "the engine's own",
    unseen,
    took_ms: Math.round(took),
    own_ms: Math.round(Math.max(0, took - commands)),
  };
}
