import { expandBraces } from "./braces.ts";
import {
  ACTIVE,
  addPart,
  addText,
  BACKSLASH,
  BACKTICK,
  BREAK,
  CLASS,
  type Cursor,
  DOLLAR,
  DOUBLE,
  GREATER,
  LATE,
  LESS,
  NEWLINE,
  OPEN,
  type Part,
  reserved,
  normalPieces,
  SINGLE,
} from "./cursor.ts";
import { findPatterns, substitution } from "./expansions.ts";
import { ansi, double, single } from "./quotes.ts";
import type { Compound, List, Span, Word } from "./shell-syntax.ts";

/** Kind of a word: only arguments have braces expanded; only arguments and values have `:~` expanded. */
type Use = "argument" | "value" | "target" | "other";

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
  if (at < end && !endsWord(text, at)) {
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
  if ((seen & LATE) === 0 || (at === start + 1 && isBareBracket(text, start)))
    out.push({ span, pieces: [{ kind: "text", text: source }] });
  else
    finishWord(c, { use, span, pieces: [{ kind: "text", text: source, quoted: false }], names: false }, out);
}

/** One word that is not an argument, and never several. */
export function oneWord(c: Cursor, use: "value" | "target" | "other"): Word {
  const out: Word[] = [];
  readWord(c, use, out);
  return out[0] ?? { span: c.span(c.pos, c.pos), pieces: [] };
}

/** `[` and `{` alone are text. */
function isBareBracket(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 91 || code === 123;
}

/** True when the unquoted character at `at` ends the word. */
function endsWord(text: string, at: number): boolean {
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
  const broken = c.awaited.length + c.outerHereDocuments > 0 && c.text.slice(start, c.pos).includes("\n");
  if (broken) c.fail("unsupported: a word over several lines before a here-document", start);
  const names = NAME.test(c.text.slice(start, c.pos));
  finishWord(c, { use, span: c.span(start, c.pos), pieces, names }, out);
}

/** A name without braces around it. */
const NAME = /\$[A-Za-z_]/;

/** Reads a part of a word; false at its end. */
function readPart(c: Cursor, code: number, pieces: Part[]): boolean {
  const bits = code < 128 ? (CLASS[code] ?? 0) : 0;
  if ((bits & BREAK) !== 0) {
    if (endsWord(c.text, c.pos) || c.peek(1) !== OPEN) return false;
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
    c.fail("unsupported: a backslash at the end");
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
  /** Whether the word contains a `$name`. */
  readonly names: boolean;
}

/** The last steps of bash for a complete word: braces, then tildes, then patterns. */
function finishWord(c: Cursor, { use, span, pieces, names }: Raw, out: Word[]): void {
  const expanded = use === "argument" || use === "target" ? expandBraces(c, pieces) : null;
  if (expanded === null) {
    const found = findPatterns(c, findTildes(c, pieces, use));
    out.push({ span, pieces: normalPieces(found) });
    return;
  }
  // `$x{a,b}` is `$xa $xb`.
  if (names && expanded.some(longerName)) c.fail("unsupported: a name beside braces", span[0]);
  if (use === "target") c.fail("unsupported: braces in a redirect's target", span[0]);
  for (const one of expanded) {
    if (one.length === 0) continue;
    const found = findPatterns(c, findTildes(c, one, "expanded"));
    out.push({ span, pieces: normalPieces(found) });
  }
}

const longerName = (word: readonly Part[]): boolean =>
  word.some((piece, at) => {
    const next = word[at + 1];
    return piece.kind === "variable" && next?.kind === "text" && !next.quoted && /^\w/.test(next.text);
  });

/** A word that bash takes for an assignment, also where it is an argument. */
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
const SUBSCRIPT = /^[A-Za-z_]\w*\[/;
const NAMED = /^~[\w.+-]+$/;

type TildeUse = "argument" | "value" | "target" | "other" | "expanded";

const isUnquoted = (piece: Part | undefined): piece is Part & { kind: "text" } =>
  piece?.kind === "text" && !piece.quoted;

/** Splits the text pieces, so that the unquoted tildes that bash replaces are pieces of their own. */
function findTildes(c: Cursor, pieces: Part[], use: TildeUse): Part[] {
  if (!pieces.some((piece) => isUnquoted(piece) && piece.text.includes("~"))) return pieces;
  const named = use !== "value" && isNamed(c, isUnquoted(pieces[0]) ? pieces[0].text : "", use);
  const assigned = named || use === "value";
  const found: Part[] = [];
  for (const [index, piece] of pieces.entries()) {
    if (!isUnquoted(piece)) addPart(found, piece);
    else {
      const first = named ? piece.text.indexOf("=") + 1 : 0;
      const place = { assigned, first: index === 0 ? first : -1, last: index === pieces.length - 1 };
      splitText(c, piece.text, place, found);
    }
  }
  return found;
}

/** Whether a word that is no assignment looks like one to bash. */
function isNamed(c: Cursor, head: string, use: TildeUse): boolean {
  const named = use !== "other" && ASSIGNMENT.test(head);
  if (use === "expanded" && named) c.fail("unsupported: a tilde beside braces");
  if (SUBSCRIPT.test(head)) c.fail("unsupported: a tilde after a subscript");
  return named;
}

interface Place {
  /** Whether a tilde counts after a colon, and ends before one. */
  readonly assigned: boolean;
  /** A further position where a tilde counts; -1 for none. */
  readonly first: number;
  /** Whether the word ends with this text. */
  readonly last: boolean;
}

function splitText(c: Cursor, text: string, { assigned, first, last }: Place, found: Part[]): void {
  let run = 0;
  for (let at = text.indexOf("~"); at !== -1; at = text.indexOf("~", at + 1)) {
    if (at !== first && !(assigned && text[at - 1] === ":")) continue;
    const end = prefixEnd(text, at, assigned);
    if (end === text.length && !last) c.fail("unsupported: a tilde before quotes or an expansion");
    addText(found, text.slice(run, at), false);
    found.push(prefix(c, text.slice(at, end)));
    run = end;
  }
  addText(found, text.slice(run), false);
}

function prefixEnd(text: string, from: number, assigned: boolean): number {
  for (let at = from; at < text.length; at++)
    if (text[at] === "/" || (assigned && text[at] === ":")) return at;
  return text.length;
}

function prefix(c: Cursor, text: string): Part {
  if (text === "~") return { kind: "home" };
  if (!NAMED.test(text)) c.fail("unsupported: this tilde");
  return { kind: "unknown", what: "tilde", quoted: false, scripts: [] };
}

/** A compound command without its place and redirects. */
export type Inner = Pick<Compound, "what" | "name" | "words" | "bodies">;

/** Reads a list that must hold a command. */
export function filled(c: Cursor): List {
  const list = c.grammar.list(c);
  if (list.items.length === 0) c.fail("a command is missing");
  return list;
}

/** Reads a reserved word that must stand here. */
export function expect(c: Cursor, word: string): void {
  if (reserved(c) === word) c.pos += word.length;
  else c.fail(`${word} is missing`);
}
