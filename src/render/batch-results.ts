/** Results of batches and evals: their forms, their totals, and the lines that show them to a person. */
import * as z from "zod";
import { EXIT, STATUSES } from "../core/errors.ts";
import type { RunChanges } from "../core/events.ts";
import type { Usage } from "../core/model-provider.ts";
import { visibleLine } from "../core/visible.ts";
import { plural, formatDuration } from "../core/wording.ts";
import { alignedRows } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

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

const CELL_WIDTH = 12;

/** One row, as soon as it has ended. */
export function rowLine(result: RowResult): string {
  const { row, cause, reason, duration_ms, attempts } = result;
  const target = visibleLine(result.dir ?? result.repo ?? "");
  const again = attempts === 0 ? "" : `, retried ${attempts === 1 ? "once" : `${attempts} times`}`;
  const why = cause === null ? "" : `: ${firstLine(reason)}`;
  return `${(cause ?? "done").padEnd(CELL_WIDTH)} row ${row} ${target}, ${formatDuration(duration_ms)}${again}${why}`;
}

const firstLine = (reason: string): string => visibleLine(reason.split("\n")[0] ?? "");

/** The exit code and meaning of each cause. */
const MEANS: Readonly<Record<RowCause, readonly [code: number, what: string]>> = {
  check: [EXIT.failed, "the check failed"],
  failed: [EXIT.failed, "the run failed"],
  usage: [EXIT.usage, "the run could not start as requested"],
  budget: [EXIT.budget, "the row used up a limit"],
  refused: [EXIT.refused, "something the task needs was refused"],
  model: [EXIT.model, "the model was unreachable or broken"],
  sandbox: [EXIT.sandbox, "no box was available"],
  parked: [EXIT.parked, "it waits for harness approve"],
  interrupted: [EXIT.interrupted, "it was interrupted"],
  killed: [137, "its process was killed"],
  dir: [EXIT.usage, "its folder cannot be used"],
  repo: [EXIT.usage, "its repository cannot be cloned"],
  patch: [EXIT.failed, "its changes could not be read"],
  memory: [137, "it ran out of memory"],
  evicted: [137, "its pod was evicted"],
  deadline: [137, "its pod ran for too long"],
  lost: [EXIT.failed, "its pod is gone"],
  bucket: [EXIT.usage, "the results bucket does not accept its files"],
};

/** All rows, counted by outcome. */
export function batchTable(end: BatchEnd, stream: Output): string {
  const { done, not_started, by_cause, usage } = batchTotals(end);
  const causes = CAUSES.flatMap((cause) => {
    const number = by_cause[cause];
    return number === undefined ? [] : [outcomeRow(cause, number, ...MEANS[cause])];
  });
  const left = not_started === 0 ? [] : [notEnded(end, not_started)];
  const head = styleText("bold", ["", "rows", "exit"].map(cell).join("").trimEnd(), { stream });
  const tokens =
    usage.prompt_tokens === null || usage.completion_tokens === null
      ? "unknown"
      : String(usage.prompt_tokens + usage.completion_tokens);
  const spent = `${plural(end.rows, "row")}, ${plural(usage.requests, "request")}, tokens: ${tokens}`;
  return [head, outcomeRow("done", done, EXIT.done, ""), ...causes, ...left, "", spent].join("\n");
}

function notEnded({ spent, signal }: BatchEnd, number: number): string {
  if (signal !== undefined) return outcomeRow("not ended", number, signal, "--resume continues them");
  return outcomeRow(
    "not started",
    number,
    EXIT.budget,
    `${spent ?? "a limit"} was used up; --resume runs them`,
  );
}

const cell = (text: string): string => text.padEnd(CELL_WIDTH);

const outcomeRow = (name: string, rows: number, code: number, what: string): string =>
  `${[name, String(rows), String(code)].map(cell).join("")}${what}`.trimEnd();

export const evalResultForm = z.object({
  task: z.string(),
  language: z.string(),
  /** Starts at 1; a suite may be run several times. */
  nth: z.int().positive(),
  /** Exit code of the run; null if it was killed. */
  exit_code: z.int().nullable(),
  status: z.string(),
  reason: z.string(),
  /** Exit code of the check; null if it could not be run. */
  check_exit_code: z.int().nullable(),
  /** The last lines of a check that failed. */
  check_output: z.string(),
  solved: z.boolean(),
  /** The run ended with 0, and the check fails. */
  false_done: z.boolean(),
  refusals: z.int(),
  /** Candidates that were started; missing in older results. */
  attempts: z.int().positive().default(1),
  turns: z.int().nullable(),
  tool_calls: z.int().nullable(),
  prompt_tokens: z.number().nullable(),
  completion_tokens: z.number().nullable(),
  duration_ms: z.number(),
});

/** One run of one task. */
export type EvalResult = z.output<typeof evalResultForm>;

