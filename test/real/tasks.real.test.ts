import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { scratch } from "../fixtures/scratch.ts";
import { harness, jsonLines, numberFrom } from "./cli.ts";
import { realServer } from "./real-ollama.ts";

const SUITE = path.join(import.meta.dirname, "../../examples/evals/small");
const TASKS = numberFrom("HARNESS_REAL_TASKS", 10);
/** Enough for a small model on few cores to write some hundred words. */
const MAX_TIME = process.env["HARNESS_REAL_TASK_TIME"] ?? "5m";

/** Bytes that the model has to read. */
function size(task: string): number {
  const repo = path.join(SUITE, task, "repo");
  const files = readdirSync(repo, { recursive: true, encoding: "utf8" }).map((file) =>
    statSync(path.join(repo, file)),
  );
  return files.filter((file) => file.isFile()).reduce((sum, file) => sum + file.size, 0);
}

interface Result {
  readonly task: string;
  readonly exit_code: number | null;
  readonly status: string | null;
  readonly solved: boolean;
  readonly false_done: boolean;
  readonly turns: number | null;
  readonly tool_calls: number | null;
  readonly duration_ms: number;
}

const line = ({ task, solved, false_done: falseDone, ...result }: Result): string =>
  [
    `${solved ? "solved" : falseDone ? "FALSE DONE" : "not solved"} ${task}`,
    `exit ${result.exit_code} ${result.status ?? ""}`,
    `${result.turns ?? 0} turns, ${result.tool_calls ?? 0} calls, ${Math.round(result.duration_ms / 1000)} s`,
  ].join("  ");

test("no unsolved task of the suite is reported as done; the number of solved tasks is shown", async (t) => {
  const { url, model } = realServer();
  const names = readdirSync(SUITE, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted((a, b) => size(a) - size(b) || (a < b ? -1 : 1))
    .slice(0, TASKS);
  await using home = await scratch();
  const only = names.flatMap((name) => ["--only", name]);
  const flags = ["--provider", "ollama", "--base-url", url, "--model", model, "--max-time", MAX_TIME];
  const ended = await harness(
    ["eval", SUITE, "--json", "--out", home.at("out"), ...only, "--", ...flags],
    home.path,
  );
  assert.equal(ended.code, 0, ended.stderr);
  const results = jsonLines(ended) as readonly Result[];
  for (const result of results) t.diagnostic(line(result));
  const solved = results.filter((result) => result.solved).length;
  t.diagnostic(`${model}: ${solved} of ${results.length} solved`);
  assert.deepEqual(results.map(({ task }) => task).toSorted(), names.toSorted());
  assert.deepEqual(
    results.filter((result) => result.false_done).map(({ task }) => task),
    [],
  );
  // Then the test showed nothing about the model: not even a first reply was completed.
  if (results.every((result) => (result.tool_calls ?? 0) === 0 && result.exit_code === 3))
    t.skip(`every run spent its ${MAX_TIME} before a first call: HARNESS_REAL_TASK_TIME gives more`);
});
