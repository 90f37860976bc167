import { formatDuration } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";
import { comparedTasks, type EvalResult, type EvalTotals, grouped, totalsOf } from "../eval-results.ts";
import { alignedRows } from "../tty/columns.ts";
import { type Output, styleText } from "../tty/output.ts";

/** One result, as soon as it is known. */
export function resultLine(result: EvalResult): string {
  const time = formatDuration(result.duration_ms);
  const why = result.solved ? "" : `: ${visibleLine(result.reason.split("\n")[0] ?? "")}`;
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
  const groups = [...grouped(results, ({ task }) => task), ...grouped(results, ({ language }) => language)];
  const rows = groups.map(([name, group]) => rowOf(name, totalsOf(group)));
  const tasks = new Set(results.map(({ task }) => task)).size;
  const lines = alignedRows([COLUMNS, ...rows, rowOf("all", totalsOf(results))]);
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

const rowOf = (name: string, totals: EvalTotals): readonly string[] => [
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
  const all = [totalsOf(one), totalsOf(other)] as const;
  return alignedRows([
    ["", "", "solved: A", "B", "false done: A", "B"],
    ...rows.toSorted((a, b) => Number(b.differs) - Number(a.differs)).map(({ row }) => row),
    ["", "all", share(all[0]), share(all[1]), falseDone(all[0]), falseDone(all[1])],
  ]).join("\n");
}

const falseDone = (totals: EvalTotals): string => String(totals.false_done);
