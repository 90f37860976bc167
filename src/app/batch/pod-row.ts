import { readdir, readFile, realpath, writeFile } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import type { Settings } from "../../config/settings-schema.ts";
import { isLasting } from "../../kubernetes/batch-job.ts";
import { isBucketAddress } from "../../core/addresses.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type RowCause, type RowResult, rowResultForm, summaryOf } from "../../render/batch-results.ts";
import { type Host, namedCluster } from "../host.ts";
import { BatchBusy, type CommonClock, type KeptRows, NotKept, rowsInFolder } from "./batch-folder.ts";
import { type BatchBudget, codeOf, Spending } from "./batch-run.ts";
import { type BatchRow, readRows } from "./batch-rows.ts";
import { causeOfCode, KILLED, type RowPlan, runRow, TRANSIENT } from "./row-run.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { inRanges, type SeenPod } from "../../kubernetes/batch-cluster.ts";
import { parseGitConfig } from "../../boxes/workspace/git-directory.ts";
import { findRepository } from "../../boxes/workspace/git-repository.ts";
import { visibleLine } from "../../core/visible.ts";
import {
  environmentFolders,
  type EnvironmentRecord,
  filesOf,
  finishRecord,
  readRecord,
  recordFrom,
} from "../../docker/environments/environment-record.ts";
import { ENVIRONMENTS_FILE, noTreeAt, type RowEnvironment } from "../../kubernetes/batch-trees.ts";
import { makeFolder } from "../../platform/folders.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import { buildCommand, NO_ENVIRONMENT, recipeFile } from "../boxes/workspace-environment.ts";
import { podNoteOn } from "../boxes/pod-environment.ts";

/**
 * One row of a batch, as a pod of its Job runs it. The result is kept with those of the whole batch: if a pod is made
 * again for a finished row, it reports the same result and runs nothing.
 */
export interface IndexedRow {
  readonly row: BatchRow;
  /** Results of the whole batch. */
  readonly kept: KeptRows;
  /** The file in which the watcher finds the result; null: none. */
  readonly resultFile: string | null;
  readonly budget: BatchBudget;
  readonly plan: Omit<RowPlan, "folder" | "retries" | "alone" | "begun" | "ended">;
}

/** Where the rows of a batch are kept according to `--out`, and the environment of their runs. */
export async function keptAt(
  host: Host,
  out: string,
  settings: Settings,
): Promise<{ readonly kept: KeptRows; readonly env: NodeJS.ProcessEnv }> {
  if (!isBucketAddress(out))
    return { kept: rowsInFolder(path.resolve(out), commonClock(host)), env: host.env };
  const { rowsInBucket, withoutKeys } = await import("./bucket-rows.ts");
  return { kept: rowsInBucket(host, out), env: withoutKeys(host.env, settings) };
}

/** Loops on several nodes have only the clock of the API server in common. */
const commonClock =
  (host: Host): CommonClock =>
  async (signal) => {
    const named = await namedCluster(host);
    if (named === undefined) return Date.now();
    const { clusterOf } = await import("../../kubernetes/cluster.ts");
    const cluster = await clusterOf(named, { env: host.env, home: host.places.home });
    return cluster.now(signal);
  };

interface InFolder {
  readonly folder: string;
  readonly index: number;
  /** Where the row's clone lies, if it has no environment. */
  readonly tree: string | null;
}

/**
 * All rows of a batch lie in one folder, in files that are read in the order of their names. A row with an environment
 * finds it as if it had been built here; its clone lies where that environment was built.
 */
export async function indexedRow(
  host: Host,
  { folder, index, tree }: InFolder,
): Promise<{ readonly row: BatchRow; readonly tree: string | null }> {
  const row = await rowIn(folder, index);
  const environment = await environmentOfRow(folder, index);
  if (environment === undefined) return { row, tree };
  return { row: { ...row, env: await provideEnvironment(host, environment) }, tree: environment.workspace };
}

async function rowIn(folder: string, index: number): Promise<BatchRow> {
  const names = (
    await readdir(folder).catch((thrown: unknown) => {
      throw new HarnessError(
        EXIT.usage,
        `${folder} cannot be read: ${reasonOf(thrown)}`,
        `ls -l ${folder}`,
        thrown,
      );
    })
  ).filter((name) => /^rows-\d+\.jsonl$/.test(name));
  const texts = await Promise.all(names.toSorted().map((name) => readFile(path.join(folder, name), "utf8")));
  const rows = readRows(texts.join(""), folder, { check: undefined });
  const row = rows[index];
  if (row !== undefined) return row;
  throw new HarnessError(EXIT.usage, `there is no row for the index ${index}: ${folder} has ${rows.length}`);
}

