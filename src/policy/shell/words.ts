import {
  ACTIVE,
  addPart,
  addText,
  BACKSLASH,
  BACKTICK,
  BRACE,
  BRACE_CLOSE,
  BREAK,
  CLASS,
  COMMA,
  type Cursor,
  DOLLAR,
  DOT,
  DOUBLE,
  GREATER,
  LATE,
  LESS,
  NEWLINE,
  normalPieces,
  OPEN,
  type WordFragment,
  SINGLE,
} from "./cursor.ts";
import { findPatterns, substitution } from "./expansions.ts";
import { ansi, double, single } from "./quotes.ts";
import type { Span, Word } from "./shell-syntax.ts";

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
  const pieces: WordFragment[] = [];
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
function readPart(c: Cursor, code: number, pieces: WordFragment[]): boolean {
  const bits = code < 128 ? (CLASS[code] ?? 0) : 0;
  if ((bits & BREAK) !== 0) {
    if (endsWord(c.text, c.pos) || c.peek(1) !== OPEN) return false;
    addPart(pieces, substitution(c, code === LESS ? "<(" : ">(", false));
  } else if ((bits & ACTIVE) === 0) plainRun(c, pieces);
  else active(c, code, pieces);
  return true;
}

function plainRun(c: Cursor, pieces: WordFragment[]): void {
  const start = c.pos;
  for (; c.pos < c.end; c.pos++) {
    const code = c.text.charCodeAt(c.pos);
    if (code < 128 && ((CLASS[code] ?? 0) & (BREAK | ACTIVE)) !== 0) break;
  }
  addText(pieces, c.text.slice(start, c.pos), false);
}

