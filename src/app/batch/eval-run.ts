import { createHash } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type ChildEnd, finishedIn, type FinishedRun, lastLines, refusalIn, runChild } from "./child-run.ts";
import { lockedFolder, openResults, resultLines } from "./batch-folder.ts";
import { evalKey, type EvalResult, evalResultForm } from "../../render/batch-results.ts";
import { copyProbes } from "../../models/model-probe.ts";
import { visibleLine } from "../../core/visible.ts";
import { makeFolder } from "../../platform/folders.ts";
import { type EvalTask, layForCheck, layRepository } from "./eval-suite.ts";

export interface EvalRequest {
  readonly tasks: readonly EvalTask[];
  readonly what: EvalWhat;
  /** How often each task runs. */
  readonly times: number;
  /** How many tasks run side by side. */
  readonly jobs: number;
  /** Holds `results.jsonl`, and the state of the runs. */
  readonly folder: string;
  /** The user's own state, which has the probed call forms of models. */
  readonly state: string;
  /** Folder for the workspaces while they are needed; never inside a state folder, which no box may see. */
  readonly workspaces: string;
  /** Candidates for each run that wants a change, as in the setting. */
  readonly attempts?: number;
  /** Words for `harness run`: the model and whatever else is tried. */
  readonly flags: readonly string[];
  /** A file in each task that is played as its model, instead of a model from `flags`. */
  readonly scripted?: string;
  /** Keep the workspaces of unsolved runs. */
  readonly keep: boolean;
  /** Called when a task begins; `done` is how many have finished. */
  readonly onTask: (task: string, done: number, all: number) => void;
  readonly onResult: (result: EvalResult, done: number, all: number) => void;
}

/** The identity of an eval: results of an eval that differs in any of these do not count. */
export interface EvalWhat {
  readonly suite: string;
  /** The user's own model, which `flags` may override; absent with scripted replies. */
  readonly model?: Readonly<Record<string, unknown>>;
  readonly flags: readonly string[];
  readonly scripted?: string;
  readonly attempts?: number;
}

const textOf = ({ suite, model, flags, scripted, attempts }: EvalWhat): string =>
  JSON.stringify({ suite, model, flags, scripted, attempts });

/** The default name of the results folder. */
export const evalName = (what: EvalWhat): string =>
  `${path.basename(what.suite)}-${createHash("sha256").update(textOf(what)).digest("hex").slice(0, 12)}`;

/** A folder of an earlier version, without `eval.json`, is taken as this eval's. */
async function requireSame({ folder, what }: EvalRequest, hasResults: boolean): Promise<void> {
  const file = path.join(folder, "eval.json");
  const wanted = textOf(what);
  const earlier = hasResults ? await readFile(file, "utf8").catch(() => wanted) : wanted;
  if (earlier === wanted) return writeFile(file, wanted);
  throw new HarnessError(
    EXIT.usage,
    `${folder} contains the results of another eval: ${visibleLine(earlier)}`,
    "choose another --out, or remove that folder",
  );
}

/** Exit codes that every further run would meet too: the whole eval is given up. */
const HOPELESS = [EXIT.usage, EXIT.model, EXIT.sandbox] as const;

/**
 * Runs the tasks that have no result in the folder yet, and returns all results there. Each run is a process of its
 * own, as a user would start it. If the first result says that no run can work (no model, no engine, wrong flags), it
 * is thrown.
 */
export async function runEval(request: EvalRequest, signal: AbortSignal): Promise<readonly EvalResult[]> {
  using _ = lockedFolder(request.folder, "eval");
  await copyProbes(request.state, path.join(stateOf(request), "harness"));
  const file = path.join(request.folder, "results.jsonl");
  const earlier = new Set((await readResults(file)).map(evalKey));
  await requireSame(request, earlier.size > 0);
  const all = request.tasks.flatMap((task) =>
    Array.from({ length: request.times }, (_, at) => ({ task, nth: at + 1 })),
  );
  const left = all.filter(({ task, nth }) => !earlier.has(evalKey({ task: task.name, nth })));
  const stopped = new AbortController();
  const ended = AbortSignal.any([signal, stopped.signal]);
  let done = all.length - left.length;
  await using results = await openResults(file);
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined && !ended.aborted; next = left.shift()) {
      request.onTask(next.task.name, done, all.length);
      const result = await runTask(next.task, next.nth, request, ended);
      if (ended.aborted) return;
      done += 1;
      await results.add(result);
      request.onResult(result, done, all.length);
    }
  };
  const workers = await Promise.allSettled(
    Array.from({ length: Math.max(1, request.jobs) }, () =>
      worker().catch((thrown: unknown) => {
        stopped.abort();
        throw thrown;
      }),
    ),
  );
  signal.throwIfAborted();
  const failed = workers.find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  const wanted = new Set(all.map(({ task, nth }) => evalKey({ task: task.name, nth })));
  return (await readResults(file)).filter((result) => wanted.has(evalKey(result)));
}