/** Returns the reported result of the row; its exit code becomes that of the whole command. */
export async function runIndexedRow(
  { row, kept, resultFile, budget, plan }: IndexedRow,
  signal: AbortSignal,
): Promise<RowResult> {
  const result = await (async (): Promise<RowResult> => {
    try {
      await using place = await kept.open(row, signal);
      if (place.earlier !== undefined) return place.earlier;
      const spent = await spentOf({ row, kept, budget, warn: plan.warn }, signal);
      if (spent !== undefined)
        return notBegun(row, "budget", EXIT.budget, `not started: the whole batch's ${spent} was used up`);
      const { folder, begun, ended } = place;
      const ran = await runRow(
        row,
        { ...plan, folder, retries: 0, alone: (work) => work(), begun, ended },
        signal,
      );
      // The process that made the box is gone, and this pod may stay for a week.
      if (ran.cause === "killed") await sweepBoxes(plan);
      // A transient failure is reported but not kept: another pod starts the row again, as after a killed run.
      return TRANSIENT.has(ran.cause) || !isLasting(ran.exit_code) ? ran : await place.keep(ran);
    } catch (thrown) {
      // The pod was deleted, or its node goes down: that is not an end of the row, and is reported as an interruption.
      if (signal.aborted) return notBegun(row, "interrupted", codeOf(signal), "its pod was terminated");
      if (thrown instanceof NotKept)
        return { ...notBegun(row, "bucket", thrown.exit, thrown.text), ...thrown.progress };
      if (!(thrown instanceof BatchBusy)) throw thrown;
      return notBegun(row, "sandbox", EXIT.sandbox, "another pod is still working on this row");
    }
  })();
  // A result that cannot be reported is still kept.
  if (resultFile !== null)
    await writeFile(resultFile, resultMessage(result)).catch((thrown: unknown) =>
      plan.warn(reasonOf(thrown)),
    );
  return result;
}

async function sweepBoxes({ host, warn }: Pick<RowPlan, "host" | "warn">): Promise<void> {
  const cluster = await namedCluster(host);
  if (cluster === undefined) return;
  const { sweepPods } = await import("../boxes/pod-access.ts");
  const left = await sweepPods(host, cluster).catch((thrown: unknown) => [{ reason: reasonOf(thrown) }]);
  for (const { reason } of left) warn(`a box of its run was not removed: ${reason}`);
}

/** The result of a row that did not run to an end here. */
const notBegun = (
  row: BatchRow,
  cause: "budget" | "sandbox" | "interrupted" | "bucket",
  exit_code: number,
  reason: string,
): RowResult => withoutRun(row, { status: cause === "bucket" ? "failed" : cause, exit_code, reason, cause });

type RowEnd = Pick<RowResult, "status" | "exit_code" | "reason" | "cause">;

/** The result of a row with no report of its run. */
const withoutRun = ({ row, id, kind, target }: BatchRow, end: RowEnd): RowResult => ({
  type: "row.finished",
  row,
  id,
  [kind]: target,
  ...end,
  session: null,
  turns: null,
  tool_calls: null,
  usage: null,
  changes: null,
  verified: null,
  attempts: 0,
  duration_ms: 0,
});

/** Which limit of the whole batch the finished rows have spent; time counts from the start of the first row. */
async function spentOf(
  { row, kept, budget, warn }: Pick<IndexedRow, "row" | "kept" | "budget"> & Pick<RowPlan, "warn">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { ms, ...counted } = budget;
  const spending = new Spending(budget, [], warn);
  const passed = ms === undefined ? 0 : await kept.underWay(row, signal);
  if (Object.keys(counted).length > 0)
    for await (const result of kept.results(signal)) spending.count(summaryOf(result));
  return spending.which(passed);
}

/** The longest message that Kubernetes lets a pod leave at its end. */
const MAX_MESSAGE = 4096;

/** The result of a row as its pod reports it. Parts that do not fit are found where the results are kept. */
export function resultMessage(result: RowResult): string {
  const whole = JSON.stringify(result);
  if (Buffer.byteLength(whole) <= MAX_MESSAGE) return whole;
  const short = { ...result, changes: null };
  for (const length of [600, 100, 0]) {
    const text = JSON.stringify({ ...short, reason: result.reason.slice(0, length).toWellFormed() });
    if (Buffer.byteLength(text) <= MAX_MESSAGE) return text;
  }
  return JSON.stringify({ ...short, reason: "", verified: null, repo: undefined });
}

