import { type Change, lineChanges } from "../../core/line-diff.ts";

/** Texts that differ in more lines than this are merged as wholes, and so mostly not at all. */
const MOST_STEPS = 2000;

/**
 * Two texts made from the same one, with the changes of both; undefined where both change the same lines in different
 * ways. A line is a line with its end. Lines beside each other are not the same lines.
 */
export function mergeLines(base: string, ours: string, theirs: string): string | undefined {
  const [from, a, b] = [linesOf(base), linesOf(ours), linesOf(theirs)];
  const left = [...lineChanges(from, a, MOST_STEPS)];
  const right = [...lineChanges(from, b, MOST_STEPS)];
  const out: string[] = [];
  let at = 0;
  for (let [mine, other] = [left[0], right[0]]; mine !== undefined || other !== undefined;) {
    if (mine !== undefined && other !== undefined && meet(mine, other)) {
      if (!same(mine, other, a, b)) return undefined;
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

const linesOf = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** Two that only put something in at one place meet too: nobody knows which comes first. */
const meet = (a: Change, b: Change): boolean =>
  (a.from < b.to && b.from < a.to) || (a.from === b.from && a.from === a.to && b.from === b.to);

const comesFirst = (a: Change, b: Change): boolean => a.from < b.from || (a.from === b.from && a.to <= b.to);

function same(a: Change, b: Change, ours: readonly string[], theirs: readonly string[]): boolean {
  const mine = ours.slice(a.newFrom, a.newTo);
  return (
    a.from === b.from &&
    a.to === b.to &&
    mine.length === b.newTo - b.newFrom &&
    mine.every((line, at) => line === theirs[b.newFrom + at])
  );
}
