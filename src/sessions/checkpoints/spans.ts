import type { Step } from "../../core/checkpoint-port.ts";
import { type Entry, sameEntry } from "./entry.ts";
import { type TreeFiles, TreeWalk } from "./file-tree.ts";

/** What runs changed at a path without an intervening change by somebody else. */
export interface Span {
  readonly from: Entry | undefined;
  readonly to: Entry | undefined;
}

/** First to last. A path has several spans if somebody else changed it between two steps. */
export type Spans = ReadonlyMap<string, readonly Span[]>;

/** A step with a tree at both ends. */
export interface WholeStep {
  readonly step: number;
  readonly before: string;
  readonly after: string;
}

/**
 * Sorted by their ends: of steps that ran side by side, each holds what changed since the previous end. Killed steps
 * come last, and the last of them ends now.
 */
export function wholeSteps(
  steps: readonly Step[],
  now: string,
): { readonly whole: readonly WholeStep[]; readonly cut: boolean } {
  const order = steps
    .filter(({ before }) => before !== null)
    .toSorted((a, b) => (a.ended ?? Infinity) - (b.ended ?? Infinity) || a.step - b.step);
  const whole: WholeStep[] = [];
  let lastEnd = -Infinity;
  for (const [at, { step, before, after, ended, at: begun }] of order.entries()) {
    const isParallel = ended === null && begun <= lastEnd;
    const from = (isParallel ? whole.at(-1)?.after : before) ?? now;
    whole.push({ step, before: from, after: after ?? (at === order.length - 1 ? now : from) });
    lastEnd = ended ?? lastEnd;
  }
  return { whole, cut: order.at(-1)?.after === null };
}

export function spansOf(steps: readonly WholeStep[], files: TreeFiles): Spans {
  const walk = new TreeWalk(files);
  const spans = new Map<string, Span[]>();
  for (const { before, after } of steps) {
    // Changes that somebody else made between two steps do not count as work of the steps.
    for (const _ of walk.moveTo(before));
    for (const { path, from, to } of walk.moveTo(after)) {
      const known = spans.get(path) ?? [];
      spans.set(path, known);
      const last = known.at(-1);
      if (last !== undefined && sameEntry(last.to, from)) known[known.length - 1] = { from: last.from, to };
      else known.push({ from, to });
    }
  }
  for (const [path, known] of spans) {
    const left = known.filter(({ from, to }) => !sameEntry(from, to));
    if (left.length === 0) spans.delete(path);
    else spans.set(path, left);
  }
  return spans;
}

export interface Standing {
  /** The steps of runs whose work still stands. */
  readonly live: readonly Step[];
  /** The steps that the last undo took back, and that undo, if no step followed it. */
  readonly undone: { readonly steps: readonly Step[]; readonly by: Step } | undefined;
  /** From this step on nothing could be stored. */
  readonly lost: Step | undefined;
}

/** What remains of everything that was done and undone. An unfinished undo has no effect. */
export function standingOf(steps: readonly Step[]): Standing {
  let live: readonly Step[] = [];
  let undone: Standing["undone"];
  let lost: Step | undefined;
  for (const step of steps) {
    if (step.kind === "lost") lost = step;
    else if (step.kind === "call") {
      live = [...live, step];
      undone = undefined;
    } else if (step.after !== null && step.kind === "undo") {
      const { target } = step;
      undone = { steps: live.filter(({ step: each }) => each > (target ?? 0)), by: step };
      live = live.filter(({ step: each }) => each <= (target ?? 0));
    } else if (step.after !== null && undone !== undefined) {
      live = [...live, ...undone.steps];
      undone = undefined;
    }
  }
  return { live, undone, lost };
}
