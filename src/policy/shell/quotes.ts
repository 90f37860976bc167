import {
  addPart,
  addText,
  type Awaited,
  BACKSLASH,
  BACKTICK,
  type Cursor,
  DOLLAR,
  DOUBLE,
  NEWLINE,
  type WordFragment,
  normalPieces,
  SINGLE,
  TAB,
} from "./cursor.ts";

/** Reads `'…'`. */
export function single(c: Cursor, pieces: WordFragment[]): void {
  const start = c.pos;
  const close = c.text.indexOf("'", start + 1);
  if (close === -1 || close >= c.end) {
    c.fail("a single quote is not closed", start);
    return;
  }
  addText(pieces, c.text.slice(start + 1, close), true);
  c.pos = close + 1;
}

/** Reads `"…"`. */
export function double(c: Cursor, pieces: WordFragment[]): void {
  const start = c.pos++;
  addText(pieces, "", true);
  quotedText(c, { closer: DOUBLE, tabs: false }, pieces);
  if (c.peek() === DOUBLE) c.pos++;
  else c.fail("a double quote is not closed", start);
}

/**
 * A text that is read as if in double quotes: up to the closing quote, or the lines of a here-document up to their end.
 */
interface Quoted {
  readonly closer: number;
  /** Whether tabs at the beginning of lines are left out. */
  readonly tabs: boolean;
}

function quotedText(c: Cursor, within: Quoted, pieces: WordFragment[]): void {
  let run = c.pos;
  if (within.tabs) run = skipTabs(c);
  while (c.pos < c.end) {
    const code = c.text.charCodeAt(c.pos);
    if (code === within.closer) break;
    if (code === NEWLINE && within.tabs) {
      c.pos++;
      addText(pieces, c.text.slice(run, c.pos), true);
      run = skipTabs(c);
    } else if (code === BACKSLASH || code === DOLLAR || code === BACKTICK) {
      if (run < c.pos) addText(pieces, c.text.slice(run, c.pos), true);
      run = special(c, code, within, pieces);
    } else c.pos++;
  }
  if (run < c.pos && c.problem === null) addText(pieces, c.text.slice(run, c.pos), true);
}

function skipTabs(c: Cursor): number {
  while (c.peek() === TAB) c.pos++;
  return c.pos;
}

/** Reads an escape or expansion. @returns where the next run of plain text begins */
function special(c: Cursor, code: number, within: Quoted, pieces: WordFragment[]): number {
  const start = c.pos;
  if (code === BACKSLASH) return escape(c, within, start);
  const piece = code === DOLLAR ? c.grammar.dollar(c, true) : c.grammar.backtick(c, true);
  if (piece === null) {
    c.pos++;
    return start;
  }
  addPart(pieces, piece);
  if (within.tabs && c.text.slice(start, c.pos).includes("\n"))
    c.fail("unsupported: an expansion over several lines in a here-document without its tabs", start);
  return c.pos;
}

function escape(c: Cursor, within: Quoted, start: number): number {
  const next = c.peek(1);
  c.pos = Math.min(start + 2, c.end);
  if (next === NEWLINE) return c.pos;
  const taken =
    next === BACKSLASH || next === DOLLAR || next === BACKTICK || (next === DOUBLE && next === within.closer);
  return taken ? start + 1 : start;
}

/** Single escapes of `$'…'`, each with what it stands for. */
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["a", "\x07"],
  ["b", "\b"],
  ["e", "\x1b"],
  ["E", "\x1b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
  ["\\", "\\"],
  ["'", "'"],
  ['"', '"'],
  ["?", "?"],
]);

/** Escapes by number: how many digits may follow, and their base. */
const NUMBERS: ReadonlyMap<string, readonly [digits: number, base: number]> = new Map([
  ["x", [2, 16]],
  ["u", [4, 16]],
  ["U", [8, 16]],
]);

/** Reads `$'…'`. Escapes for characters outside of ASCII are unsupported: their value depends on the locale. */
export function ansi(c: Cursor, pieces: WordFragment[]): void {
  const start = c.pos;
  c.pos += 2;
  let text = "";
  let run = c.pos;
  for (;;) {
    const code = c.peek();
    if (code === SINGLE) break;
    if (code === -1) {
      c.fail("a single quote is not closed", start);
      return;
    }
    if (code === BACKSLASH) {
      text += c.text.slice(run, c.pos) + decode(c);
      run = c.pos;
    } else c.pos++;
  }
  addText(pieces, text + c.text.slice(run, c.pos), true);
  c.pos++;
}

