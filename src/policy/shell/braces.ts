import { addPart, addText, BRACE, BRACE_CLOSE, COMMA, type Cursor, DOT, type Part } from "./cursor.ts";

/** Limits on the words that one word, and all words of a text, may expand to; longer words are not expanded. */
const MAX_COUNT = 64;
const MAX_OF_ALL = 1024;
const MAX_LENGTH = 300;
const MAX_DEPTH = 8;

/** A word as code units, with -1 - n in place of piece n, which is not expanded. */
type Codes = readonly number[];

/** The words that a word's braces expand to, an empty list of pieces for an empty word; null without an expansion. */
export function expandBraces(c: Cursor, pieces: readonly Part[]): Part[][] | null {
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
  if (c.braces > MAX_OF_ALL) c.fail("unsupported: too many words from braces");
  return words.map((word) => toPieces(word, pieces));
}

function toCodes(pieces: readonly Part[]): Codes {
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
  if (codes.length > MAX_LENGTH) return "braces in a long word";
  return depth > MAX_DEPTH ? "too deeply nested braces" : null;
}

/** All words, or why there are none. Braces are balanced. */
function expand(codes: Codes): Codes[] | string {
  let words: Codes[] = [[]];
  let run = 0;
  for (let at = 0; at < codes.length; at++) {
    if (codes[at] !== BRACE) continue;
    const { commas, close } = group(codes, at);
    const made = alternatives(codes.slice(at + 1, close), commas, at + 1);
    if (typeof made === "string") return made;
    if (words.length * made.length > MAX_COUNT) return "too many words from braces";
    words = cross(cross(words, [codes.slice(run, at)]), made);
    at = close;
    run = close + 1;
  }
  return cross(words, [codes.slice(run)]);
}

/** The end of the group that opens at `open`, and the commas directly in it. */
function group(codes: Codes, open: number): { commas: readonly number[]; close: number } {
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
  if (commas.length === 0) return single(inner);
  const all: Codes[] = [];
  let run = 0;
  for (const comma of [...commas, offset + inner.length]) {
    const part = expand(inner.slice(run, comma - offset));
    if (typeof part === "string") return part;
    all.push(...part);
    if (all.length > MAX_COUNT) return "too many words from braces";
    run = comma - offset + 1;
  }
  return all;
}

/** A group without a comma: a sequence, or literal text with its braces. */
function single(inner: Codes): Codes[] | string {
  const dots = inner.some((code, at) => code === DOT && inner[at + 1] === DOT);
  if (dots) {
    if (inner.length > 40 || inner.some((code) => code < 0)) return "this sequence";
    const items = sequence(String.fromCharCode(...inner), MAX_COUNT);
    return typeof items === "string"
      ? items
      : items.map((item) => Array.from(item, (one) => one.charCodeAt(0)));
  }
  const words = expand(inner);
  return typeof words === "string" ? words : cross(cross([[BRACE]], words), [[BRACE_CLOSE]]);
}

function cross(left: readonly Codes[], right: readonly Codes[]): Codes[] {
  return left.flatMap((before) => right.map((after) => [...before, ...after]));
}

function toPieces(word: Codes, pieces: readonly Part[]): Part[] {
  const made: Part[] = [];
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
  if (both(LOWER, first, last) || both(UPPER, first, last)) {
    const codes = range(first.charCodeAt(0), last.charCodeAt(0), by, most);
    return codes.map((code) => String.fromCharCode(code));
  }
  return both(INTEGER, first, last) ? integers(first, last, by, most) : "this sequence";
}

function integers(first: string, last: string, by: number, most: number): string[] | string {
  const values = range(Number(first), Number(last), by, most + 1);
  const padding = PADDED.test(first) || PADDED.test(last);
  const width = padding ? Math.max(first.length, last.length) : 0;
  return values.length > most ? "too many words from braces" : values.map((value) => padded(value, width));
}

const both = (pattern: RegExp, first: string, last: string): boolean =>
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
