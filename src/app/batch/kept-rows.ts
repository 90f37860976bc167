import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { EXIT, type ExitCode, HarnessError } from "../../core/errors.ts";
import { rowResultForm, type RowResult } from "../../render/batch-results.ts";
import { openBatchFolder } from "./batch-folder.ts";
import type { BatchRow } from "./batch-rows.ts";
import { resultLines } from "./result-lines.ts";

/** Where the rows of a batch in a cluster are kept, each below its number and its id: a volume, or a bucket. */
export interface KeptRows {
  /** Rejects with `BatchBusy` where another pod is seen to work on it, with `NotKept` where it cannot be kept there. */
  readonly open: (row: BatchRow, signal: AbortSignal) => Promise<KeptRow>;
  /** All that have begun, this one too. `results`: whether what they came to is wanted. */
  readonly others: (
    wanted: { readonly results: boolean },
    signal: AbortSignal,
  ) => AsyncIterable<{ readonly begun?: number; readonly result?: RowResult }>;
}

export interface KeptRow extends AsyncDisposable {
  /** Of the files that a run leaves, on this machine. */
  readonly folder: string;
  /** What an earlier pod came to. */
  readonly earlier: RowResult | undefined;
  readonly begun: (id: string, pid: number) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
  /** Gives what is kept by then, which may be what another pod came to. */
  readonly keep: (result: RowResult) => Promise<RowResult>;
}

/** The place does not take it, or does not tell. */
export class NotKept extends Error {
  override readonly name = "NotKept";
  readonly exit: ExitCode;
  readonly told: string;
  /** What the run had come to by then. */
  readonly of: Partial<RowResult>;

  constructor({ message, remedy, cause }: HarnessError, passing: boolean, ran?: RowResult) {
    const told = `${ran === undefined ? "" : "it ran, and what it came to is lost: "}${message}; next: ${remedy}`;
    super(told, { cause });
    this.told = told;
    // Of these two only the one is tried again by the Job.
    this.exit = passing ? EXIT.sandbox : EXIT.usage;
    const { session = null, turns = null, tool_calls = null, usage = null, duration_ms = 0 } = ran ?? {};
    this.of = { session, turns, tool_calls, usage, duration_ms };
  }
}

export const rowName = ({ row, id }: Pick<BatchRow, "row" | "id">): string => `${row}-${id}`;
export const ROW_NAME = /^\d+-[0-9a-f]{16}$/;
export const RESULTS = "results.jsonl";
export const RUNNING = "running";

/** A folder that all pods of the batch have, as a volume. */
export function rowsInFolder(out: string): KeptRows {
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
    others: async function* ({ results }) {
      for (const name of (await readdir(out)).filter((each) => ROW_NAME.test(each))) {
        const { birthtimeMs, mtimeMs } = await stat(path.join(out, name, RUNNING));
        yield { begun: birthtimeMs || mtimeMs };
        if (!results) continue;
        const file = path.join(out, name, RESULTS);
        for await (const result of resultLines({ file, form: rowResultForm, writer: "batch" }))
          yield { result };
      }
    },
  };
}

async function earlierResult(folder: string, id: string): Promise<RowResult> {
  const file = path.join(folder, RESULTS);
  for await (const result of resultLines({ file, form: rowResultForm, writer: "batch" }))
    if (result.id === id) return result;
  throw new HarnessError(EXIT.failed, `${file} has no result of ${id} any more`);
}
