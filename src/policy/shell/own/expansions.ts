import type { Node } from "../syntax.ts";
import type { Expansion } from "./pieces.ts";
import { arithmetic } from "./arithmetic.ts";
import {
  BACKSLASH,
  BACKTICK,
  BRACE,
  BRACE_CLOSE,
  BRACKET,
  CLOSE,
  DOLLAR,
  DOUBLE,
  GREATER,
  LESS,
  NEWLINE,
  OPEN,
  SINGLE,
  isDigit,
  isName,
  isNameStart,
} from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { collect, nested } from "./nested.ts";

/** Parameters of one character that is neither a letter nor a digit. */
const SPECIAL = "@*#?-$!";
/** What may follow the name in `${name…}`. */
const OPERATORS = ":-=?+#%/^,@[";

const among = (code: number, members: string): boolean =>
  code > 0 && members.includes(String.fromCharCode(code));

/** Reads what a `$` begins; null, with nothing read, when it stands for itself. */
export function dollar(c: Cursor, quoted: boolean): Expansion | null {
  const next = c.peek(1);
  if (isNameStart(next)) return variable(c, quoted);
  if (next === BRACE) return parameter(c, quoted);
  if (next === OPEN)
    return c.peek(2) === OPEN ? arithmeticPiece(c, quoted, 3) : substitution(c, "$(", quoted);
  if (next === BRACKET) return arithmeticPiece(c, quoted, 2);
  if (isDigit(next) || among(next, SPECIAL)) {
    c.pos += 2;
    return { kind: "variable", name: String.fromCharCode(next), quoted };
  }
  if (next === BACKSLASH && c.peek(2) === NEWLINE) c.fail("not read: an expansion over two lines");
  return null;
}

function variable(c: Cursor, quoted: boolean): Expansion {
  const start = ++c.pos;
  while (isName(c.peek())) c.pos++;
  const name = c.text.slice(start, c.pos);
  if (c.peek() === BACKSLASH && c.peek(1) === NEWLINE && isName(c.peek(2)))
    c.fail("not read: a name over two lines", start);
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
  if (name !== null && !among(c.peek(), OPERATORS)) c.fail("not read: this expansion", start);
  const scripts = nested(c, () => operand(c, quoted, start));
  return { kind: "unknown", what: "parameter", quoted, scripts };
}

/** The name after `${`; null, with nothing read but a prefix, when `#` or `!` asks for something else of it. */
function parameterName(c: Cursor): string | null {
  const start = c.pos;
  const first = c.peek();
  if (isNameStart(first)) while (isName(c.peek())) c.pos++;
  else if (isDigit(first)) while (isDigit(c.peek())) c.pos++;
  else if (among(first, SPECIAL)) {
    c.pos++;
    const prefix = (first === 33 || first === 35) && c.peek() !== BRACE_CLOSE;
    if (prefix && (isName(c.peek()) || among(c.peek(), SPECIAL))) return null;
    if (prefix) c.fail("not read: this expansion", start);
  } else c.fail("not read: this expansion", start);
  return c.text.slice(start, c.pos);
}

/** Reads the rest of `${…}` and its brace, for the command substitutions in it. */
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
  /** Whether the cursor is in quotes of the expansion's own. */
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
  else if (misread(c, code, inside.inner)) c.fail("not read: quotes or braces in an expansion", start);
  else c.pos++;
}

/** What bash reads in one of several ways, by the operator and by the quotes around it. */
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
    c.fail("not read: quotes in an expansion");
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
