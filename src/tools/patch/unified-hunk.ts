import { type Hunk, hunkLine, type HunkLine, PatchMistake } from "./patch.ts";

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
/** Without numbers, as in the other notation: what follows is a line above the hunk. */
const BARE = /^@@(?: (.*?))?(?: @@)?\s*$/;
const NO_NEWLINE = /^\\ /;

export const isHunkHead = (line: string): boolean => line.startsWith("@@");

export const isFileHead = (lines: readonly string[], at: number): boolean =>
  (lines[at] ?? "").startsWith("--- ") && (lines[at + 1] ?? "").startsWith("+++ ");

interface Body {
  readonly lines: readonly HunkLine[];
  readonly newline?: { readonly old: boolean; readonly young: boolean };
  readonly end: number;
}

/** The hunk whose head is here. */
export function hunkAt(lines: readonly string[], at: number): { readonly hunk: Hunk; readonly end: number } {
  const head = lines[at] ?? "";
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
function counted(
  lines: readonly string[],
  start: number,
  { old, young }: { readonly old: number; readonly young: number },
): Body | undefined {
  let [oldLeft, youngLeft] = [old, young];
  let at = start;
  for (; oldLeft > 0 || youngLeft > 0; at += 1) {
    const line = lines[at];
    if (line === undefined) return undefined;
    if (NO_NEWLINE.test(line)) continue;
    const mark = hunkLine(line)?.mark;
    if (mark === undefined) return undefined;
    if (mark !== "+") oldLeft -= 1;
    if (mark !== "-") youngLeft -= 1;
  }
  if (oldLeft < 0 || youngLeft < 0) return undefined;
  if (NO_NEWLINE.test(lines[at] ?? "")) at += 1;
  const next = lines[at] ?? "";
  const over = next.trim() === "" || isFileHead(lines, at) || hunkLine(next) === undefined;
  return over ? bodyOf(lines, start, at) : undefined;
}

/** Where a body ends whose head does not say so. */
function looseEnd(lines: readonly string[], start: number): number {
  let at = start;
  while (
    at < lines.length &&
    !isFileHead(lines, at) &&
    (hunkLine(lines[at] ?? "") !== undefined || NO_NEWLINE.test(lines[at] ?? ""))
  )
    at += 1;
  const next = lines[at];
  if (
    next !== undefined &&
    !isFileHead(lines, at) &&
    !isHunkHead(next) &&
    !/^(?:diff|Index:|Only in|```|-- $)/.test(next)
  )
    throw new PatchMistake(`each line of a hunk begins with a space, - or +, but one is "${next}"`);
  while (at > start && lines[at - 1] === "") at -= 1;
  return at;
}

function bodyOf(lines: readonly string[], start: number, end: number): Body {
  const body = lines.slice(start, end);
  const read = body.flatMap((line) => (NO_NEWLINE.test(line) ? [] : (hunkLine(line) ?? [])));
  const marks = body.flatMap((line, index) => (NO_NEWLINE.test(line) ? [body[index - 1]?.[0] ?? " "] : []));
  if (marks.length === 0) return { lines: read, end };
  const newline = { old: !marks.some((mark) => mark !== "+"), young: !marks.some((mark) => mark !== "-") };
  return { lines: read, newline, end };
}
