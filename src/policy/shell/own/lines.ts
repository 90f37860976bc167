import { BACKSLASH, NEWLINE, TAB } from "./chars.ts";
import type { Awaited, Cursor } from "./cursor.ts";
import { type Part, addText, settle } from "./pieces.ts";
import { quotedText } from "./quotes.ts";

/** No character: a here-document ends with its lines. */
const NONE = -2;

/** Skips blanks, comments and newlines, with the here-documents that begin after them. */
export function newlines(c: Cursor): void {
  c.blanks();
  while (c.peek() === NEWLINE) {
    newline(c);
    c.blanks();
  }
}

/** Reads the newline at the cursor and the here-documents that await it. */
function newline(c: Cursor): void {
  c.pos++;
  if (c.held > 0) c.fail("not read: a new line inside of a line with a here-document", c.pos - 1);
  if (c.awaited.length === 0) return;
  const all = c.awaited;
  c.awaited = [];
  for (const awaited of all) if (c.problem === null) body(c, awaited);
}

function body(c: Cursor, awaited: Awaited): void {
  const start = c.pos;
  const close = closing(c, awaited);
  if (close === null) {
    c.fail("a here-document has no end", start);
    return;
  }
  const pieces: Part[] = [];
  if (awaited.quoted) {
    const text = c.text.slice(start, close.start);
    addText(pieces, awaited.tabs ? text.replaceAll(/(^|\n)\t+/g, "$1") : text, true);
  } else c.within(close.start, () => quotedText(c, { closer: NONE, tabs: awaited.tabs }, pieces));
  awaited.redirect.target = { span: c.span(start, close.start), pieces: settle(pieces) };
  if (c.problem === null) c.pos = Math.min(close.end + 1, c.end);
}

/** The line that ends a here-document. Lines that a backslash joins are one line. */
function closing(c: Cursor, awaited: Awaited): { start: number; end: number } | null {
  let joined = "";
  for (let start = c.pos; start < c.end;) {
    const end = lineEnd(c, start);
    const from = awaited.tabs && joined === "" ? lineStart(c, start, end) : start;
    const continued = !awaited.quoted && isContinued(c.text, from, end);
    if (continued) joined += `${c.text.slice(from, end - 1)}\n`;
    else if (joined !== "") {
      if (joined.replaceAll("\n", "") + c.text.slice(from, end) === awaited.delimiter)
        c.fail("not read: the end of a here-document over two lines", start);
      joined = "";
    } else if (holds(c, from, end, awaited.delimiter)) return { start, end };
    start = end + 1;
  }
  return null;
}

function holds(c: Cursor, from: number, end: number, line: string): boolean {
  return end - from === line.length && c.text.startsWith(line, from);
}

function lineStart(c: Cursor, start: number, end: number): number {
  let from = start;
  while (from < end && c.text.charCodeAt(from) === TAB) from++;
  return from;
}

function lineEnd(c: Cursor, from: number): number {
  let end = from;
  while (end < c.end && c.text.charCodeAt(end) !== NEWLINE) end++;
  return end;
}

/** True when a line ends with a backslash that none escapes. */
function isContinued(text: string, from: number, end: number): boolean {
  let at = end;
  while (at > from && text.charCodeAt(at - 1) === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}
