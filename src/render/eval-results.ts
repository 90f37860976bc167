import * as z from "zod";
import { EXIT } from "../core/errors.ts";

export const resultForm = z.object({
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
export type EvalResult = z.output<typeof resultForm>;

export const keyOf = ({ task, nth }: Pick<EvalResult, "task" | "nth">): string => `${task} ${nth}`;

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

export function totalsOf(results: readonly EvalResult[]): EvalTotals {
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
export function grouped(
  results: readonly EvalResult[],
  of: (result: EvalResult) => string,
): ReadonlyMap<string, readonly EvalResult[]> {
  const groups = Map.groupBy(results, of);
  return new Map([...groups].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Two sets of results, task by task. */
export function comparedTasks(one: readonly EvalResult[], other: readonly EvalResult[]) {
  const [before, after] = [grouped(one, ({ task }) => task), grouped(other, ({ task }) => task)];
  const names = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return names.map((task) => ({
    task,
    a: totalsOf(before.get(task) ?? []),
    b: totalsOf(after.get(task) ?? []),
  }));
}
