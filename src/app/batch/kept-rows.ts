import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, type ExitCode, HarnessError } from "../../core/errors.ts";
import { rowResultForm, type RowResult } from "../../render/batch-results.ts";
import { openBatchFolder } from "./batch-folder.ts";
import type { BatchRow } from "./batch-rows.ts";
import { resultLines } from "./result-lines.ts";

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
export const RESULTS = "results.jsonl";
export const RUNNING = "running";

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
