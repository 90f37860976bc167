import { EXIT } from "../../core/errors.ts";
import { parsedJson } from "../../core/raw-data.ts";
import type { SeenPod } from "../../kubernetes/batch-cluster.ts";
import { type RowCause, type RowResult, rowResultForm } from "../../render/batch-results.ts";
import type { BatchRow } from "./batch-rows.ts";
import { causeOfCode } from "./row-run.ts";

/** The longest message that Kubernetes lets a pod leave at its end. */
const MAX_MESSAGE = 4096;

/** The result of a row as its pod reports it. Parts that do not fit are found where the results are kept. */
export function resultMessage(result: RowResult): string {
  const whole = JSON.stringify(result);
  if (Buffer.byteLength(whole) <= MAX_MESSAGE) return whole;
  const short = { ...result, changes: null };
  for (const length of [600, 100, 0]) {
    const text = JSON.stringify({ ...short, reason: result.reason.slice(0, length).toWellFormed() });
    if (Buffer.byteLength(text) <= MAX_MESSAGE) return text;
  }
  return JSON.stringify({ ...short, reason: "", verified: null, repo: undefined });
}

const KILLED = 137;

/** The result of a row by its last pod; undefined if that pod is gone. */
export function podResult(row: BatchRow, pod: SeenPod | undefined): RowResult {
  const told = resultFromPod(pod, row);
  const { row: number, id, kind, target } = row;
  // A loop that was told to end only reports the interruption; the pod says who ended it.
  if (told !== undefined && told.cause !== "interrupted") return { ...told, row: number, [kind]: target };
  return {
    type: "row.finished",
    row: number,
    id,
    [kind]: target,
    ...endOf(pod, told?.reason),
    session: null,
    turns: null,
    tool_calls: null,
    usage: null,
    changes: null,
    verified: null,
    attempts: pod?.failures ?? 0,
    duration_ms: pod?.ms ?? 0,
  };
}

/** Accepts a message only from the loop container, and only about its own row. */
function resultFromPod(pod: SeenPod | undefined, row: BatchRow): RowResult | undefined {
  const { end } = pod ?? {};
  if (end === undefined || end.container !== "loop") return undefined;
  const read = rowResultForm.safeParse(parsedJson(end.message));
  if (!read.success || read.data.id !== row.id || read.data.exit_code !== end.code) return undefined;
  const told = { ...read.data, attempts: pod?.failures ?? 0 };
  // The run is a process of its own, the largest in the pod, so the kernel ends it first; the loop survives to report
  // it.
  return end.reason === OUT_OF_MEMORY && told.cause === "killed"
    ? { ...told, ...outOfMemory(end.container) }
    : told;
}

type RowEnd = Pick<RowResult, "status" | "exit_code" | "reason" | "cause">;

const failed = (cause: RowCause, exit_code: number, reason: string): RowEnd => ({
  status: "failed",
  exit_code,
  reason,
  cause,
});

const OUT_OF_MEMORY = "OOMKilled";

const outOfMemory = (container: string): RowEnd =>
  failed("memory", KILLED, `its ${container} ran out of memory`);

/** Each cause of an end in the cluster has its own wording. */
function endOf(pod: SeenPod | undefined, said?: string): RowEnd {
  if (pod === undefined) return failed("lost", EXIT.failed, "its pod is gone, and its output with it");
  const { end, reason } = pod;
  const code = end?.code ?? KILLED;
  if (end?.reason === OUT_OF_MEMORY) return outOfMemory(end.container);
  if (reason === "DeadlineExceeded") return failed("deadline", code, "its pod reached its time limit");
  if (reason === "Evicted" || pod.disrupted) return failed("evicted", code, `its pod was evicted: ${reason}`);
  if (end === undefined)
    return failed("lost", EXIT.failed, `its pod ended without a result${reason === "" ? "" : `: ${reason}`}`);
  return endOfContainer(end, said);
}

function endOfContainer({ container, code, message }: NonNullable<SeenPod["end"]>, said?: string): RowEnd {
  if (container === "clone")
    return failed("repo", EXIT.usage, message === "" ? "it cannot be cloned" : message);
  if (code === EXIT.done) return { status: "done", exit_code: EXIT.done, reason: "", cause: null };
  const [status, cause] = causeOfCode(code);
  return { status, exit_code: code, cause, reason: said ?? message.trim().split("\n").at(-1) ?? "" };
}
