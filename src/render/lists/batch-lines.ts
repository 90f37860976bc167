import { formatDuration } from "../../core/wording.ts";
import { EXIT } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import { type BatchEnd, batchTotals, CAUSES, type RowCause, type RowResult } from "../batch-results.ts";
import { type Output, styleText } from "../tty/output.ts";

const WIDTH = 12;

/** One row, as soon as it has ended. */
export function rowLine(result: RowResult): string {
  const { row, cause, reason, duration_ms, attempts } = result;
  const target = visibleLine(result.dir ?? result.repo ?? "");
  const again = attempts === 0 ? "" : `, retried ${attempts === 1 ? "once" : `${attempts} times`}`;
  const why = cause === null ? "" : `: ${visibleLine(reason.split("\n")[0] ?? "")}`;
  return `${(cause ?? "done").padEnd(WIDTH)} row ${row} ${target}, ${formatDuration(duration_ms)}${again}${why}`;
}

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
    return number === undefined ? [] : [rowOf(cause, number, ...MEANS[cause])];
  });
  const left = not_started === 0 ? [] : [notEnded(end, not_started)];
  const head = styleText("bold", ["", "rows", "exit"].map(cell).join("").trimEnd(), { stream });
  const tokens =
    usage.prompt_tokens === null || usage.completion_tokens === null
      ? "unknown"
      : String(usage.prompt_tokens + usage.completion_tokens);
  const spent = `${end.rows} rows, ${usage.requests} requests, tokens: ${tokens}`;
  return [head, rowOf("done", done, EXIT.done, ""), ...causes, ...left, "", spent].join("\n");
}

function notEnded({ spent, signal }: BatchEnd, number: number): string {
  if (signal !== undefined) return rowOf("not ended", number, signal, "--resume continues them");
  return rowOf("not started", number, EXIT.budget, `${spent ?? "a limit"} was used up; --resume runs them`);
}

const cell = (text: string): string => text.padEnd(WIDTH);

const rowOf = (name: string, rows: number, code: number, what: string): string =>
  `${[name, String(rows), String(code)].map(cell).join("")}${what}`.trimEnd();