function decode(c: Cursor): string {
  const letter = c.peek(1) === -1 ? "" : c.text.charAt(c.pos + 1);
  const plain = ESCAPES.get(letter);
  if (plain !== undefined) {
    c.pos += 2;
    return plain;
  }
  const number = NUMBERS.get(letter);
  if (number !== undefined) return character(c, c.pos + 2, number);
  if (letter >= "0" && letter <= "7") return character(c, c.pos + 1, [3, 8]);
  if (letter === "c") return control(c);
  c.pos += letter === "" ? 1 : 2;
  return `\\${letter}`;
}

function character(c: Cursor, from: number, [digits, base]: readonly [number, number]): string {
  let at = from;
  let value = 0;
  while (at < from + digits && at < c.end) {
    const digit = Number.parseInt(c.text.charAt(at), base);
    if (Number.isNaN(digit)) break;
    value = value * base + digit;
    at++;
  }
  if (at === from || value === 0 || value > 127)
    c.fail("unsupported: an escape for a character outside ASCII");
  else c.pos = at;
  return String.fromCharCode(value & 127);
}

function control(c: Cursor): string {
  const code = c.peek(2) & ~32;
  if (code >= 65 && code <= 90) c.pos += 3;
  else c.fail("unsupported: an escape for a control character");
  return String.fromCharCode(code & 31);
}

/** Stands for no character: a here-document ends with its lines. */
const NONE = -2;

/** Skips blanks, comments and newlines, with the here-documents that begin after them. */
export function newlines(c: Cursor): void {
  c.blanks();
  while (c.peek() === NEWLINE) {
    newline(c);
    c.blanks();
  }
}

/** Reads the newline at the cursor and the bodies of the here-documents that wait for it. */
function newline(c: Cursor): void {
  c.pos++;
  if (c.outerHereDocuments > 0)
    c.fail("unsupported: a newline inside a line with a here-document", c.pos - 1);
  if (c.awaited.length === 0) return;
  const all = c.awaited;
  c.awaited = [];
  for (const awaited of all) if (c.problem === null) hereDocumentBody(c, awaited);
}

function hereDocumentBody(c: Cursor, awaited: Awaited): void {
  const start = c.pos;
  const close = hereDocumentEnd(c, awaited);
  if (close === null) {
    c.fail("a here-document is not terminated", start);
    return;
  }
  const pieces: WordFragment[] = [];
  if (awaited.quoted) {
    const text = c.text.slice(start, close.start);
    addText(pieces, awaited.tabs ? text.replaceAll(/(^|\n)\t+/g, "$1") : text, true);
  } else c.within(close.start, () => quotedText(c, { closer: NONE, tabs: awaited.tabs }, pieces));
  awaited.redirect.target = { span: c.span(start, close.start), pieces: normalPieces(pieces) };
  if (c.problem === null) c.pos = Math.min(close.end + 1, c.end);
}

/** The line that ends a here-document. Lines joined by a backslash count as one line. */
function hereDocumentEnd(c: Cursor, awaited: Awaited): { start: number; end: number } | null {
  let joined = "";
  for (let start = c.pos; start < c.end;) {
    const end = lineEnd(c, start);
    const from = awaited.tabs && joined === "" ? lineStart(c, start, end) : start;
    const continued = !awaited.quoted && isContinued(c.text, from, end);
    if (continued) joined += `${c.text.slice(from, end - 1)}\n`;
    else if (joined !== "") {
      if (joined.replaceAll("\n", "") + c.text.slice(from, end) === awaited.delimiter)
        c.fail("unsupported: the end of a here-document over two lines", start);
      joined = "";
    } else if (isLine(c, from, end, awaited.delimiter)) return { start, end };
    start = end + 1;
  }
  return null;
}

function isLine(c: Cursor, from: number, end: number, line: string): boolean {
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

/** Whether a line ends with an unescaped backslash. */
function isContinued(text: string, from: number, end: number): boolean {
  let at = end;
  while (at > from && text.charCodeAt(at - 1) === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}
