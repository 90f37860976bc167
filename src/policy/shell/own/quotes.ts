import { BACKSLASH, BACKTICK, DOLLAR, DOUBLE, NEWLINE, SINGLE, TAB } from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { type Part, addPart, addText } from "./pieces.ts";

/** Reads `'…'`. */
export function single(c: Cursor, pieces: Part[]): void {
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
export function double(c: Cursor, pieces: Part[]): void {
  const start = c.pos++;
  addText(pieces, "", true);
  quotedText(c, { closer: DOUBLE, tabs: false }, pieces);
  if (c.peek() === DOUBLE) c.pos++;
  else c.fail("a double quote is not closed", start);
}

/** What is read as if in double quotes: up to the quote, or the lines of a here-document up to their end. */
export interface Quoted {
  readonly closer: number;
  /** Whether tabs at the beginning of lines are left out. */
  readonly tabs: boolean;
}

export function quotedText(c: Cursor, within: Quoted, pieces: Part[]): void {
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
function special(c: Cursor, code: number, within: Quoted, pieces: Part[]): number {
  const start = c.pos;
  if (code === BACKSLASH) return escape(c, within, start);
  const piece = code === DOLLAR ? c.grammar.dollar(c, true) : c.grammar.backtick(c, true);
  if (piece === null) {
    c.pos++;
    return start;
  }
  addPart(pieces, piece);
  if (within.tabs && c.text.slice(start, c.pos).includes("\n"))
    c.fail("not read: an expansion over several lines in a here-document without its tabs", start);
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

/** Reads `$'…'`. What is no ASCII character, as its value depends on the locale, is not read. */
export function ansi(c: Cursor, pieces: Part[]): void {
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
  if (at === from || value === 0 || value > 127) c.fail("not read: an escape that is no ASCII character");
  else c.pos = at;
  return String.fromCharCode(value & 127);
}

function control(c: Cursor): string {
  const code = c.peek(2) & ~32;
  if (code >= 65 && code <= 90) c.pos += 3;
  else c.fail("not read: an escape for a control character");
  return String.fromCharCode(code & 31);
}
