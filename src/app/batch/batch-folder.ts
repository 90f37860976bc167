import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { diskTroubleOf, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isAlive, processOwner } from "../../boxes/box-record.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { FileLock } from "../../platform/sqlite.ts";
import { rowResultForm, type RowResult, type RowSummary, summaryOf } from "../../render/batch-results.ts";
import { openResults, resultLines } from "./result-lines.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * `results.jsonl` has the finished rows, `running/<id>` the process of each unfinished row. `lock` is held while a
 * coordinator works on the batch. The rows' patches, reports and audits lie in the same folder.
 */
export interface BatchFolder extends AsyncDisposable {
  /** Rows that finished earlier, by id. */
  readonly earlier: ReadonlyMap<string, RowSummary>;
  /** How many runs of an earlier coordinator were still alive and have been ended. */
  readonly leftovers: number;
  readonly add: (result: RowResult) => Promise<void>;
  readonly begun: (id: string, pid: number) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
}

const RESULTS = "results.jsonl";

export async function openBatchFolder(folder: string, resume: boolean): Promise<BatchFolder> {
  const running = path.join(folder, "running");
  try {
    makeFolder(running, 0o777);
  } catch (thrown) {
    throw outRefused(folder, thrown);
  }
  await using stack = new AsyncDisposableStack();
  stack.use(locked(folder));
  const file = path.join(folder, RESULTS);
  const earlier = new Map<string, RowSummary>();
  for await (const result of resultLines({ file, form: rowResultForm, writer: "batch" }))
    earlier.set(result.id, summaryOf(result));
  if (earlier.size > 0 && !resume)
    throw new HarnessError(
      EXIT.usage,
      `${folder} contains the results of an earlier batch`,
      "continue that batch with --resume, or start a new one with another --out",
    );
  const leftovers = await endLeftovers(running);
  await removeAsides(folder);
  const results = stack.use(await openResults(file));
  const kept = stack.move();
  const noted = (id: string): string => path.join(running, id);
  return {
    earlier,
    leftovers,
    add: (result) =>
      results.add(result).catch((thrown: unknown) => {
        throw outLost(folder, thrown);
      }),
    begun: async (id, pid) => {
      const owner = await processOwner(pid);
      // A run that cannot be noted ends by itself, since nobody reads its output any more.
      if (owner !== undefined) await writeFile(noted(id), JSON.stringify(owner)).catch(() => undefined);
    },
    ended: (id) => rm(noted(id), { force: true }).catch(() => undefined),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Another process works on this batch. */
export class BatchBusy extends HarnessError {}

/** No more results can be kept in the folder. No row may end unrecorded, so this ends the batch. */
export class OutLost extends HarnessError {}

export const outLost = (folder: string, thrown: unknown): OutLost =>
  new OutLost(
    EXIT.failed,
    `results cannot be saved in ${folder}: ${diskTroubleOf(thrown) === "full" ? "the disk is full" : reasonOf(thrown)}`,
    `df -h ${folder}; once that is fixed, continue with --resume`,
    thrown,
  );

/**
 * The error for a folder that cannot be opened. Nothing has begun, so any trouble except a full disk means that the
 * wrong folder was named.
 */
function outRefused(folder: string, thrown: unknown): HarnessError {
  const lost = outLost(folder, thrown);
  if (diskTroubleOf(thrown) === "full") return lost;
  return new HarnessError(EXIT.usage, lost.message, "choose an --out folder that you can write to", thrown);
}

function locked(folder: string): FileLock {
  const lock = new FileLock(path.join(folder, "lock"), 0);
  try {
    lock.take("exclusive");
    return lock;
  } catch (thrown) {
    lock[Symbol.dispose]();
    if (diskTroubleOf(thrown) !== "busy") throw outRefused(folder, thrown);
    throw new BatchBusy(
      EXIT.usage,
      `another harness batch is using ${folder}`,
      "wait for it to end, or choose another --out",
      thrown,
    );
  }
}

const owner = z.object({ pid: z.int().positive(), start: z.string(), boot: z.string() });
const PATIENCE_MS = 20_000;
const POLL_MS = 50;

/**
 * Ends runs whose coordinator was killed. They would end by themselves at their next output, but that may take long.
 */
async function endLeftovers(running: string): Promise<number> {
  const ended = await Promise.all(
    (await readdir(running)).map(async (name) => {
      const file = path.join(running, name);
      const read = owner.safeParse(parsedJson(await readFile(file, "utf8").catch(() => "")));
      const wasThere = read.success && (await endProcess(read.data));
      await rm(file, { force: true });
      return wasThere;
    }),
  );
  return ended.filter(Boolean).length;
}

/** Ends the process in order, else forcibly. Another process that has the same number by now is left alone. */
async function endProcess(known: z.output<typeof owner>): Promise<boolean> {
  if (!(await isAlive(known))) return false;
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    sendSignal(known.pid, signal);
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      if (!(await isAlive(known))) return true;
      await sleep(POLL_MS);
    }
  }
  return true;
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process is gone.
  }
}

/** Removes the half-written files that a kill left behind. */
async function removeAsides(folder: string): Promise<void> {
  const aside = /^\d+-[0-9a-f]{16}\.\w+(?:\.\w+)?\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
  for (const name of await readdir(folder))
    if (aside.test(name)) await rm(path.join(folder, name), { force: true });
}
