import type { Node } from "../syntax.ts";
import {
  BACKTICK,
  BRACKET,
  BRACKET_CLOSE,
  CLOSE,
  DOLLAR,
  GREATER,
  LESS,
  OPEN,
  SEMICOLON,
  isName,
} from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { collect } from "./nested.ts";

/** What an expression may hold beside names, numbers, brackets and expansions. Quotes and escapes are not read. */
const OPERATORS = " \t+-*/%<>=!&|^~?:,#";

/**
 * Reads an expression and what closes it, `))` or `]`, for the command substitutions in it. `;` is one of its
 * characters in the head of a loop.
 */
export function arithmetic(c: Cursor, opener: "(" | "[" | "for", start: number): Node[] {
  const scripts: Node[] = [];
  const levels = { round: 0, square: 0, semicolons: 0 };
  for (;;) {
    const code = c.peek();
    if (code === -1) {
      c.fail("an arithmetic is not closed", start);
      return scripts;
    }
    if (code === DOLLAR || code === BACKTICK) expansion(c, code, scripts);
    else if (closes(code, opener, levels)) break;
    else if (known(c, code, opener, levels)) c.pos++;
    else c.fail("not read: this arithmetic", start);
  }
  if (opener === "for" && levels.semicolons !== 2) c.fail("a loop's head has no three parts", start);
  if (opener === "[") c.pos++;
  else if (c.peek(1) === CLOSE) c.pos += 2;
  else c.fail("not read: an arithmetic that may be a subshell", start);
  return scripts;
}

function expansion(c: Cursor, code: number, scripts: Node[]): void {
  const piece = code === DOLLAR ? c.grammar.dollar(c, true) : c.grammar.backtick(c, true);
  if (piece === null) c.fail("not read: a dollar sign in an arithmetic");
  else collect(piece, scripts);
}

interface Levels {
  round: number;
  square: number;
  semicolons: number;
}

function closes(code: number, opener: string, levels: Levels): boolean {
  return opener === "["
    ? code === BRACKET_CLOSE && levels.square === 0 && levels.round === 0
    : code === CLOSE && levels.round === 0 && levels.square === 0;
}

function known(c: Cursor, code: number, opener: string, levels: Levels): boolean {
  if (isName(code)) return true;
  if (code === OPEN) levels.round++;
  else if (code === CLOSE) return --levels.round >= 0;
  else if (code === BRACKET) levels.square++;
  else if (code === BRACKET_CLOSE) return --levels.square >= 0;
  else if (code === LESS || code === GREATER) return c.peek(1) !== OPEN;
  else if (opener === "for" && code === SEMICOLON) levels.semicolons++;
  else return OPERATORS.includes(String.fromCharCode(code));
  return true;
}
