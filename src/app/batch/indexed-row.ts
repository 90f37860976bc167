import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Usage } from "../../core/messages.ts";
import { rowResultForm, type RowResult, summaryOf } from "../../render/batch-results.ts";
import { resultLines } from "./result-lines.ts";
import { BatchBusy, openBatchFolder } from "./batch-folder.ts";
import { type BatchBudget, codeOf, Spending } from "./batch-run.ts";
import { type BatchRow, readRows } from "./batch-rows.ts";
import { toldResult } from "./pod-result.ts";
import { PASSING, type RowPlan, runRow } from "./row-run.ts";

/**
 * One row of a batch, as a pod of its Job runs it. What it comes to is kept below the folder of the batch, in one of its
 * own: a pod that is made again for a row that had ended tells the same result, and runs nothing.
 */
export interface IndexedRow {
  readonly row: BatchRow;
  /** Of the whole batch. */
  readonly out: string;
  /** Where the result is told to whoever watches; null: nowhere. */
  readonly told: string | null;
  readonly budget: BatchBudget;
  readonly plan: Omit<RowPlan, "folder" | "retries" | "alone" | "begun" | "ended">;
}

/** All rows of a batch lie in one folder, in files that are read in the order of their names. */
export async function indexedRow(folder: string, index: number): Promise<BatchRow> {
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

/** Gives what is told of the row; its exit code is that of the whole command. */
export async function runIndexedRow(
  { row, out, told, budget, plan }: IndexedRow,
  signal: AbortSignal,
): Promise<RowResult> {
  const folder = path.join(out, `${row.row}-${row.id}`);
  const result = await (async (): Promise<RowResult> => {
    try {
      await using kept = await openBatchFolder(folder, true);
      if (kept.earlier.has(row.id)) return await earlierResult(folder, row.id);
      const spent = await spentOf(out, budget, plan.warn);
      if (spent !== undefined)
        return notBegun(row, "budget", EXIT.budget, `not begun: ${spent} of the whole batch was spent`);
      const { begun, ended } = kept;
      const ran = await runRow(
        row,
        { ...plan, folder, retries: 0, alone: (work) => work(), begun, ended },
        signal,
      );
      // What may pass is told, and not kept: another pod begins the row anew.
      if (!PASSING.has(ran.cause)) await kept.add(ran);
      return ran;
    } catch (thrown) {
      // Deleted, or its node goes down: that is no end of the row's, and is told as what it is.
      if (signal.aborted) return notBegun(row, "interrupted", codeOf(signal), "its pod was told to end");
      if (!(thrown instanceof BatchBusy)) throw thrown;
      return notBegun(row, "sandbox", EXIT.sandbox, "another pod is still at work on this row");
    }
  })();
  // What cannot be told is in the folder.
  if (told !== null)
    await writeFile(told, toldResult(result)).catch((thrown: unknown) => plan.warn(reasonOf(thrown)));
  return result;
}

async function earlierResult(folder: string, id: string): Promise<RowResult> {
  const file = path.join(folder, "results.jsonl");
  for await (const result of resultLines({ file, form: rowResultForm, writer: "batch" }))
    if (result.id === id) return result;
  throw new HarnessError(EXIT.failed, `${file} has no result of ${id} any more`);
}

/** Of a row that has not run to an end here. */
const notBegun = (
  { row, id, kind, target }: BatchRow,
  cause: "budget" | "sandbox" | "interrupted",
  exit_code: number,
  reason: string,
): RowResult => ({
  type: "row.finished",
  row,
  id,
  [kind]: target,
  status: cause,
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

/** Which limit of the whole is spent by the rows that have ended, as their folders tell; time goes from the first on. */
async function spentOf(
  out: string,
  budget: BatchBudget,
  warn: (text: string) => void,
): Promise<string | undefined> {
  if (Object.keys(budget).length === 0) return undefined;
  const names = (await readdir(out)).filter((name) => /^\d+-[0-9a-f]{16}$/.test(name));
  const spending = new Spending(budget, [], warn);
  let first = Date.now();
  for (const name of names) {
    const file = path.join(out, name, "results.jsonl");
    for await (const result of resultLines({ file, form: rowResultForm, writer: "batch" }))
      spending.count(summaryOf(result));
    const { birthtimeMs, mtimeMs } = await stat(path.join(out, name, "running"));
    first = Math.min(first, birthtimeMs || mtimeMs);
  }
  return spending.which(Date.now() - first);
}