export const evalKey = ({ task, nth }: Pick<EvalResult, "task" | "nth">): string => `${task} ${nth}`;

export interface EvalTotals {
  readonly runs: number;
  readonly solved: number;
  readonly false_done: number;
  readonly refused: number;
  readonly attempts: number;
  readonly turns: number;
  readonly tokens: number;
  readonly duration_ms: number;
}

export function evalTotals(results: readonly EvalResult[]): EvalTotals {
  const sum = (of: (result: EvalResult) => number): number =>
    results.reduce((all, each) => all + of(each), 0);
  return {
    runs: results.length,
    solved: sum(({ solved }) => Number(solved)),
    false_done: sum((result) => Number(result.false_done)),
    refused: sum(({ exit_code }) => Number(exit_code === EXIT.refused)),
    attempts: sum(({ attempts }) => attempts),
    turns: sum(({ turns }) => turns ?? 0),
    tokens: sum(({ prompt_tokens, completion_tokens }) => (prompt_tokens ?? 0) + (completion_tokens ?? 0)),
    duration_ms: sum(({ duration_ms }) => duration_ms),
  };
}

/** Groups results by the key from `of`, sorted by key. */
export function groupedResults(
  results: readonly EvalResult[],
  of: (result: EvalResult) => string,
): ReadonlyMap<string, readonly EvalResult[]> {
  const groups = Map.groupBy(results, of);
  return new Map([...groups].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Two sets of results, task by task. */
export function comparedTasks(one: readonly EvalResult[], other: readonly EvalResult[]) {
  const [before, after] = [
    groupedResults(one, ({ task }) => task),
    groupedResults(other, ({ task }) => task),
  ];
  const names = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return names.map((task) => ({
    task,
    a: evalTotals(before.get(task) ?? []),
    b: evalTotals(after.get(task) ?? []),
  }));
}

/** One result, as soon as it is known. */
export function evalLine(result: EvalResult): string {
  const time = formatDuration(result.duration_ms);
  const why = result.solved ? "" : `: ${firstLine(result.reason)}`;
  return `${outcome(result).padEnd(10)} ${visibleLine(result.task)}${result.nth > 1 ? ` (${result.nth})` : ""}, ${time}${why}`;
}

const outcome = (result: EvalResult): string =>
  result.solved ? "solved" : result.false_done ? "false done" : `exit ${result.exit_code ?? "killed"}`;

const COLUMNS = [
  "",
  "runs",
  "solved",
  "false done",
  "refused",
  "attempts",
  "turns",
  "tokens",
  "time",
] as const;

/** All results: one line per task, per language, and a total. */
export function evalTable(results: readonly EvalResult[], stream: Output): string {
  const groups = [
    ...groupedResults(results, ({ task }) => task),
    ...groupedResults(results, ({ language }) => language),
  ];
  const rows = groups.map(([name, group]) => totalsRow(name, evalTotals(group)));
  const tasks = new Set(results.map(({ task }) => task)).size;
  const lines = alignedRows([COLUMNS, ...rows, totalsRow("all", evalTotals(results))]);
  const [head = "", ...rest] = lines;
  return [
    styleText("bold", head, { stream }),
    ...rest.slice(0, tasks),
    "",
    ...rest.slice(tasks, -1),
    "",
    styleText("bold", rest.at(-1) ?? "", { stream }),
  ].join("\n");
}

const totalsRow = (name: string, totals: EvalTotals): readonly string[] => [
  visibleLine(name),
  String(totals.runs),
  share(totals),
  String(totals.false_done),
  String(totals.refused),
  String(totals.attempts),
  String(totals.turns),
  String(totals.tokens),
  formatDuration(totals.duration_ms),
];

const share = ({ solved, runs }: EvalTotals): string =>
  runs === 0 ? "-" : `${solved} (${Math.round((100 * solved) / runs)} %)`;

/** Two sets of results side by side; tasks that differ first. */
export function comparedTable(one: readonly EvalResult[], other: readonly EvalResult[]): string {
  const rows = comparedTasks(one, other).map(({ task: name, a: was, b: is }) => {
    const differs = was.solved * is.runs !== is.solved * was.runs;
    return {
      differs,
      row: [differs ? "*" : "", visibleLine(name), share(was), share(is), falseDone(was), falseDone(is)],
    };
  });
  const all = [evalTotals(one), evalTotals(other)] as const;
  return alignedRows([
    ["", "", "solved: A", "B", "false done: A", "B"],
    ...rows.toSorted((a, b) => Number(b.differs) - Number(a.differs)).map(({ row }) => row),
    ["", "all", share(all[0]), share(all[1]), falseDone(all[0]), falseDone(all[1])],
  ]).join("\n");
}

const falseDone = (totals: EvalTotals): string => String(totals.false_done);
