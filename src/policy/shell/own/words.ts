import type { Span, Word } from "../syntax.ts";
import { expandBraces } from "./braces.ts";
import {
  ACTIVE,
  BACKSLASH,
  BACKTICK,
  BREAK,
  CLASS,
  DOLLAR,
  DOUBLE,
  GREATER,
  LATE,
  LESS,
  NEWLINE,
  OPEN,
  SINGLE,
} from "./chars.ts";
import type { Cursor } from "./cursor.ts";
import { substitution } from "./expansions.ts";
import { findPatterns } from "./patterns.ts";
import { type Part, addPart, addText, settle } from "./pieces.ts";
import { ansi, double, single } from "./quotes.ts";
import { findTildes } from "./tildes.ts";

/** What a word is for: only arguments have their braces expanded, only there and in values `:~` is a home. */
export type Use = "argument" | "value" | "target" | "other";

/** Reads one word and adds what it expands to. The cursor is at its first character; a value may be empty. */
export function readWord(c: Cursor, use: Use, out: Word[]): void {
  const { text, end } = c;
  const start = c.pos;
  let at = start;
  let seen = 0;
  for (; at < end; at++) {
    const code = text.charCodeAt(at);
    const bits = code < 128 ? (CLASS[code] ?? 0) : 0;
    if ((bits & (BREAK | ACTIVE)) !== 0) break;
    seen |= bits;
  }
  c.joined = false;
  if (at < end && !stops(text, at)) {
    readPieces(c, use, out);
    return;
  }
  c.pos = at;
  const span = c.span(start, at);
  if (at === start) {
    out.push({ span, pieces: [] });
    return;
  }
  const source = text.slice(start, at);
  if ((seen & LATE) === 0 || (at === start + 1 && bare(text, start)))
    out.push({ span, pieces: [{ kind: "text", text: source }] });
  else finish(c, { use, span, pieces: [{ kind: "text", text: source, quoted: false }], names: false }, out);
}

/** One word that is not an argument, and never several. */
export function oneWord(c: Cursor, use: "value" | "target" | "other"): Word {
  const out: Word[] = [];
  readWord(c, use, out);
  return out[0] ?? { span: c.span(c.pos, c.pos), pieces: [] };
}

/** `[` and `{` alone are text. */
function bare(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 91 || code === 123;
}

/** True when the unquoted character at `at` ends the word. */
function stops(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (((CLASS[code] ?? 0) & BREAK) === 0) return false;
  return !((code === LESS || code === GREATER) && text.charCodeAt(at + 1) === OPEN);
}

function readPieces(c: Cursor, use: Use, out: Word[]): void {
  const start = c.pos;
  const pieces: Part[] = [];
  let joined = false;
  for (let code = c.peek(); code !== -1; code = c.peek()) {
    if (code === BACKSLASH && c.peek(1) === NEWLINE) {
      joined = true;
      c.pos += 2;
    } else if (!readPart(c, code, pieces)) break;
  }
  c.joined = joined;
  const broken = c.awaited.length + c.held > 0 && c.text.slice(start, c.pos).includes("\n");
  if (broken) c.fail("not read: a word over several lines before a here-document", start);
  const names = NAME.test(c.text.slice(start, c.pos));
  finish(c, { use, span: c.span(start, c.pos), pieces, names }, out);
}

/** A name without braces around it. */
const NAME = /\$[A-Za-z_]/;

/** Reads a part of a word; false at its end. */
function readPart(c: Cursor, code: number, pieces: Part[]): boolean {
  const bits = code < 128 ? (CLASS[code] ?? 0) : 0;
  if ((bits & BREAK) !== 0) {
    if (stops(c.text, c.pos) || c.peek(1) !== OPEN) return false;
    addPart(pieces, substitution(c, code === LESS ? "<(" : ">(", false));
  } else if ((bits & ACTIVE) === 0) plainRun(c, pieces);
  else active(c, code, pieces);
  return true;
}

function plainRun(c: Cursor, pieces: Part[]): void {
  const start = c.pos;
  for (; c.pos < c.end; c.pos++) {
    const code = c.text.charCodeAt(c.pos);
    if (code < 128 && ((CLASS[code] ?? 0) & (BREAK | ACTIVE)) !== 0) break;
  }
  addText(pieces, c.text.slice(start, c.pos), false);
}

function active(c: Cursor, code: number, pieces: Part[]): void {
  switch (code) {
    case SINGLE:
      return single(c, pieces);
    case DOUBLE:
      return double(c, pieces);
    case BACKTICK:
      return addPart(pieces, c.grammar.backtick(c, false));
    case DOLLAR:
      return dollarSign(c, pieces);
    default:
      return escaped(c, pieces);
  }
}

function escaped(c: Cursor, pieces: Part[]): void {
  if (c.peek(1) === -1) {
    c.fail("not read: a backslash at the end");
    return;
  }
  const character = String.fromCodePoint(c.text.codePointAt(c.pos + 1) ?? 0);
  addText(pieces, character, true);
  c.pos += 1 + character.length;
}

function dollarSign(c: Cursor, pieces: Part[]): void {
  const next = c.peek(1);
  if (next === SINGLE) ansi(c, pieces);
  else if (next === DOUBLE) pieces.push(locale(c));
  else {
    const piece = c.grammar.dollar(c, false);
    if (piece !== null) addPart(pieces, piece);
    else if (c.problem === null) {
      c.pos++;
      addText(pieces, "$", false);
    }
  }
}

function locale(c: Cursor): Part {
  const inside: Part[] = [];
  c.pos++;
  double(c, inside);
  const scripts = inside.flatMap((piece) =>
    piece.kind === "script" ? [piece.body] : piece.kind === "unknown" ? piece.scripts : [],
  );
  return { kind: "unknown", what: "locale", quoted: false, scripts };
}

interface Raw {
  readonly use: Use;
  readonly span: Span;
  readonly pieces: Part[];
  /** Whether a `$name` is written in it. */
  readonly names: boolean;
}

/** What bash does to a word once it is complete: braces, then tildes, then patterns. */
function finish(c: Cursor, { use, span, pieces, names }: Raw, out: Word[]): void {
  const expanded = use === "argument" || use === "target" ? expandBraces(c, pieces) : null;
  if (expanded === null) {
    const found = findPatterns(c, findTildes(c, pieces, use));
    out.push({ span, pieces: settle(found) });
    return;
  }
  // `$x{a,b}` is `$xa $xb`.
  if (names && expanded.some(longerName)) c.fail("not read: a name beside braces", span[0]);
  if (use === "target") c.fail("not read: braces in a redirect's target", span[0]);
  for (const one of expanded) {
    if (one.length === 0) continue;
    const found = findPatterns(c, findTildes(c, one, "expanded"));
    out.push({ span, pieces: settle(found) });
  }
}

const longerName = (word: readonly Part[]): boolean =>
  word.some((piece, at) => {
    const next = word[at + 1];
    return piece.kind === "variable" && next?.kind === "text" && !next.quoted && /^\w/.test(next.text);
  });
