import { open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createReadStream } from "node:fs";
import * as z from "zod";
import { diskTroubleOf, errorCode, EXIT, type ExitCode, HarnessError, reasonOf } from "../../core/errors.ts";
import { type RowResult, rowResultForm, type RowSummary, summaryOf } from "../../render/batch-results.ts";
import type { BatchRow } from "./batch-rows.ts";
import { isAlive, processOwner } from "../../boxes/box-record.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { FileLock } from "../../platform/sqlite.ts";
import { makeFolder } from "../../platform/folders.ts";

/**
 * `results.jsonl` has the finished rows, `running/<id>` the process of each unfinished row. `lock` is held while a
 * coordinator works on the batch. The rows' patches, reports and audits lie in the same folder.
 */
interface BatchFolder extends AsyncDisposable {
  /** Rows that finished earlier, by id. */
  readonly earlier: ReadonlyMap<string, RowSummary>;
  /** How many runs of an earlier coordinator were still alive and have been ended. */
  readonly leftovers: number;
  readonly add: (result: RowResult) => Promise<void>;
  readonly begun: (id: string, pid: number) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
}

export const RESULTS = "results.jsonl";
export const RUNNING = "running";

export async function openBatchFolder(folder: string, resume: boolean): Promise<BatchFolder> {
  const running = path.join(folder, RUNNING);
  try {
    makeFolder(running, 0o777);
  } catch (thrown) {
    throw outFolderError(folder, thrown);
  }
  await using stack = new AsyncDisposableStack();
  stack.use(lockedFolder(folder, "batch"));
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
        throw outFolderLost(folder, thrown);
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

/** Another process works in this folder. */
export class BatchBusy extends HarnessError {}

/** No more results can be kept in the folder. No row may end unrecorded, so this ends the batch. */
export class OutLost extends HarnessError {}

export const outFolderLost = (folder: string, thrown: unknown): OutLost =>
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
function outFolderError(folder: string, thrown: unknown): HarnessError {
  const lost = outFolderLost(folder, thrown);
  if (diskTroubleOf(thrown) === "full") return lost;
  return new HarnessError(EXIT.usage, lost.message, "choose an --out folder that you can write to", thrown);
}

/** Makes the folder of a batch or an eval, for this process alone. */
export function lockedFolder(folder: string, writer: "batch" | "eval"): FileLock {
  let lock: FileLock | undefined;
  try {
    makeFolder(folder, 0o777);
    lock = new FileLock(path.join(folder, "lock"), 0);
    lock.take("exclusive");
    return lock;
  } catch (thrown) {
    lock?.[Symbol.dispose]();
    if (diskTroubleOf(thrown) !== "busy") throw outFolderError(folder, thrown);
    throw new BatchBusy(
      EXIT.usage,
      `another harness ${writer} is using ${folder}`,
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

/** Where the rows of a batch in a cluster are kept, each below its number and its id: a volume, or a bucket. */
export interface KeptRows {
  /** Rejects with `BatchBusy` if another pod works on the row, with `NotKept` if the row cannot be kept there. */
  readonly open: (row: BatchRow, signal: AbortSignal) => Promise<KeptRow>;
  /** The results of all finished rows. */
  readonly results: (signal: AbortSignal) => AsyncIterable<RowResult>;
  /** Milliseconds since the first of all rows (possibly this one) began, measured by a single clock. */
  readonly underWay: (row: BatchRow, signal: AbortSignal) => Promise<number>;
}

/** Milliseconds since 1970, by a clock that all callers share. */
export type CommonClock = (signal: AbortSignal) => Promise<number>;

export interface KeptRow extends AsyncDisposable {
  /** Holds the files that a run leaves, on this machine. */
  readonly folder: string;
  /** The result of an earlier pod. */
  readonly earlier: RowResult | undefined;
  readonly begun: (id: string, pid: number) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
  /** Returns the result that is kept by then, which may be another pod's. */
  readonly keep: (result: RowResult) => Promise<RowResult>;
}

/** The place refuses to keep the result, or does not answer. */
export class NotKept extends Error {
  override readonly name = "NotKept";
  readonly exit: ExitCode;
  readonly text: string;
  /** What the run had achieved by then. */
  readonly progress: Partial<RowResult>;

  constructor({ message, remedy, cause }: HarnessError, passing: boolean, ran?: RowResult) {
    const text = `${ran === undefined ? "" : "it ran, but its result is lost: "}${message}; next: ${remedy}`;
    super(text, { cause });
    this.text = text;
    // Of these two exit codes, the Job retries only the first.
    this.exit = passing ? EXIT.sandbox : EXIT.usage;
    const { session = null, turns = null, tool_calls = null, usage = null, duration_ms = 0 } = ran ?? {};
    this.progress = { session, turns, tool_calls, usage, duration_ms };
  }
}

export const rowName = ({ row, id }: Pick<BatchRow, "row" | "id">): string => `${row}-${id}`;
export const ROW_NAME = /^\d+-[0-9a-f]{16}$/;

/** The file that says when a row began, by the common clock. */
const BEGUN = "begun";
/** A time in the next centuries, in milliseconds since 1970. */
const MOMENT = /^\d{12,14}$/;

/**
 * A folder that all pods of the batch share, as a volume. File times come from the clock of whichever node or server
 * keeps the files, so the start times are written into files instead.
 */
export function rowsInFolder(out: string, clock: CommonClock): KeptRows {
  const rows = async (): Promise<readonly string[]> =>
    (await readdir(out)).filter((each) => ROW_NAME.test(each));
  const begunAt = async (name: string): Promise<number> => {
    const text = await readFile(path.join(out, name, BEGUN), "utf8").catch(() => "");
    return MOMENT.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  };
  return {
    open: async (row) => {
      const folder = path.join(out, rowName(row));
      await using opened = new AsyncDisposableStack();
      const kept = opened.use(await openBatchFolder(folder, true));
      const earlier = kept.earlier.has(row.id) ? await earlierResult(folder, row.id) : undefined;
      const open = opened.move();
      return {
        folder,
        earlier,
        begun: kept.begun,
        ended: kept.ended,
        keep: async (result) => {
          await kept.add(result);
          return result;
        },
        [Symbol.asyncDispose]: () => open.disposeAsync(),
      };
    },
    results: async function* () {
      for (const name of await rows()) {
        const file = path.join(out, name, RESULTS);
        yield* resultLines({ file, form: rowResultForm, writer: "batch" });
      }
    },
    underWay: async (row, signal) => {
      const now = await clock(signal);
      const own = path.join(out, rowName(row));
      if ((await begunAt(rowName(row))) === Number.POSITIVE_INFINITY) {
        // The file is whole under its name, or not there: a loop may be killed at any time.
        await writeFile(path.join(own, `.${BEGUN}`), String(Math.floor(now)));
        await rename(path.join(own, `.${BEGUN}`), path.join(own, BEGUN));
      }
      const begun = await Promise.all((await rows()).map(begunAt));
      return Math.max(0, now - Math.min(now, ...begun));
    },
  };
}

async function earlierResult(folder: string, id: string): Promise<RowResult> {
  const file = path.join(folder, RESULTS);
  for await (const result of resultLines({ file, form: rowResultForm, writer: "batch" }))
    if (result.id === id) return result;
  throw new HarnessError(EXIT.failed, `${file} no longer has a result of ${id}`);
}

/** Results as they arrive, one JSON value per line: `harness eval` and `harness batch` resume from them. */
interface ResultFile<T> {
  readonly file: string;
  readonly form: z.ZodType<T>;
  /** The command that writes the file. */
  readonly writer: string;
}

/** A missing file has no results. A last line that was cut by a kill does not count. */
export async function* resultLines<T>({ file, form, writer }: ResultFile<T>): AsyncGenerator<T> {
  let at = 0;
  try {
    for await (const line of wholeLines(file)) {
      at += 1;
      const read = form.safeParse(parsedJson(line));
      if (!read.success)
        throw new HarnessError(
          EXIT.usage,
          `${file}, line ${at} is not a result of harness ${writer}`,
          `name a results.jsonl that harness ${writer} has written`,
        );
      yield read.data;
    }
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
    if (errorCode(thrown) === "ENOENT") return;
    throw new HarnessError(
      EXIT.usage,
      `${file} cannot be read: ${reasonOf(thrown)}`,
      `ls -l ${file}`,
      thrown,
    );
  }
}

async function* wholeLines(file: string): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of createReadStream(file, "utf8")) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Appends results. A line that was cut by a kill is removed first, so that no other line is lost. */
export async function openResults(
  file: string,
): Promise<AsyncDisposable & { readonly add: (result: object) => Promise<void> }> {
  const handle = await open(file, "a+");
  const { size } = await handle.stat();
  const last = Buffer.alloc(1);
  if (size > 0) {
    await handle.read(last, 0, 1, size - 1);
    if (last[0] !== 0x0a) await handle.truncate(await lastLineEnd(handle, size));
  }
  let queue: Promise<void> = Promise.resolve();
  const append = async (line: string): Promise<void> => {
    const before = (await handle.stat()).size;
    try {
      await handle.appendFile(line);
      await handle.datasync();
    } catch (thrown) {
      await handle.truncate(before).catch(() => undefined);
      throw thrown;
    }
  };
  return {
    // One at a time: a long line is written in parts, and a part of a line must not be followed by another line.
    add: (result) => {
      const added = queue.then(() => append(`${JSON.stringify(result)}\n`));
      queue = added.catch(() => undefined);
      return added;
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function lastLineEnd(handle: Awaited<ReturnType<typeof open>>, size: number): Promise<number> {
  const bytes = Buffer.alloc(size);
  await handle.read(bytes, 0, size, 0);
  return bytes.lastIndexOf(0x0a) + 1;
}
