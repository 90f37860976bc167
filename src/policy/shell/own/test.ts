import type { Word } from "../syntax.ts";
import { AMPERSAND, BANG, BAR, BREAK, CLOSE, GREATER, LESS, NEWLINE, OPEN, classOf } from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { newlines } from "./lines.ts";
import type { Inner } from "./parts.ts";
import { oneWord } from "./words.ts";

const UNARY: ReadonlySet<string> = new Set(
  Array.from("abcdefghknoprstuvwxzGLNORS", (letter) => `-${letter}`),
);
/** Without `=~`: what stands after it is read by rules of its own. */
const BINARY: ReadonlySet<string> = new Set([
  "=",
  "==",
  "!=",
  "-eq",
  "-ne",
  "-lt",
  "-le",
  "-gt",
  "-ge",
  "-nt",
  "-ot",
  "-ef",
]);

/** Reads `[[ … ]]`. */
export function test(c: Cursor): Inner {
  const words: Word[] = [];
  c.pos += 2;
  either(c, words);
  if (closes(c)) c.pos += 2;
  else c.fail("]] is missing");
  return { what: "test", name: null, words, bodies: [] };
}

function closes(c: Cursor): boolean {
  return c.text.startsWith("]]", c.pos) && c.pos + 2 <= c.end && (classOf(c.peek(2)) & BREAK) !== 0;
}

/** Terms with `&&` and `||` between them; which one binds closer changes no operand. */
function either(c: Cursor, words: Word[]): void {
  for (;;) {
    term(c, words);
    newlines(c);
    const code = c.peek();
    if ((code !== AMPERSAND && code !== BAR) || c.peek(1) !== code) return;
    c.pos += 2;
  }
}

function term(c: Cursor, words: Word[]): void {
  newlines(c);
  while (c.peek() === BANG && (classOf(c.peek(1)) & BREAK) !== 0 && c.peek(1) !== OPEN) {
    c.pos++;
    newlines(c);
  }
  if (c.peek() !== OPEN) {
    operands(c, words);
    return;
  }
  c.pos++;
  if (c.enter()) either(c, words);
  c.leave();
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("a parenthesis is not closed");
}

function operands(c: Cursor, words: Word[]): void {
  const start = c.pos;
  const first = operand(c);
  if (UNARY.has(c.text.slice(start, c.pos).trimEnd())) {
    words.push(operand(c));
    return;
  }
  words.push(first);
  if (binary(c)) words.push(operand(c));
  else if (c.peek() === NEWLINE) c.fail("an operator is missing");
}

/** Reads a word that is no operator. */
function operand(c: Cursor): Word {
  const start = c.pos;
  if (closes(c)) c.fail("an operand is missing");
  const word = oneWord(c, "other");
  if (c.pos === start) c.fail("an operand is missing");
  if (c.joined) c.fail("not read: a word over two lines in a test", start);
  c.blanks();
  return word;
}

/** Reads an operator between two operands, if there is one. */
function binary(c: Cursor): boolean {
  const code = c.peek();
  if (code === LESS || code === GREATER) {
    if (c.peek(1) !== 32) c.fail("not read: this operator of a test");
    c.pos++;
  } else {
    if ((classOf(code) & BREAK) !== 0 || closes(c)) return false;
    const start = c.pos;
    oneWord(c, "other");
    if (!BINARY.has(c.text.slice(start, c.pos))) c.fail("not read: this operator of a test");
  }
  c.blanks();
  return true;
}
