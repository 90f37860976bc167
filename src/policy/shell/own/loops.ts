import type { Word } from "../syntax.ts";
import { arithmetic } from "./arithmetic.ts";
import { BREAK, NEWLINE, OPEN, SEMICOLON, GREATER, LESS, classOf, isName, isNameStart } from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { newlines } from "./lines.ts";
import { type Inner, expect, filled } from "./parts.ts";
import { noJoin } from "./redirects.ts";
import { readWord } from "./words.ts";

export function loop(c: Cursor, what: "while" | "until" | "for" | "select"): Inner {
  const start = c.pos;
  c.pos += what.length;
  if (what === "while" || what === "until") {
    const condition = filled(c);
    return { what, name: null, words: null, bodies: [condition, done(c)] };
  }
  c.blanks();
  if (what === "for" && c.peek() === OPEN) return counted(c, start);
  const name = variable(c);
  const words = list(c);
  return { what, name, words, bodies: [done(c)] };
}

function done(c: Cursor) {
  expect(c, "do");
  const body = filled(c);
  expect(c, "done");
  return body;
}

function counted(c: Cursor, start: number): Inner {
  if (c.peek(1) !== OPEN) c.fail("a loop has no variable");
  c.pos += 2;
  const scripts = arithmetic(c, "for", start);
  c.blanks();
  if (c.peek() === SEMICOLON) semicolon(c);
  newlines(c);
  return { what: "for", name: null, words: null, bodies: [...scripts, done(c)] };
}

function variable(c: Cursor): string {
  const start = c.pos;
  if (isNameStart(c.peek())) while (isName(c.peek())) c.pos++;
  if (c.pos === start || (classOf(c.peek()) & BREAK) === 0) c.fail("not read: the variable of a loop");
  return c.text.slice(start, c.pos);
}

function semicolon(c: Cursor): void {
  c.pos++;
  noJoin(c);
}

/** Reads the words of a loop and what ends them; null when there is no `in`. */
function list(c: Cursor): Word[] | null {
  c.blanks();
  if (c.peek() === SEMICOLON) {
    semicolon(c);
    newlines(c);
    return null;
  }
  const before = c.pos;
  newlines(c);
  if (!atIn(c)) return null;
  // Bash takes it for a mistake in an arm of `case`.
  if (c.pos !== before) c.fail("not read: in on a line of its own");
  c.pos += 2;
  const words: Word[] = [];
  for (;;) {
    c.blanks();
    const code = c.peek();
    const procedure = (code === LESS || code === GREATER) && c.peek(1) === OPEN;
    if ((classOf(code) & BREAK) !== 0 && !procedure) break;
    readWord(c, "argument", words);
  }
  if (c.peek() === SEMICOLON) semicolon(c);
  else if (c.peek() !== NEWLINE) c.fail("the words of a loop have no end");
  newlines(c);
  return words;
}

/** True at the word `in`. */
export function atIn(c: Cursor): boolean {
  return c.peek() === 105 && c.peek(1) === 110 && (classOf(c.peek(2)) & BREAK) !== 0;
}
