import {
  addPart,
  addText,
  BACKSLASH,
  BACKTICK,
  BANG,
  BRACE,
  BRACE_CLOSE,
  BRACKET,
  BRACKET_CLOSE,
  CLOSE,
  collect,
  COLON,
  type Cursor,
  DOLLAR,
  DOT,
  DOUBLE,
  EQUALS,
  type Expansion,
  GREATER,
  isDigit,
  isName,
  isNameStart,
  LESS,
  nested,
  NEWLINE,
  OPEN,
  type WordFragment,
  QUESTION,
  SEMICOLON,
  SINGLE,
  STAR,
} from "./cursor.ts";
import type { Node } from "./shell-syntax.ts";

/** Parameters of one character that is neither a letter nor a digit. */
const SPECIAL = "@*#?-$!";
/** What may follow the name in `${name…}`. */
const OPERATORS = ":-=?+#%/^,@[";

const isOneOf = (code: number, members: string): boolean =>
  code > 0 && members.includes(String.fromCharCode(code));

/** Reads the expansion that a `$` starts; null, with nothing read, for a literal dollar sign. */
export function dollar(c: Cursor, quoted: boolean): Expansion | null {
  const next = c.peek(1);
  if (isNameStart(next)) return variable(c, quoted);
  if (next === BRACE) return parameter(c, quoted);
  if (next === OPEN)
    return c.peek(2) === OPEN ? arithmeticPiece(c, quoted, 3) : substitution(c, "$(", quoted);
  if (next === BRACKET) return arithmeticPiece(c, quoted, 2);
  if (isDigit(next) || isOneOf(next, SPECIAL)) {
    c.pos += 2;
    return { kind: "variable", name: String.fromCharCode(next), quoted };
  }
  if (next === BACKSLASH && c.peek(2) === NEWLINE) c.fail("unsupported: an expansion over two lines");
  return null;
}

function variable(c: Cursor, quoted: boolean): Expansion {
  const start = ++c.pos;
  while (isName(c.peek())) c.pos++;
  const name = c.text.slice(start, c.pos);
  if (c.peek() === BACKSLASH && c.peek(1) === NEWLINE && isName(c.peek(2)))
    c.fail("unsupported: a name over two lines", start);
  return { kind: "variable", name, quoted };
}

/** Reads a command or process substitution; the cursor is at the two characters that open it. */
export function substitution(c: Cursor, via: "$(" | "<(" | ">(", quoted: boolean): Expansion {
  const start = c.pos;
  c.pos += 2;
  const body = nested(c, () => c.grammar.script(c, CLOSE));
  if (c.peek() === CLOSE) c.pos++;
  else c.fail("a substitution is not closed", start);
  return { kind: "script", via, body, quoted };
}

function arithmeticPiece(c: Cursor, quoted: boolean, opening: number): Expansion {
  const start = c.pos;
  c.pos += opening;
  const scripts = nested(c, () => arithmetic(c, opening === 2 ? "[" : "(", start));
  return { kind: "unknown", what: "arithmetic", quoted, scripts };
}

function parameter(c: Cursor, quoted: boolean): Expansion {
  const start = c.pos;
  c.pos += 2;
  const name = parameterName(c);
  if (name !== null && c.peek() === BRACE_CLOSE) {
    c.pos++;
    return { kind: "variable", name, quoted };
  }
  if (name !== null && !isOneOf(c.peek(), OPERATORS)) c.fail("unsupported: this expansion", start);
  const scripts = nested(c, () => operand(c, quoted, start));
  return { kind: "unknown", what: "parameter", quoted, scripts };
}

/** The name after `${`; null for another form that begins with `#` or `!`, and then only that character is read. */
function parameterName(c: Cursor): string | null {
  const start = c.pos;
  const first = c.peek();
  if (isNameStart(first)) while (isName(c.peek())) c.pos++;
  else if (isDigit(first)) while (isDigit(c.peek())) c.pos++;
  else if (isOneOf(first, SPECIAL)) {
    c.pos++;
    const prefix = (first === 33 || first === 35) && c.peek() !== BRACE_CLOSE;
    if (prefix && (isName(c.peek()) || isOneOf(c.peek(), SPECIAL))) return null;
    if (prefix) c.fail("unsupported: this expansion", start);
  } else c.fail("unsupported: this expansion", start);
  return c.text.slice(start, c.pos);
}

/** Reads the rest of `${…}` with its brace; returns the command substitutions in it. */
function operand(c: Cursor, quoted: boolean, start: number): Node[] {
  const inside: Inside = { quoted, inner: false, scripts: [] };
  while (c.peek() !== BRACE_CLOSE || inside.inner) {
    if (c.peek() === -1) {
      c.fail("an expansion is not closed", start);
      return inside.scripts;
    }
    step(c, inside, start);
  }
  c.pos++;
  return inside.scripts;
}