function active(c: Cursor, code: number, pieces: WordFragment[]): void {
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

function escaped(c: Cursor, pieces: WordFragment[]): void {
  if (c.peek(1) === -1) {
    c.fail("unsupported: a backslash at the end");
    return;
  }
  const character = String.fromCodePoint(c.text.codePointAt(c.pos + 1) ?? 0);
  addText(pieces, character, true);
  c.pos += 1 + character.length;
}

function dollarSign(c: Cursor, pieces: WordFragment[]): void {
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

function locale(c: Cursor): WordFragment {
  const inside: WordFragment[] = [];
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
  readonly pieces: WordFragment[];
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

const longerName = (word: readonly WordFragment[]): boolean =>
  word.some((piece, at) => {
    const next = word[at + 1];
    return piece.kind === "variable" && next?.kind === "text" && !next.quoted && /^\w/.test(next.text);
  });

/** A word that bash takes for an assignment, also where it is an argument. */
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
const SUBSCRIPT = /^[A-Za-z_]\w*\[/;
const NAMED = /^~[\w.+-]+$/;

type TildeUse = "argument" | "value" | "target" | "other" | "expanded";

const isUnquoted = (piece: WordFragment | undefined): piece is WordFragment & { kind: "text" } =>
  piece?.kind === "text" && !piece.quoted;

/** Splits the text pieces, so that the unquoted tildes that bash replaces are pieces of their own. */
function findTildes(c: Cursor, pieces: WordFragment[], use: TildeUse): WordFragment[] {
  if (!pieces.some((piece) => isUnquoted(piece) && piece.text.includes("~"))) return pieces;
  const named = use !== "value" && isNamed(c, isUnquoted(pieces[0]) ? pieces[0].text : "", use);
  const assigned = named || use === "value";
  const found: WordFragment[] = [];
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

function splitText(c: Cursor, text: string, { assigned, first, last }: Place, found: WordFragment[]): void {
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

function prefix(c: Cursor, text: string): WordFragment {
  if (text === "~") return { kind: "home" };
  if (!NAMED.test(text)) c.fail("unsupported: this tilde");
  return { kind: "unknown", what: "tilde", quoted: false, scripts: [] };
}

/** Limits on the words that one word, and all words of a text, may expand to; longer words are not expanded. */
const MAX_WORDS = 64;
const MAX_WORDS_OF_ALL = 1024;
const MAX_BRACED_LENGTH = 300;
const MAX_BRACE_DEPTH = 8;

/** A word as code units, with -1 - n in place of piece n, which is not expanded. */
type Codes = readonly number[];

/** The words that a word's braces expand to, an empty list of pieces for an empty word; null without an expansion. */
function expandBraces(c: Cursor, pieces: readonly WordFragment[]): WordFragment[][] | null {
  if (!pieces.some((piece) => piece.kind === "text" && !piece.quoted && holdsBrace(piece.text))) return null;
  const codes = toCodes(pieces);
  if (!separated(codes)) return null;
  const words = limits(codes) ?? expand(codes);
  if (typeof words === "string") {
    c.fail(`unsupported: ${words}`);
    return null;
  }
  if (words.length === 1 && words[0]?.length === codes.length) return null;
  c.braces += words.length;
  if (c.braces > MAX_WORDS_OF_ALL) c.fail("unsupported: too many words from braces");
  return words.map((word) => toPieces(word, pieces));
}

function toCodes(pieces: readonly WordFragment[]): Codes {
  const codes: number[] = [];
  for (const [index, piece] of pieces.entries())
    if (piece.kind !== "text" || piece.quoted) codes.push(-1 - index);
    else for (let at = 0; at < piece.text.length; at++) codes.push(piece.text.charCodeAt(at));
  return codes;
}

const holdsBrace = (text: string): boolean => text.includes("{");

/** The deepest nesting of braces; null when one has no partner. */
function balance(codes: Codes): number | null {
  let level = 0;
  let deepest = 0;
  for (const code of codes) {
    if (code === BRACE) deepest = Math.max(deepest, ++level);
    else if (code === BRACE_CLOSE && --level < 0) return null;
  }
  return level === 0 ? deepest : null;
}

/** Without a comma or two dots nothing expands. */
function separated(codes: Codes): boolean {
  return codes.some((code, at) => code === COMMA || (code === DOT && codes[at + 1] === DOT));
}

/** Why a word is not expanded. */
function limits(codes: Codes): string | null {
  const depth = balance(codes);
  if (depth === null) return "unbalanced braces";
  if (codes.length > MAX_BRACED_LENGTH) return "braces in a long word";
  return depth > MAX_BRACE_DEPTH ? "too deeply nested braces" : null;
}

/** All words, or why there are none. Braces are balanced. */
function expand(codes: Codes): Codes[] | string {
  let words: Codes[] = [[]];
  let run = 0;
  for (let at = 0; at < codes.length; at++) {
    if (codes[at] !== BRACE) continue;
    const { commas, close } = groupAt(codes, at);
    const made = alternatives(codes.slice(at + 1, close), commas, at + 1);
    if (typeof made === "string") return made;
    if (words.length * made.length > MAX_WORDS) return "too many words from braces";
    words = crossProduct(crossProduct(words, [codes.slice(run, at)]), made);
    at = close;
    run = close + 1;
  }
  return crossProduct(words, [codes.slice(run)]);
}

/** The end of the group that opens at `open`, and the commas directly in it. */
function groupAt(codes: Codes, open: number): { commas: readonly number[]; close: number } {
  const commas: number[] = [];
  let level = 0;
  let at = open;
  for (; at < codes.length; at++) {
    const code = codes[at];
    if (code === BRACE) level++;
    else if (code === BRACE_CLOSE && --level === 0) break;
    else if (code === COMMA && level === 1) commas.push(at);
  }
  return { commas, close: at };
}

function alternatives(inner: Codes, commas: readonly number[], offset: number): Codes[] | string {
  if (commas.length === 0) return withoutCommas(inner);
  const all: Codes[] = [];
  let run = 0;
  for (const comma of [...commas, offset + inner.length]) {
    const part = expand(inner.slice(run, comma - offset));
    if (typeof part === "string") return part;
    all.push(...part);
    if (all.length > MAX_WORDS) return "too many words from braces";
    run = comma - offset + 1;
  }
  return all;
}

/** A group without a comma: a sequence, or literal text with its braces. */
function withoutCommas(inner: Codes): Codes[] | string {
  const dots = inner.some((code, at) => code === DOT && inner[at + 1] === DOT);
  if (dots) {
    if (inner.length > 40 || inner.some((code) => code < 0)) return "this sequence";
    const items = sequence(String.fromCharCode(...inner), MAX_WORDS);
    return typeof items === "string"
      ? items
      : items.map((item) => Array.from(item, (one) => one.charCodeAt(0)));
  }
  const words = expand(inner);
  return typeof words === "string" ? words : crossProduct(crossProduct([[BRACE]], words), [[BRACE_CLOSE]]);
}

function crossProduct(left: readonly Codes[], right: readonly Codes[]): Codes[] {
  return left.flatMap((before) => right.map((after) => [...before, ...after]));
}

function toPieces(word: Codes, pieces: readonly WordFragment[]): WordFragment[] {
  const made: WordFragment[] = [];
  let text = "";
  for (const code of word) {
    if (code >= 0) {
      text += String.fromCharCode(code);
      continue;
    }
    const piece = pieces[-1 - code];
    addText(made, text, false);
    text = "";
    if (piece !== undefined) addPart(made, piece);
  }
  addText(made, text, false);
  return made;
}

const INTEGER = /^-?\d{1,9}$/;
const PADDED = /^-?0\d/;
const LOWER = /^[a-z]$/;
const UPPER = /^[A-Z]$/;

/** The items of `first..last` or `first..last..step`, or why there are none. */
function sequence(text: string, most: number): string[] | string {
  const [first = "", last = "", step = "1", ...more] = text.split("..");
  if (more.length > 0 || !INTEGER.test(step)) return "this sequence";
  const by = Math.abs(Number(step)) || 1;
  if (bothMatch(LOWER, first, last) || bothMatch(UPPER, first, last)) {
    const codes = range(first.charCodeAt(0), last.charCodeAt(0), by, most);
    return codes.map((code) => String.fromCharCode(code));
  }
  return bothMatch(INTEGER, first, last) ? integers(first, last, by, most) : "this sequence";
}

function integers(first: string, last: string, by: number, most: number): string[] | string {
  const values = range(Number(first), Number(last), by, most + 1);
  const padding = PADDED.test(first) || PADDED.test(last);
  const width = padding ? Math.max(first.length, last.length) : 0;
  return values.length > most ? "too many words from braces" : values.map((value) => padded(value, width));
}

const bothMatch = (pattern: RegExp, first: string, last: string): boolean =>
  pattern.test(first) && pattern.test(last);

/** At most `most` numbers. */
function range(from: number, to: number, by: number, most: number): number[] {
  const length = Math.floor(Math.abs(to - from) / by) + 1;
  const step = from <= to ? by : -by;
  return Array.from({ length: Math.min(length, most) }, (_, index) => from + index * step);
}

function padded(value: number, width: number): string {
  const digits = String(Math.abs(value));
  return value < 0 ? `-${digits.padStart(width - 1, "0")}` : digits.padStart(width, "0");
}
