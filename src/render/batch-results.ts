import * as z from "zod";
import { EXIT, STATUSES } from "../core/errors.ts";
import type { RunChanges } from "../core/events.ts";
import type { Usage } from "../core/model-provider.ts";

/** Why a row did not end with 0. The first causes come from the row's run; the others arise before or after it. */
export const CAUSES = [
  "check",
  "failed",
  "usage",
  "budget",
  "refused",
  "model",
  "sandbox",
  "parked",
  "interrupted",
  "killed",
  "dir",
  "repo",
  "patch",
  // In a cluster.
  "memory",
  "evicted",
  "deadline",
  "lost",
  "bucket",
] as const;
export type RowCause = (typeof CAUSES)[number];

const count = z.number().nullable();

export const rowResultForm = z.object({
  type: z.literal("row.finished"),
  /** Counts from 1: the row's place in the file when it was run. */
  row: z.int().positive(),
  id: z.string(),
  dir: z.string().exactOptional(),
  repo: z.string().exactOptional(),
  status: z.enum(STATUSES),
  exit_code: z.int(),
  reason: z.string(),
  /** Null for a row that ended with 0. */
  cause: z.enum(CAUSES).nullable(),
  /** Null if the row never got one. */
  session: z.string().nullable(),
  turns: count,
  tool_calls: count,
  usage: z
    .object({
      requests: z.number(),
      prompt_tokens: count,
      completion_tokens: count,
      cached_tokens: count,
      cost: count,
    })
    .nullable(),
  changes: z.custom<RunChanges | null>((value) => typeof value === "object"),
  verified: z.object({ command: z.string(), exit_code: z.int(), rounds: z.int() }).nullable(),
  /** Number of retries. */
  attempts: z.int().min(0),
  duration_ms: z.number(),
});

/** The result of one row, as printed and stored. */
export type RowResult = Readonly<z.output<typeof rowResultForm>>;

/** The part of a result that is kept in memory, since a batch may have ten thousand rows: without the changes. */
export interface RowSummary extends Pick<
  RowResult,
  | "row"
  | "id"
  | "status"
  | "exit_code"
  | "reason"
  | "cause"
  | "session"
  | "usage"
  | "attempts"
  | "duration_ms"
> {
  readonly target: string;
}

const REASON_CHARACTERS = 300;

export function summaryOf(result: RowResult): RowSummary {
  const { row, id, status, exit_code, reason, cause, session, usage, attempts, duration_ms } = result;
  const target = result.dir ?? result.repo ?? "";
  const short = reason.slice(0, REASON_CHARACTERS).toWellFormed();
  return { row, id, status, exit_code, reason: short, cause, session, usage, attempts, duration_ms, target };
}

export interface BatchTotals {
  readonly type: "batch.finished";
  readonly rows: number;
  readonly done: number;
  readonly failed: number;
  readonly not_started: number;
  readonly by_cause: Readonly<Partial<Record<RowCause, number>>>;
  readonly usage: Usage;
  readonly exit_code: number;
}

/** The state of a whole batch. */
export interface BatchEnd {
  readonly rows: number;
  readonly ended: readonly RowSummary[];
  /** Usage of all rows that have ended. */
  readonly usage: Usage;
  /** The exhausted limit of the batch that prevented further rows. */
  readonly spent: string | undefined;
  /** The code of the signal that ended the batch. */
  readonly signal: number | undefined;
}

export function batchTotals({ rows, ended, usage, signal }: BatchEnd): BatchTotals {
  const done = ended.filter(({ exit_code }) => exit_code === EXIT.done).length;
  const by_cause: Partial<Record<RowCause, number>> = {};
  for (const { cause } of ended) if (cause !== null) by_cause[cause] = (by_cause[cause] ?? 0) + 1;
  return {
    type: "batch.finished",
    rows,
    done,
    failed: ended.length - done,
    not_started: rows - ended.length,
    by_cause,
    usage,
    exit_code: signal ?? (done === rows ? EXIT.done : EXIT.failed),
  };
}
