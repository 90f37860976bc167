import type { Hunk, LineDiff } from "../../core/file-diff.ts";
import { type Change, lineChanges } from "../../core/line-diff.ts";

const AROUND = 3;
/** Texts that differ in more lines are told as one change. */
const MOST_STEPS = 2000;

/** Hunks of a unified diff. */
export function diffOf(before: string, after: string): LineDiff {
  const [old, young] = [linesOf(before), linesOf(after)];
  const changes = lineChanges(old, young, MOST_STEPS);
  return {
    added: changes.reduce((sum, { newFrom, newTo }) => sum + newTo - newFrom, 0),
    removed: changes.reduce((sum, { from, to }) => sum + to - from, 0),
    hunks: grouped(changes).map((group) => hunkOf(group, old, young)),
  };
}

/** With their ends: a last line without one is another line than one with it. */
const linesOf = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

function grouped(changes: readonly Change[]): readonly (readonly Change[])[] {
  const groups: Change[][] = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (last !== undefined && change.from - (last.at(-1)?.to ?? 0) <= 2 * AROUND) last.push(change);
    else groups.push([change]);
  }
  return groups;
}

function hunkOf(changes: readonly Change[], old: readonly string[], young: readonly string[]): Hunk {
  const [first, last] = [changes[0], changes.at(-1)];
  if (first === undefined || last === undefined) return { from: [0, 0], to: [0, 0], lines: [] };
  const start = Math.max(0, first.from - AROUND);
  const end = Math.min(old.length, last.to + AROUND);
  const lines: string[] = [];
  let at = start;
  for (const { from, to, newFrom, newTo } of changes) {
    lines.push(...marked(" ", old.slice(at, from)), ...marked("-", old.slice(from, to)));
    lines.push(...marked("+", young.slice(newFrom, newTo)));
    at = to;
  }
  lines.push(...marked(" ", old.slice(at, end)));
  const newStart = first.newFrom - (first.from - start);
  return { from: range(start, end), to: range(newStart, last.newTo + (end - last.to)), lines };
}

/** A range of no lines names the line before it. */
const range = (start: number, end: number): readonly [number, number] => [
  end === start ? start : start + 1,
  end - start,
];

const marked = (mark: string, lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) =>
    line.endsWith("\n")
      ? [`${mark}${line.slice(0, -1)}`]
      : [`${mark}${line}`, "\\ No newline at end of file"],
  );
