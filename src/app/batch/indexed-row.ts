import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { isLasting } from "../../kubernetes/batch-job.ts";
import { isBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Usage } from "../../core/model-provider.ts";
import { type RowResult, summaryOf } from "../../render/batch-results.ts";
import type { Host } from "../host.ts";
import { namedCluster } from "../named-engine.ts";
import { BatchBusy } from "./batch-folder.ts";
import { type BatchBudget, codeOf, Spending } from "./batch-run.ts";
import { type BatchRow, readRows } from "./batch-rows.ts";
import { type CommonClock, type KeptRows, NotKept, rowsInFolder } from "./kept-rows.ts";
import { resultMessage } from "./pod-result.ts";
import { provideEnvironment, environmentOfRow } from "./row-environments.ts";
import { TRANSIENT, type RowPlan, runRow } from "./row-run.ts";

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
  const { sweepPods } = await import("../pod-access.ts");
  const left = await sweepPods(host, cluster).catch((thrown: unknown) => [{ reason: reasonOf(thrown) }]);
  for (const { reason } of left) warn(`a box of its run was not removed: ${reason}`);
}

/** The result of a row that did not run to an end here. */
const notBegun = (
  { row, id, kind, target }: BatchRow,
  cause: "budget" | "sandbox" | "interrupted" | "bucket",
  exit_code: number,
  reason: string,
): RowResult => ({
  type: "row.finished",
  row,
  id,
  [kind]: target,
  status: cause === "bucket" ? "failed" : cause,
  exit_code,
  reason,
  cause,
  session: null,
  turns: null,
  tool_calls: null,
  usage: null satisfies Usage | null,
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