/** The result of a row by its last pod; undefined if that pod is gone. */
export function podResult(row: BatchRow, pod: SeenPod | undefined): RowResult {
  const result = resultFromPod(pod, row);
  const { row: number, kind, target } = row;
  // A loop that was told to end only reports the interruption; the pod says who ended it.
  if (result !== undefined && result.cause !== "interrupted")
    return { ...result, row: number, [kind]: target };
  return {
    ...withoutRun(row, endOf(pod, result?.reason)),
    attempts: pod?.failures ?? 0,
    duration_ms: pod?.ms ?? 0,
  };
}

/** Accepts a message only from the loop container, and only about its own row. */
function resultFromPod(pod: SeenPod | undefined, row: BatchRow): RowResult | undefined {
  const { end } = pod ?? {};
  if (end === undefined || end.container !== "loop") return undefined;
  const read = rowResultForm.safeParse(parsedJson(end.message));
  if (!read.success || read.data.id !== row.id || read.data.exit_code !== end.code) return undefined;
  const result = { ...read.data, attempts: pod?.failures ?? 0 };
  // The run is a process of its own, the largest in the pod, so the kernel ends it first; the loop survives to report
  // it.
  return end.reason === OUT_OF_MEMORY && result.cause === "killed"
    ? { ...result, ...outOfMemory(end.container) }
    : result;
}

const failed = (cause: RowCause, exit_code: number, reason: string): RowEnd => ({
  status: "failed",
  exit_code,
  reason,
  cause,
});

const OUT_OF_MEMORY = "OOMKilled";

const outOfMemory = (container: string): RowEnd =>
  failed("memory", KILLED, `its ${container} ran out of memory`);

/** Each cause of an end in the cluster has its own wording. */
function endOf(pod: SeenPod | undefined, ownReason?: string): RowEnd {
  if (pod === undefined) return failed("lost", EXIT.failed, "its pod is gone, and its output with it");
  const { end, reason } = pod;
  const code = end?.code ?? KILLED;
  if (end?.reason === OUT_OF_MEMORY) return outOfMemory(end.container);
  if (reason === "DeadlineExceeded") return failed("deadline", code, "its pod reached its time limit");
  if (reason === "Evicted" || pod.disrupted) return failed("evicted", code, `its pod was evicted: ${reason}`);
  if (end === undefined)
    return failed("lost", EXIT.failed, `its pod ended without a result${reason === "" ? "" : `: ${reason}`}`);
  return endOfContainer(end, ownReason);
}

function endOfContainer({ container, code, message }: NonNullable<SeenPod["end"]>, reason?: string): RowEnd {
  if (container === "clone")
    return failed("repo", EXIT.usage, message === "" ? "it cannot be cloned" : message);
  if (code === EXIT.done) return { status: "done", exit_code: EXIT.done, reason: "", cause: null };
  const [status, cause] = causeOfCode(code);
  return { status, exit_code: code, cause, reason: reason ?? message.trim().split("\n").at(-1) ?? "" };
}

/**
 * Environments of rows that run in a cluster. Each was built for a folder of this machine whose `origin` is the row's
 * repository, and then pushed. A loop gets the environment's record and uses it as a local run would.
 */
export interface RowEnvironments {
  /** What the row's box starts from, why it cannot, or undefined if it has the image of the settings. */
  readonly of: (repository: URL, name: string | null) => Promise<RowEnvironment | string | undefined>;
}

interface RowEnvironmentParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly warn: (text: string) => void;
}

const OR_NONE = 'or, to use the image from the settings: "env": "none"';

export function rowEnvironments({ host, settings, warn }: RowEnvironmentParts): RowEnvironments {
  let reading: Promise<readonly Built[]> | undefined;
  const looked = new Map<string, Promise<RowEnvironment | string>>();
  return {
    of: async (repository, name) => {
      if (name === NO_ENVIRONMENT) return undefined;
      if (settings.image !== null)
        return name === null
          ? undefined
          : `the environment ${visibleLine(name)} and an image (--image, the setting) are both named: leave one of them out`;
      reading ??= builtEnvironments(host);
      const all = (await reading).filter(
        ({ record, origin }) => record.name === (name ?? "") && origin === repositoryName(repository.href),
      );
      const [one] = all;
      if (one === undefined) return name === null ? undefined : noneOf(repository, name);
      const folders = all.map(({ record }) => visibleLine(record.workspace));
      if (all.length > 1)
        return `${folders.length} folders with this repository as their origin have an environment, so it is unclear which one to use: ${folders.join(", ")}; next: remove the others with harness env rm FOLDER; ${OR_NONE}`;
      const { workspace } = one.record;
      const known =
        looked.get(workspace) ?? usable({ host, settings: { ...settings, env: name } }, one, warn);
      looked.set(workspace, known);
      return known;
    },
  };
}