const stateOf = ({ folder }: EvalRequest): string => path.join(folder, "state");

async function runTask(
  task: EvalTask,
  nth: number,
  request: EvalRequest,
  signal: AbortSignal,
): Promise<EvalResult> {
  const workspace = path.join(request.workspaces, `${task.name}.${nth}`);
  const env = { ...process.env, XDG_STATE_HOME: stateOf(request) };
  const inBox = (command: string, timeout: string): Promise<ChildEnd> => {
    const words = ["sandbox", "exec", "--cwd", workspace, "--timeout", timeout, "--", "sh", "-c", command];
    return runChild({ words, env, signal });
  };
  await rm(workspace, { recursive: true, force: true });
  makeFolder(workspace, 0o777);
  await layRepository(task, workspace);
  const set = task.setup === undefined ? undefined : await inBox(task.setup, "10m");
  if (set !== undefined && set.code !== 0 && !signal.aborted) throw notSetUp(task, set);
  const started = performance.now();
  const words = [...runWords(task, request), "--cwd", workspace, "-"];
  const ran = await runChild({ words, env: { ...env, ...attemptsSet(request) }, input: task.prompt, signal });
  const duration_ms = Math.round(performance.now() - started);
  const finished = finishedIn(ran.stdout);
  if (!signal.aborted) refuseHopeless(task, ran, finished);
  await layForCheck(task, workspace, finished?.answer ?? "");
  const check = await inBox(task.check, task.check_timeout);
  const solved = check.code === 0 && ran.code === task.exit;
  if (solved || !request.keep) await rm(workspace, { recursive: true, force: true });
  return {
    task: task.name,
    language: task.language,
    nth,
    exit_code: ran.code,
    ...resultFields(finished, ran),
    check_exit_code: check.code,
    check_output: solved ? "" : lastLines(check.stdout + check.stderr),
    solved,
    false_done: ran.code === EXIT.done && check.code !== 0,
    duration_ms,
  };
}

/** Ends the whole eval if a run got no answer from a model for a reason that every other run would meet. */
function refuseHopeless(
  { name }: EvalTask,
  { code, ...output }: ChildEnd,
  finished: FinishedRun | undefined,
): void {
  const exit = HOPELESS.find((each) => each === code);
  const worked = (finished?.tool_calls ?? 0) > 0 || (finished?.usage?.completion_tokens ?? 0) > 0;
  if (exit === undefined || worked || (finished?.turns ?? 0) > 1) return;
  throw new HarnessError(
    exit,
    `${name} could not be run: ${finished?.reason ?? whyNotBegun(output)}`,
    "once that is fixed, run the same command again to continue",
  );
}

const whyNotBegun = ({ stdout, stderr }: Pick<ChildEnd, "stdout" | "stderr">): string =>
  refusalIn(stdout) ?? lastLines(stderr);

const NOTHING: FinishedRun = {};

function resultFields(finished: FinishedRun | undefined, output: ChildEnd) {
  const {
    status = "none",
    reason = whyNotBegun(output),
    turns,
    tool_calls,
    denials,
    usage,
    attempts = [],
  } = finished ?? NOTHING;
  return {
    status,
    reason,
    turns: turns ?? null,
    tool_calls: tool_calls ?? null,
    refusals: denials?.length ?? 0,
    attempts: Math.max(1, attempts.length),
    prompt_tokens: usage?.prompt_tokens ?? null,
    completion_tokens: usage?.completion_tokens ?? null,
  };
}

/** Passed as a setting, which is no error for tasks that want no change. */
const attemptsSet = ({ attempts }: EvalRequest): NodeJS.ProcessEnv =>
  attempts === undefined ? {} : { HARNESS_ATTEMPTS: String(attempts) };

function runWords(task: EvalTask, { flags, scripted }: EvalRequest): readonly string[] {
  const { max_turns, max_time, max_tokens } = task.limits;
  return [
    "run",
    "--json",
    ...flags,
    ...task.flags,
    // A wrong ending must reach its check.
    ...(scripted === "wrong.jsonl" ? ["--no-verify"] : []),
    ...(scripted === undefined
      ? []
      : ["--provider", "scripted", "--model", path.join(task.folder, scripted)]),
    ...(max_turns === undefined ? [] : ["--max-turns", String(max_turns)]),
    ...(max_time === undefined ? [] : ["--max-time", max_time]),
    ...(max_tokens === undefined ? [] : ["--max-tokens", String(max_tokens)]),
  ];
}

const notSetUp = (task: EvalTask, { code, stderr }: ChildEnd): HarnessError =>
  new HarnessError(
    EXIT.failed,
    `${task.name}: its setup exited with ${code}: ${lastLines(stderr)}`,
    `fix "setup" in ${path.join(task.folder, "task.json")}`,
  );

export async function readResults(file: string): Promise<readonly EvalResult[]> {
  const results: EvalResult[] = [];
  for await (const each of resultLines({ file, form: evalResultForm, writer: "eval" })) results.push(each);
  return results;
}
