import type { List, Word } from "../syntax.ts";
import { AMPERSAND, BAR, CLOSE, OPEN, SEMICOLON } from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { newlines } from "./lines.ts";
import { atIn } from "./loops.ts";
import { type Inner, expect, filled } from "./parts.ts";
import { isReserved, reserved } from "./reserved.ts";
import { oneWord } from "./words.ts";

export function branches(c: Cursor, what: "if" | "case"): Inner {
  c.pos += what.length;
  return what === "if" ? conditions(c) : patterns(c);
}

function conditions(c: Cursor): Inner {
  const bodies: List[] = [filled(c)];
  expect(c, "then");
  bodies.push(filled(c));
  for (let word = reserved(c); word === "elif"; word = reserved(c)) {
    c.pos += word.length;
    bodies.push(filled(c));
    expect(c, "then");
    bodies.push(filled(c));
  }
  if (reserved(c) === "else") {
    c.pos += "else".length;
    bodies.push(filled(c));
  }
  expect(c, "fi");
  return { what: "if", name: null, words: null, bodies };
}

function patterns(c: Cursor): Inner {
  const words: Word[] = [];
  const bodies: List[] = [];
  c.blanks();
  word(c, words);
  newlines(c);
  if (atIn(c)) c.pos += 2;
  else c.fail("in is missing");
  newlines(c);
  while (c.pos < c.end && reserved(c) !== "esac") arm(c, words, bodies);
  expect(c, "esac");
  return { what: "case", name: null, words, bodies };
}

function word(c: Cursor, words: Word[]): void {
  const start = c.pos;
  const read = oneWord(c, "other");
  const piece = read.pieces[0];
  if (c.joined && piece?.kind === "text" && isReserved(piece.text))
    c.fail("not read: esac over two lines", start);
  if (c.pos === start) c.fail("a word is missing");
  else words.push(read);
}

function arm(c: Cursor, words: Word[], bodies: List[]): void {
  if (c.peek() === OPEN) {
    c.pos++;
    c.blanks();
    if (reserved(c) === "esac") c.fail("not read: esac as a pattern");
  }
  for (;;) {
    word(c, words);
    c.blanks();
    if (c.peek() !== BAR) break;
    c.pos++;
    c.blanks();
  }
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("a pattern has no end");
  bodies.push(c.grammar.list(c));
  if (c.peek() === SEMICOLON) terminator(c);
  else if (reserved(c) !== "esac") c.fail("esac is missing");
}

function terminator(c: Cursor): void {
  if (c.peek(1) === AMPERSAND) c.pos += 2;
  else if (c.peek(1) === SEMICOLON) c.pos += c.peek(2) === AMPERSAND ? 3 : 2;
  else c.fail("a command is missing");
  newlines(c);
}
