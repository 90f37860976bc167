import { diffArrays } from "diff";
import { type Change, changesOf, differing, splitLines } from "../../core/text/line-diff.ts";

/**
 * The changes that turn one list of lines into the other. If they add and remove more than `maxChanged` lines, they
 * become one change: the cost of a diff grows with the square of that number, and the texts are untrusted.
 */
export function lineChanges(
  before: readonly string[],
  after: readonly string[],
  maxChanged: number,
): readonly Change[] {
  const middle = differing(before, after);
  const runs =
    middle.least > maxChanged
      ? undefined
      : diffArrays(middle.before, middle.after, { maxEditLength: maxChanged });
  return changesOf(runs, middle);
}

/** Texts that differ in more lines are merged only as wholes, which usually fails. */
const MAX_CHANGED_LINES = 2000;

/**
 * Merges two texts that were made from the same one; undefined if both change the same lines differently. A line
 * includes its line end. Changes of adjacent lines do not conflict.
 */
export function mergeLines(base: string, ours: string, theirs: string): string | undefined {
  const [from, a, b] = [splitLines(base), splitLines(ours), splitLines(theirs)];
  const left = [...lineChanges(from, a, MAX_CHANGED_LINES)];
  const right = [...lineChanges(from, b, MAX_CHANGED_LINES)];
  const out: string[] = [];
  let at = 0;
  for (let [mine, other] = [left[0], right[0]]; mine !== undefined || other !== undefined;) {
    if (mine !== undefined && other !== undefined && conflict(mine, other)) {
      if (!isSameChange(mine, other, a, b)) return undefined;
      right.shift();
    }
    const ahead = mine !== undefined && (other === undefined || comesFirst(mine, other));
    const [change, lines] = ahead ? [left.shift(), a] : [right.shift(), b];
    if (change === undefined) break;
    out.push(...from.slice(at, change.from), ...lines.slice(change.newFrom, change.newTo));
    at = change.to;
    [mine, other] = [left[0], right[0]];
  }
  return [...out, ...from.slice(at)].join("");
}

/** Two insertions at the same place conflict too: nobody knows which comes first. */
const conflict = (a: Change, b: Change): boolean =>
  (a.from < b.to && b.from < a.to) || (a.from === b.from && a.from === a.to && b.from === b.to);

const comesFirst = (a: Change, b: Change): boolean => a.from < b.from || (a.from === b.from && a.to <= b.to);

function isSameChange(a: Change, b: Change, ours: readonly string[], theirs: readonly string[]): boolean {
  const mine = ours.slice(a.newFrom, a.newTo);
  return (
    a.from === b.from &&
    a.to === b.to &&
    mine.length === b.newTo - b.newFrom &&
    mine.every((line, at) => line === theirs[b.newFrom + at])
  );
}
