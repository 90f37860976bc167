import { type Change, lineChanges } from "../../core/line-diff.ts";

const AROUND = 2;
const MOST_LINES = 60;
const LONGEST = 300;

export interface CompactDiff {
  readonly added: number;
  readonly removed: number;
  /** Hunks of a unified diff, without the names of files. */
  readonly lines: readonly string[];
}

export function compactDiff(before: string, after: string): CompactDiff {
  const [old, young] = [linesOf(before), linesOf(after)];
  const changes = lineChanges(old, young);
  return {
    added: sum(changes.map(({ newFrom, newTo }) => newTo - newFrom)),
    removed: sum(changes.map(({ from, to }) => to - from)),
    lines: hunksOf(changes).flatMap((hunk) => hunkLines(hunk, old, young)),
  };
}

/** What is shown of a diff; the rest is counted. */
export function boundedDiff(lines: readonly string[], most = MOST_LINES): string {
  const rest = lines.length - most;
  const kept = rest > 0 ? [...lines.slice(0, most), `[and ${rest} more lines of this diff]`] : lines;
  return kept.join("\n");
}

/** A last line without its newline is another line than one with it. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  return last === "" ? lines : [...lines, `${last}\n\\ No newline at end of file`];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Changes that share their surroundings. */
function hunksOf(changes: readonly Change[]): readonly (readonly Change[])[] {
  const hunks: Change[][] = [];
  for (const change of changes) {
    const last = hunks.at(-1);
    if (last !== undefined && change.from - (last.at(-1)?.to ?? 0) <= 2 * AROUND) last.push(change);
    else hunks.push([change]);
  }
  return hunks;
}

function hunkLines(
  changes: readonly Change[],
  old: readonly string[],
  young: readonly string[],
): readonly string[] {
  const [first, last] = [changes[0], changes.at(-1)];
  if (first === undefined || last === undefined) return [];
  const start = Math.max(0, first.from - AROUND);
  const end = Math.min(old.length, last.to + AROUND);
  const newStart = first.newFrom - (first.from - start);
  const newEnd = last.newTo + (end - last.to);
  const lines: string[] = [`@@ -${range(start, end)} +${range(newStart, newEnd)} @@`];
  let at = start;
  for (const { from, to, newFrom, newTo } of changes) {
    lines.push(...marked(" ", old.slice(at, from)));
    lines.push(...marked("-", old.slice(from, to)), ...marked("+", young.slice(newFrom, newTo)));
    at = to;
  }
  lines.push(...marked(" ", old.slice(at, end)));
  return lines;
}

/** A range of no lines names the line before it. */
const range = (start: number, end: number): string =>
  end - start === 1 ? `${end}` : `${end === start ? start : start + 1},${end - start}`;

const marked = (mark: string, lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => `${mark}${line}`.split("\n").map(shortened));

const shortened = (line: string): string =>
  line.length > LONGEST
    ? `${line.slice(0, LONGEST).toWellFormed()}[… ${line.length - LONGEST} more]`
    : line.toWellFormed();
