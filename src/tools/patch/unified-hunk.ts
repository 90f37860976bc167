import { type Hunk, hunkLine, type HunkLine, PatchMistake } from "./patch.ts";

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
/** Without numbers, as in the other notation: what follows is a line above the hunk. */
const BARE = /^@@(?: (.*?))?(?: @@)?\s*$/;
const NO_NEWLINE = /^\\ /;

export const isHunkHead = (line: string): boolean => line.startsWith("@@");

export const lineAt = (lines: readonly string[], at: number): string => lines[at] ?? "";

export const isFileHead = (lines: readonly string[], at: number): boolean =>
  lineAt(lines, at).startsWith("--- ") && lineAt(lines, at + 1).startsWith("+++ ");

interface Counts {
  readonly old: number;
  readonly young: number;
}

interface Body {
  readonly lines: readonly HunkLine[];
  readonly newline?: { readonly old: boolean; readonly young: boolean };
  readonly end: number;
}

/** The hunk whose head is here. */
export function hunkAt(lines: readonly string[], at: number): { readonly hunk: Hunk; readonly end: number } {
  const head = lineAt(lines, at);
  const numbers = HEAD.exec(head);
  if (numbers === null) {
    const anchor = BARE.exec(head)?.[1] ?? "";
    const { end, ...body } = bodyOf(lines, at + 1, looseEnd(lines, at + 1));
    return { hunk: { anchors: anchor === "" ? [] : [anchor], atEnd: false, ...body }, end };
  }
  const [old, young] = [Number(numbers[2] ?? 1), Number(numbers[4] ?? 1)];
  const first = Number(numbers[1]);
  const body = counted(lines, at + 1, { old, young }) ?? bodyOf(lines, at + 1, looseEnd(lines, at + 1));
  const { end, ...found } = body;
  // A range of no lines names the line before it.
  return {
    hunk: { at: old === 0 ? first : Math.max(0, first - 1), anchors: [], atEnd: false, ...found },
    end,
  };
}

/** The body, when the numbers of its head are right. */
function counted(lines: readonly string[], start: number, counts: Counts): Body | undefined {
  let end = countedEnd(lines, start, counts);
  if (end === undefined) return undefined;
  if (NO_NEWLINE.test(lineAt(lines, end))) end += 1;
  return isBehind(lines, end) ? bodyOf(lines, start, end) : undefined;
}

function countedEnd(lines: readonly string[], start: number, counts: Counts): number | undefined {
  let { old, young } = counts;
  let end = start;
  for (; old > 0 || young > 0; end += 1) {
    if (NO_NEWLINE.test(lineAt(lines, end))) continue;
    const mark = end < lines.length ? hunkLine(lineAt(lines, end))?.mark : undefined;
    if (mark === undefined) return undefined;
    old -= mark === "+" ? 0 : 1;
    young -= mark === "-" ? 0 : 1;
  }
  return old < 0 || young < 0 ? undefined : end;
}

/** Whether no line of a hunk is here, nor behind blank ones; `-- ` is the end of a mail. */
function isBehind(lines: readonly string[], at: number): boolean {
  let next = at;
  while (next < lines.length && lineAt(lines, next).trim() === "") next += 1;
  const line = lineAt(lines, next);
  return line === "" || line === "-- " || isFileHead(lines, next) || hunkLine(line) === undefined;
}

const isInside = (lines: readonly string[], at: number): boolean =>
  at < lines.length &&
  !isFileHead(lines, at) &&
  (hunkLine(lineAt(lines, at)) !== undefined || NO_NEWLINE.test(lineAt(lines, at)));

/** What may follow a hunk: another one, another file, the words of whoever sent it. */
const FOLLOWS = /^(?:@@|diff|Index:|Only in|```|---|$)/;

/** Where a body ends whose head does not say so. */
function looseEnd(lines: readonly string[], start: number): number {
  let end = start;
  while (isInside(lines, end)) end += 1;
  const next = lineAt(lines, end);
  if (!FOLLOWS.test(next))
    throw new PatchMistake(`each line of a hunk begins with a space, - or +, but one is "${next}"`);
  while (end > start && lineAt(lines, end - 1) === "") end -= 1;
  return end;
}

function bodyOf(lines: readonly string[], start: number, end: number): Body {
  const body = lines.slice(start, end);
  const read = body.flatMap((line) => (NO_NEWLINE.test(line) ? [] : (hunkLine(line) ?? [])));
  const marks = body.flatMap((line, index) => (NO_NEWLINE.test(line) ? [body[index - 1]?.[0] ?? " "] : []));
  if (marks.length === 0) return { lines: read, end };
  const newline = { old: !marks.some((mark) => mark !== "+"), young: !marks.some((mark) => mark !== "-") };
  return { lines: read, newline, end };
}
