import type { CommitQuery } from "./queries.ts";

export interface Marks {
  readonly recall1: number;
  readonly recall5: number;
  readonly recall10: number;
  readonly mrr10: number;
}

/** Scores one query: files in the order found, each once, without the tests that the commit touched. */
export function marksOf(found: readonly string[], { answers, also }: CommitQuery): Marks {
  const skipped = new Set(also);
  const files = [...new Set(found)].filter((path) => !skipped.has(path));
  const wanted = new Set(answers);
  const recall = (k: number): number =>
    files.slice(0, k).filter((path) => wanted.has(path)).length / Math.min(k, wanted.size);
  const first = files.slice(0, 10).findIndex((path) => wanted.has(path));
  return {
    recall1: recall(1),
    recall5: recall(5),
    recall10: recall(10),
    mrr10: first === -1 ? 0 : 1 / (first + 1),
  };
}

export const KINDS = ["recall1", "recall5", "recall10", "mrr10"] as const;

export function mean(all: readonly Marks[]): Marks {
  const of = (kind: keyof Marks): number => all.reduce((sum, one) => sum + one[kind], 0) / all.length;
  return { recall1: of("recall1"), recall5: of("recall5"), recall10: of("recall10"), mrr10: of("mrr10") };
}

/** Half the width of the 95 % confidence interval of the mean. */
export function halfWidth(all: readonly Marks[], kind: keyof Marks): number {
  const middle = mean(all)[kind];
  const spread = all.reduce((sum, one) => sum + (one[kind] - middle) ** 2, 0) / Math.max(1, all.length - 1);
  return 1.96 * Math.sqrt(spread / all.length);
}
