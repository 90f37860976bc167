import { isBelow } from "../checkpoints/entry.ts";
import type { Op } from "../checkpoints/plan.ts";

/**
 * A choice among operations that can be carried out by itself: new folders come with what is wanted in them, and a
 * folder is not replaced while something stays in it.
 */
export function standing(chosen: readonly Op[], all: readonly Op[]): readonly Op[] {
  const wanted = new Set(chosen.map(({ path }) => path));
  const left = all.filter(({ path }) => !wanted.has(path));
  const possible = chosen.filter(
    ({ path, from, to }) =>
      !(from?.kind === "folder" && to !== null && to.kind !== "folder") ||
      !left.some((op) => isBelow(op.path, path)),
  );
  const ground = left.filter(
    ({ path, to }) =>
      to?.kind === "folder" && possible.some((op) => op.to !== null && isBelow(op.path, path)),
  );
  return [...possible, ...ground].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