interface Inside {
  /** Whether the whole expansion stands in quotes. */
  readonly quoted: boolean;
  /** Whether the cursor is in quotes inside of the expansion. */
  inner: boolean;
  readonly scripts: Node[];
}

function step(c: Cursor, inside: Inside, start: number): void {
  const code = c.peek();
  if (code === DOLLAR || code === BACKTICK) expansion(c, inside.quoted || inside.inner, inside.scripts);
  else if (code === BACKSLASH) c.pos += 2;
  else if (code === DOUBLE && !inside.quoted) {
    inside.inner = !inside.inner;
    c.pos++;
  } else if (code === SINGLE && !inside.quoted && !inside.inner) skipSingle(c);
  else if (misread(c, code, inside.inner)) c.fail("unsupported: quotes or braces in an expansion", start);
  else c.pos++;
}

/** Constructs that bash reads differently depending on the operator and the quotes around it. */
function misread(c: Cursor, code: number, inner: boolean): boolean {
  if (code === NEWLINE) return true;
  if (inner) return false;
  if (code === LESS || code === GREATER) return c.peek(1) === OPEN;
  return code === DOUBLE || code === SINGLE || code === BRACE;
}

function expansion(c: Cursor, quoted: boolean, scripts: Node[]): void {
  if (c.peek() === BACKTICK) {
    collect(c.grammar.backtick(c, quoted), scripts);
    return;
  }
  const next = c.peek(1);
  if (next === SINGLE || next === DOUBLE) {
    c.fail("unsupported: quotes in an expansion");
    return;
  }
  const piece = dollar(c, quoted);
  if (piece === null) c.pos++;
  else collect(piece, scripts);
}

function skipSingle(c: Cursor): void {
  const close = c.text.indexOf("'", c.pos + 1);
  if (close === -1 || close >= c.end) c.fail("a single quote is not closed");
  else c.pos = close + 1;
}

const CARET = 94;
const MAX_CLASS_LENGTH = 20;

/** Splits the text pieces, so that unquoted patterns are pieces of their own. */
export function findPatterns(c: Cursor, pieces: WordFragment[]): WordFragment[] {
  if (!pieces.some((piece) => piece.kind === "text" && !piece.quoted && holdsPattern(piece.text)))
    return pieces;
  const found: WordFragment[] = [];
  let open = false;
  for (const piece of pieces) {
    if (piece.kind !== "text" || piece.quoted) {
      addPart(found, piece);
      continue;
    }
    if (open && piece.text.includes("]")) c.fail("unsupported: quotes or an expansion in a bracket");
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
function splitText(c: Cursor, text: string, found: WordFragment[]): boolean {
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
  c.fail("unsupported: this bracket");
  return -1;
}

/** The last character of `[:name:]`, `[.x.]` or `[=x=]` at `from`; `from` when it is none. */
function classEnd(text: string, from: number): number {
  const kind = text.charCodeAt(from + 1);
  if (kind !== COLON && kind !== DOT && kind !== EQUALS) return from;
  const length = text.slice(from + 2, from + 2 + MAX_CLASS_LENGTH).indexOf(`${String.fromCharCode(kind)}]`);
  return length === -1 ? from : from + length + 3;
}

/** Characters in an expression besides names, numbers, brackets and expansions. Quotes and escapes are not read. */
const ARITHMETIC_OPERATORS = " \t+-*/%<>=!&|^~?:,#";

/**
 * Reads an arithmetic expression and its end, `))` or `]`; returns the command substitutions in it. `;` is accepted in
 * the head of a loop.
 */
export function arithmetic(c: Cursor, opener: "(" | "[" | "for", start: number): Node[] {
  const scripts: Node[] = [];
  const levels = { round: 0, square: 0, semicolons: 0 };
  for (;;) {
    const code = c.peek();
    if (code === -1) {
      c.fail("an arithmetic expression is not closed", start);
      return scripts;
    }
    if (code === DOLLAR || code === BACKTICK) arithmeticExpansion(c, code, scripts);
    else if (closes(code, opener, levels)) break;
    else if (known(c, code, opener, levels)) c.pos++;
    else c.fail("unsupported: this arithmetic expression", start);
  }
  if (opener === "for" && levels.semicolons !== 2)
    c.fail("the head of a for loop does not have three parts", start);
  if (opener === "[") c.pos++;
  else if (c.peek(1) === CLOSE) c.pos += 2;
  else c.fail("unsupported: an arithmetic expression that may be a subshell", start);
  return scripts;
}

function arithmeticExpansion(c: Cursor, code: number, scripts: Node[]): void {
  const piece = code === DOLLAR ? c.grammar.dollar(c, true) : c.grammar.backtick(c, true);
  if (piece === null) c.fail("unsupported: a dollar sign in an arithmetic expression");
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
  else return ARITHMETIC_OPERATORS.includes(String.fromCharCode(code));
  return true;
}