const noneOf = (repository: URL, name: string): string =>
  `no folder whose origin is ${visibleLine(repository.href)} has the environment ${visibleLine(name)}; next, in a clone of it with kubernetes.registry set: ${buildCommand(name)}; ${OR_NONE}`;

async function usable(
  { host, settings }: Pick<RowEnvironmentParts, "host" | "settings">,
  { record }: Built,
  warn: (text: string) => void,
): Promise<RowEnvironment | string> {
  const { workspace } = record;
  const folder = visibleLine(workspace);
  const why = noTreeAt(workspace);
  if (why !== undefined)
    return `its environment was built for ${folder}, and a pod cannot have its clone there: ${why}; next: build it for a clone elsewhere, such as ~/NAME; ${OR_NONE}`;
  const note = await podNoteOn({ host, settings, workspace }, record);
  if (note?.usable === false) return `${folder}: ${note.text}; ${OR_NONE}`;
  if (note !== undefined) warn(`rows of ${folder}: ${note.text}`);
  return { workspace, record: { ...record, installed: null } };
}

interface Built {
  readonly record: EnvironmentRecord;
  readonly origin: string;
}

/** Environments of whole git repositories; unreadable ones are skipped. */
async function builtEnvironments({ places, uid }: Host): Promise<readonly Built[]> {
  const found = await Promise.all(
    (await environmentFolders(places.state)).map(async (files) => {
      const record = await readRecord(files);
      const origin = record === undefined ? undefined : await originOf(record.workspace, uid);
      return record === undefined || origin === undefined ? [] : [{ record, origin }];
    }),
  );
  return found.flat();
}

async function originOf(workspace: string, uid: number): Promise<string | undefined> {
  const found = await findRepository({ workspace, top: workspace, uid }, workspace).catch(() => undefined);
  const entries = found?.config.flatMap((text) => parseGitConfig(text) ?? []) ?? [];
  const url = entries.findLast(({ key }) => key === "remote.origin.url")?.value;
  return url === undefined || url === null ? undefined : repositoryName(url);
}

/** Host and path of a repository, whichever way it is reached: https, ssh, `git@HOST:OWNER/NAME`. */
export function repositoryName(address: string): string | undefined {
  const [, short, at] = /^(?:[\w.-]+@)?([\w.-]+):(?!\/\/)(.+)$/.exec(address) ?? [];
  const url = URL.parse(short === undefined ? address : `ssh://${short}/${at}`);
  if (url === null || url.host === "") return undefined;
  const host = url.protocol === "https:" ? url.host : url.hostname;
  const name = url.pathname.replaceAll(/\/{2,}/g, "/").replace(/\/$/, "");
  return `${host.toLowerCase()}${name.replace(/\.git$/, "")}`;
}

const environmentsForm = z.array(z.strictObject({ rows: z.string(), environment: z.unknown() }));

/** The Job's record of what this row's box starts from; undefined: the image of the settings. */
async function environmentOfRow(folder: string, index: number): Promise<EnvironmentRecord | undefined> {
  const file = path.join(folder, ENVIRONMENTS_FILE);
  const text = await readFile(file, "utf8").catch((thrown: unknown) => {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw unreadableFile(file, thrown);
  });
  if (text === undefined) return undefined;
  try {
    const entry = environmentsForm.parse(JSON.parse(text)).find(({ rows }) => inRanges(rows, index));
    return entry === undefined ? undefined : recordFrom(entry.environment);
  } catch (thrown) {
    throw unreadableFile(file, thrown);
  }
}

const unreadableFile = (file: string, thrown: unknown): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${file} cannot be read: ${reasonOf(thrown)}`,
    "use a loop image of the version that created the batch",
    thrown,
  );

/**
 * A loop has no settings of the user's: an environment that was the project's own, or detected, gets this name there.
 */
const ROW_ENVIRONMENT = "of-this-row";

/** Lets the run of the row find the environment built, as on this machine; returns the name to ask for. */
async function provideEnvironment(host: Host, record: EnvironmentRecord): Promise<string> {
  const { workspace } = record;
  const real = await realpath(workspace).catch(reasonOf);
  if (real !== workspace)
    throw new HarnessError(
      EXIT.usage,
      `the clone is at ${real}, not at ${workspace}, where its environment was built`,
      "use a loop image without a symbolic link on that path",
    );
  const name = record.name === "" ? ROW_ENVIRONMENT : record.name;
  const files = filesOf(host.places.state, workspace, name);
  makeFolder(files.folder);
  await finishRecord(files, { ...record, id: files.id, name });
  const recipe = recipeFile(host, name);
  makeFolder(path.dirname(recipe));
  await replaceFile(recipe, JSON.stringify(record.recipe), { lasts: "content" });
  return name;
}
