import {
  AMPERSAND,
  BACKSLASH,
  BAR,
  BRACE,
  BRACE_CLOSE,
  BREAK,
  classOf,
  type Cursor,
  DOUBLE,
  GREATER,
  isDigit,
  isName,
  isNameStart,
  LESS,
  MINUS,
  NEWLINE,
  OPEN,
  SINGLE,
} from "./cursor.ts";
import type { Redirect, RedirectOperator, Word } from "./shell-syntax.ts";
import { oneWord } from "./words.ts";

const MAX_DESCRIPTOR_LENGTH = 9;

/** Reads a redirect, if one begins at the cursor. */
export function readRedirect(c: Cursor, out: Redirect[]): boolean {
  const code = c.peek();
  if (code === LESS || code === GREATER) {
    if (c.peek(1) === OPEN) return false;
    redirect(c, null, out);
    return true;
  }
  if (code === AMPERSAND) {
    if (c.peek(1) !== GREATER) return false;
    redirect(c, null, out);
    return true;
  }
  if (isDigit(code)) return numbered(c, out);
  return code === BRACE && named(c, out);
}

function opens(c: Cursor, ahead: number): boolean {
  const code = c.peek(ahead);
  return (code === LESS || code === GREATER) && c.peek(ahead + 1) !== OPEN;
}

function numbered(c: Cursor, out: Redirect[]): boolean {
  let length = 1;
  while (isDigit(c.peek(length))) length++;
  if (!opens(c, length)) return false;
  if (length > MAX_DESCRIPTOR_LENGTH) c.fail("unsupported: this descriptor");
  redirect(c, c.text.slice(c.pos, c.pos + length), out);
  return true;
}

function named(c: Cursor, out: Redirect[]): boolean {
  if (!isNameStart(c.peek(1))) return false;
  let length = 2;
  while (isName(c.peek(length))) length++;
  if (c.peek(length) !== BRACE_CLOSE || !opens(c, length + 1)) return false;
  redirect(c, c.text.slice(c.pos, c.pos + length + 1), out);
  return true;
}

/** Reads a redirect whose descriptor is written as `written`. */
function redirect(c: Cursor, written: string | null, out: Redirect[]): void {
  const start = c.pos;
  c.pos += written?.length ?? 0;
  const operator = readOperator(c);
  noJoin(c);
  c.blanks();
  const descriptor =
    written === null ? null : isDigit(written.charCodeAt(0)) ? Number(written) : written.slice(1, -1);
  if (operator === "<<" || operator === "<<-") {
    hereDocument(c, { start, descriptor, tabs: operator === "<<-" }, out);
    return;
  }
  const target = readTarget(c, operator);
  if (target !== null) out.push({ span: c.span(start, c.pos), operator, descriptor, target });
}

/** Fails for an operator that may go on after a line continuation. */
export function noJoin(c: Cursor): void {
  if (c.peek() !== BACKSLASH || c.peek(1) !== NEWLINE) return;
  let at = 0;
  while (c.peek(at) === BACKSLASH && c.peek(at + 1) === NEWLINE) at += 2;
  const code = c.peek(at);
  if (code === MINUS || code === -1 || (classOf(code) & BREAK) !== 0)
    c.fail("unsupported: an operator before a line continuation");
}

const AFTER_LESS: ReadonlyMap<number, RedirectOperator> = new Map([
  [AMPERSAND, "<&"],
  [GREATER, "<>"],
]);
const AFTER_GREATER: ReadonlyMap<number, RedirectOperator> = new Map([
  [AMPERSAND, ">&"],
  [GREATER, ">>"],
  [BAR, ">|"],
]);

function readOperator(c: Cursor): RedirectOperator | "<<-" {
  const operator = operatorAt(c);
  c.pos += operator.length;
  return operator;
}

function operatorAt(c: Cursor): RedirectOperator | "<<-" {
  const code = c.peek();
  const next = c.peek(1);
  if (code === AMPERSAND) return c.peek(2) === GREATER ? "&>>" : "&>";
  if (code === GREATER) return AFTER_GREATER.get(next) ?? ">";
  if (next !== LESS) return AFTER_LESS.get(next) ?? "<";
  return c.peek(2) === LESS ? "<<<" : c.peek(2) === MINUS ? "<<-" : "<<";
}

function readTarget(c: Cursor, operator: RedirectOperator): Word | null {
  const start = c.pos;
  if ((classOf(c.peek()) & BREAK) !== 0 && c.peek(1) !== OPEN) {
    c.fail("a redirect has no target");
    return null;
  }
  const copies = operator === ">&" || operator === "<&";
  if (!copies && readRedirect(c, [])) c.fail("a redirect has no target", start);
  const word = oneWord(c, operator === "<<<" ? "other" : "target");
  if (c.pos === start) c.fail("a redirect has no target");
  if (copies) checkCopied(c, start);
  return c.problem === null || word.pieces.length > 0 ? word : null;
}

/** After `>&` and `<&`, bash ends the word after a `-` at its beginning, and then begins another one. */
function checkCopied(c: Cursor, start: number): void {
  if (c.joined) c.fail("unsupported: a descriptor over two lines", start);
  if (c.text.charCodeAt(start) === MINUS && c.pos > start + 1) c.fail("unsupported: a word after >&-", start);
}

interface Opened {
  readonly start: number;
  readonly descriptor: number | string | null;
  readonly tabs: boolean;
}

function hereDocument(c: Cursor, { start, descriptor, tabs }: Opened, out: Redirect[]): void {
  const from = c.pos;
  const { delimiter, quoted } = readDelimiter(c);
  if (delimiter === "" || c.peek(1) === OPEN) c.fail("unsupported: the name of a here-document", from);
  const target: Word = { span: c.span(c.pos, c.pos), pieces: [] };
  const redirect: Redirect = { span: c.span(start, c.pos), operator: "<<", descriptor, target };
  out.push(redirect);
  c.awaited.push({ redirect, delimiter, quoted, tabs });
}

/** Reads the word that ends a here-document. Expansions in it are literal. */
function readDelimiter(c: Cursor): { delimiter: string; quoted: boolean } {
  let delimiter = "";
  let quoted = false;
  for (let code = c.peek(); (classOf(code) & BREAK) === 0; code = c.peek()) {
    if (code === SINGLE || code === DOUBLE) {
      const close = c.text.indexOf(String.fromCharCode(code), c.pos + 1);
      if (close === -1 || close >= c.end) c.fail("a quote is not closed");
      delimiter += c.text.slice(c.pos + 1, close);
      c.pos = close + 1;
      quoted = true;
    } else if (code === BACKSLASH) {
      delimiter += c.text.charAt(c.pos + 1);
      c.pos += 2;
      quoted = true;
    } else delimiter += c.text.charAt(c.pos++);
  }
  if (/[`$\\\n]/.test(delimiter)) c.fail("unsupported: the name of a here-document");
  return { delimiter, quoted };
}
