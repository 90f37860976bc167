import { BANG, BRACKET, BRACKET_CLOSE, COLON, DOT, EQUALS, QUESTION, STAR } from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { type Part, addPart, addText } from "./pieces.ts";

const CARET = 94;
const LONGEST_CLASS = 20;

/** Makes pieces of the unquoted patterns. */
export function findPatterns(c: Cursor, pieces: Part[]): Part[] {
  if (!pieces.some((piece) => piece.kind === "text" && !piece.quoted && holdsPattern(piece.text)))
    return pieces;
  const found: Part[] = [];
  let open = false;
  for (const piece of pieces) {
    if (piece.kind !== "text" || piece.quoted) {
      addPart(found, piece);
      continue;
    }
    if (open && piece.text.includes("]")) c.fail("not read: quotes or an expansion in a bracket");
    open = splitText(c, piece.text, found) || open;
  }
  return found;
}

function holdsPattern(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === STAR || code === QUESTION || code === BRACKET) return true;
  }
  return false;
}

/** @returns whether a bracket was opened and not closed in this text */
function splitText(c: Cursor, text: string, found: Part[]): boolean {
  const lastClose = text.lastIndexOf("]");
  let open = false;
  let run = 0;
  for (let at = 0; at < text.length && c.problem === null;) {
    const code = text.charCodeAt(at);
    let end = at + 1;
    if (code === BRACKET) {
      end = at < lastClose ? bracketEnd(c, text, at, lastClose) : -1;
      open ||= end === -1;
    } else if (code !== STAR && code !== QUESTION) end = -1;
    if (end === -1) at++;
    else {
      if (run < at) addText(found, text.slice(run, at), false);
      addPart(found, { kind: "glob", text: text.slice(at, end) });
      at = end;
      run = end;
    }
  }
  if (run < text.length) addText(found, text.slice(run), false);
  return open;
}

/** The end of the bracket expression at `from`, or -1. Its first `]` is one of its members. */
function bracketEnd(c: Cursor, text: string, from: number, lastClose: number): number {
  let at = from + 1;
  const negation = text.charCodeAt(at);
  if (negation === BANG || negation === CARET) at++;
  if (text.charCodeAt(at) === BRACKET_CLOSE) at++;
  if (at > lastClose) return -1;
  for (; at <= lastClose; at++) {
    const code = text.charCodeAt(at);
    if (code === BRACKET_CLOSE) return at + 1;
    if (code === BRACKET) at = classEnd(text, at);
  }
  c.fail("not read: this bracket");
  return -1;
}

/** The last character of `[:name:]`, `[.x.]` or `[=x=]` at `from`; `from` when it is none. */
function classEnd(text: string, from: number): number {
  const kind = text.charCodeAt(from + 1);
  if (kind !== COLON && kind !== DOT && kind !== EQUALS) return from;
  const length = text.slice(from + 2, from + 2 + LONGEST_CLASS).indexOf(`${String.fromCharCode(kind)}]`);
  return length === -1 ? from : from + length + 3;
}
