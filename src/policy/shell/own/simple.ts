import type { Assignment, Node, Redirect, Word } from "../syntax.ts";
import { BRACKET, BREAK, EQUALS, GREATER, LESS, OPEN, PLUS, classOf, isName, isNameStart } from "./chars.ts";
import { functionNamed } from "./compound.ts";
import type { Cursor } from "./cursor.ts";
import { readRedirect } from "./redirects.ts";
import { isReserved } from "./reserved.ts";
import { oneWord, readWord } from "./words.ts";

/** Reads assignments, words and redirects; null where there is none. */
export function simple(c: Cursor): Node | null {
  const start = c.pos;
  const assignments: Assignment[] = [];
  const words: Word[] = [];
  const redirects: Redirect[] = [];
  let end = start;
  while (readRedirect(c, redirects) || readWordAt(c, assignments, words)) {
    end = c.pos;
    c.blanks();
  }
  if (c.peek() === OPEN) return opened(c, { start, end, assignments, words, redirects });
  if (words.length + assignments.length + redirects.length === 0 && end === start) {
    c.fail("a command is missing");
    return null;
  }
  return { kind: "simple", span: c.span(start, end), assignments, words, redirects };
}

/** Reads a word or assignment; false where none begins. */
function readWordAt(c: Cursor, assignments: Assignment[], words: Word[]): boolean {
  const code = c.peek();
  const substitution = (code === LESS || code === GREATER) && c.peek(1) === OPEN;
  if ((classOf(code) & BREAK) !== 0 && !substitution) return false;
  if (words.length === 0 && readAssignment(c, assignments)) return true;
  const start = c.pos;
  const first = words.length === 0;
  readWord(c, "argument", words);
  if (c.joined) checkJoined(c, words, { start, first });
  return true;
}

interface Parts {
  readonly start: number;
  readonly end: number;
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}

/** A parenthesis after words: only a function's name may stand before it. */
function opened(c: Cursor, { start, end, assignments, words, redirects }: Parts): Node {
  const piece = words[0]?.pieces[0];
  const name = words.length === 1 && piece?.kind === "text" ? piece.text : "";
  const plain = name !== "" && c.text.startsWith(name, start) && end === start + name.length;
  if (plain && assignments.length + redirects.length === 0) return functionNamed(c, name, start);
  c.fail("not read: a parenthesis in a command");
  return { kind: "simple", span: c.span(start, end), assignments, words, redirects };
}

/** A line continuation inside of what may be more than a word is an error. */
function checkJoined(c: Cursor, words: readonly Word[], word: { start: number; first: boolean }): void {
  const piece = words.at(-1)?.pieces[0];
  const text = piece?.kind === "text" ? piece.text : "";
  const code = c.peek();
  const descriptor = (code === LESS || code === GREATER) && /^[\d{]/.test(text);
  const command = word.first && (isReserved(text) || /[=[]/.test(c.text.slice(word.start, c.pos)));
  if (descriptor || command) c.fail("not read: a line continuation inside of a word", word.start);
}

function readAssignment(c: Cursor, out: Assignment[]): boolean {
  if (!isNameStart(c.peek())) return false;
  let length = 1;
  while (isName(c.peek(length))) length++;
  const code = c.peek(length);
  const append = code === PLUS && c.peek(length + 1) === EQUALS;
  if (code === BRACKET) c.fail("not read: a subscript");
  if (code !== EQUALS && !append) return false;
  const start = c.pos;
  c.pos += length + (append ? 2 : 1);
  if (c.peek() === OPEN) c.fail("not read: an array", start);
  const value = oneWord(c, "value");
  const name = c.text.slice(start, start + length);
  out.push({ span: c.span(start, c.pos), name, value, append, others: [] });
  return true;
}
