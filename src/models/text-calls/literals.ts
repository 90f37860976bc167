import { CUT, type NotationCall, type NotationResult } from "./text-protocol.ts";

/** A JSON or Python literal in a text. */
export type Literal =
  | {
      readonly ok: true;
      readonly value: unknown;
      readonly end: number;
      readonly repaired: boolean;
      readonly atEnd: boolean;
    }
  | { readonly ok: false; readonly at: number; readonly cut: boolean; readonly twice: boolean };

const MAX_DEPTH = 64;
const NUMBER = /-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])/y;
const WORD = /(?:true|false|null|True|False|None)(?!\w)/y;
const KEY = /[A-Za-z_]\w*(?=\s*:)/y;
const WORDS: Readonly<Record<string, unknown>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  null: null,
  None: null,
};

class Unreadable {
  readonly at: number;
  readonly cut: boolean;
  readonly twice: boolean;
  constructor(at: number, cut: boolean, twice = false) {
    this.at = at;
    this.cut = cut;
    this.twice = twice;
  }
}

/**
 * The literal at `start`. Accepts deviations that lose nothing: Python's words and quotes, trailing commas, raw
 * newlines. Marks guesses as repairs: bare keys, quotes, escapes, one missing bracket at the very end.
 */
export function readLiteral(text: string, start: number, python = false): Literal {
  const reader = new LiteralReader(text, start, python);
  try {
    const value = reader.value();
    return { ok: true, value, end: reader.at, repaired: reader.repaired, atEnd: reader.atEnd };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { ok: false, at: error.at, cut: error.cut, twice: error.twice };
  }
}

class LiteralReader {
  at: number;
  repaired = false;
  /** The bracket is missing because the text ends. */
  atEnd = false;
  readonly #text: string;
  readonly #python: boolean;
  #depth = 0;

  constructor(text: string, start: number, python: boolean) {
    this.#text = text;
    this.at = start;
    this.#python = python;
  }

  value(): unknown {
    this.#space();
    const char = this.#text[this.at];
    if (char === "{") return this.#object();
    if (char === "[") return this.#array();
    if (char === '"' || char === "'") return this.#string();
    if (this.#python && /[rR]/.test(char ?? "") && /["']/.test(this.#text[this.at + 1] ?? ""))
      return this.#rawString();
    return this.#word();
  }

  #word(): unknown {
    NUMBER.lastIndex = this.at;
    const number = NUMBER.exec(this.#text)?.[0];
    if (number !== undefined) {
      this.at += number.length;
      if (this.at === this.#text.length) this.#fail();
      return Number(number);
    }
    WORD.lastIndex = this.at;
    const word = WORD.exec(this.#text)?.[0];
    if (word === undefined) return this.#fail();
    this.at += word.length;
    return WORDS[word];
  }

  #string(): string {
    const read = readQuoted(this.#text, this.at, this.#python);
    if (read.value === undefined) throw new Unreadable(read.at, read.cut);
    if (read.repaired) this.repaired = true;
    this.at = read.end;
    return read.value;
  }

  #rawString(): string {
    const quote = this.#text[this.at + 1] ?? "";
    const end = this.#text.indexOf(quote, this.at + 2);
    if (end === -1) throw new Unreadable(this.#text.length, true);
    const value = this.#text.slice(this.at + 2, end);
    if (value.endsWith("\\") || value === "") throw new Unreadable(end, false);
    this.at = end + 1;
    return value;
  }

  #object(): Record<string, unknown> {
    const entries = new Map<string, unknown>();
    this.#open();
    while (!this.#closed("}", entries.size > 0)) {
      const at = this.at;
      const key = this.#key();
      this.#space();
      if (this.#text[this.at] !== ":") this.#fail();
      this.at += 1;
      const value = this.value();
      if (entries.has(key) && !same(entries.get(key), value)) throw new Unreadable(at, false, true);
      entries.set(key, value);
    }
    return Object.fromEntries(entries);
  }

  #key(): string {
    const char = this.#text[this.at];
    if (char === '"' || char === "'") return this.#string();
    KEY.lastIndex = this.at;
    const bare = KEY.exec(this.#text)?.[0];
    if (bare === undefined) return this.#fail();
    this.repaired = true;
    this.at += bare.length;
    return bare;
  }

  #array(): unknown[] {
    const values: unknown[] = [];
    this.#open();
    while (!this.#closed("]", values.length > 0)) values.push(this.value());
    return values;
  }

  #open(): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new Unreadable(this.at, false);
    this.at += 1;
  }

  /** Moves past the closer, or to the next member. */
  #closed(closer: string, comma: boolean): boolean {
    this.#space();
    if (comma && this.#text[this.at] === ",") {
      this.at += 1;
      this.#space();
      if (this.#text[this.at] !== closer) return false;
    } else if (comma && this.#text[this.at] !== closer) return this.#missing();
    if (this.#text[this.at] !== closer) return false;
    this.at += 1;
    this.#depth -= 1;
    return true;
  }

  /** Only the outermost bracket may be missing, and only at the end of the text or of its wrapper. */
  #missing(): boolean {
    const char = this.#text[this.at];
    const over = char === undefined || char === "<" || this.#text.startsWith("```", this.at);
    if (!over || this.#depth > 1) return this.#fail();
    if (char === undefined) this.atEnd = true;
    this.repaired = true;
    this.#depth -= 1;
    return true;
  }

  #space(): void {
    while (/\s/.test(this.#text[this.at] ?? "x")) this.at += 1;
  }

  #fail(): never {
    const rest = this.#text.slice(this.at, this.at + 12);
    const cut = this.at + rest.length === this.#text.length && /^[\w.+-]*$/.test(rest);
    throw new Unreadable(this.at, cut);
  }
}

export const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const HEAD = /(?:print\s*\(\s*)?([A-Za-z_][\w.-]{0,79})\s*\(/y;
const KEYWORD = /\s*([A-Za-z_]\w*)\s*=(?!=)\s*/y;
const LITERALS = 'arguments must be plain values with their names, as in f(path="a")';

/** One `name(key=literal, …)`, with or without `print(…)` around it. */
export function readPythonCall(text: string, start: number): NotationResult {
  HEAD.lastIndex = start;
  const head = HEAD.exec(text);
  const name = head?.[1];
  if (head === null || name === undefined || name === "print") return { kind: "text", end: start };
  const call = new PythonCall(text, HEAD.lastIndex);
  const fault = call.read() ?? (head[0].startsWith("print") ? call.closing() : undefined);
  if (fault === undefined) {
    const found = [{ name, args: Object.fromEntries(call.args), repaired: false }];
    return { kind: "calls", found, end: call.at, cut: false };
  }
  const cut = fault === CUT;
  const found = [{ name, args: {}, repaired: false, broken: fault }];
  return { kind: "calls", found, end: cut ? text.length : lineEnd(text, call.at), cut };
}

class PythonCall {
  at: number;
  readonly args = new Map<string, unknown>();
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** The fault, or undefined. */
  read(): string | undefined {
    const text = this.#text;
    for (;;) {
      this.at = skipSpace(text, this.at);
      if (text[this.at] === ")") return this.closing();
      const fault = this.#argument();
      if (fault !== undefined) return fault;
      this.at = skipSpace(text, this.at);
      if (text[this.at] === ",") this.at += 1;
      else if (text[this.at] !== ")") return this.#fault();
    }
  }

  closing(): string | undefined {
    this.at = skipSpace(this.#text, this.at);
    if (this.#text[this.at] !== ")") return this.#fault();
    this.at += 1;
    return undefined;
  }

  #argument(): string | undefined {
    KEYWORD.lastIndex = this.at;
    const key = KEYWORD.exec(this.#text)?.[1];
    if (key === undefined) return this.#fault();
    const read = readLiteral(this.#text, KEYWORD.lastIndex, true);
    this.at = read.ok ? read.end : read.at;
    if (!read.ok) return read.cut ? CUT : LITERALS;
    if (this.args.has(key)) return `the argument ${key} is given twice`;
    if (read.repaired) return read.atEnd ? CUT : LITERALS;
    this.args.set(key, read.value);
    return undefined;
  }

  #fault(): string {
    return this.at >= this.#text.length ? CUT : LITERALS;
  }
}

/** `[f(a=1), g()]`. */
export function readPythonList(text: string, start: number): NotationResult {
  const found: NotationCall[] = [];
  let at = skipSpace(text, start + 1);
  for (;;) {
    const read = readPythonCall(text, at);
    if (read.kind !== "calls") return readListEnd(text, at, start, found);
    found.push(...read.found);
    if (read.cut || read.found.some((each) => each.broken !== undefined)) return { ...read, found };
    at = skipSpace(text, read.end);
    const comma = text[at] === ",";
    if (comma) at = skipSpace(text, at + 1);
    if (text[at] === "]") return { kind: "calls", found, end: at + 1, cut: false };
    if (at >= text.length) return { kind: "calls", found: cutOff(found), end: at, cut: true };
    if (!comma) return { kind: "text", end: at };
  }
}

/** Text that is not a call, unless it is the beginning of one that the end of the text cuts off. */
function readListEnd(
  text: string,
  at: number,
  start: number,
  found: readonly NotationCall[],
): NotationResult {
  const rest = text.slice(at, at + 90);
  if (rest.length === 90 || !/^[\w.-]*\s*$/.test(rest)) return { kind: "text", end: start + 1 };
  const last = { name: rest.trim(), args: {}, repaired: true, broken: CUT };
  return { kind: "calls", found: [...cutOff(found), last], end: text.length, cut: true };
}

/** A list without its end may have lost calls, so none of its calls counts as whole. */
const cutOff = (found: readonly NotationCall[]): readonly NotationCall[] =>
  found.map((each) => ({ ...each, repaired: true }));

export function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return at;
    at += 1;
  }
}

export function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

/** A string literal in a text. */
type Quoted =
  | { readonly value: string; readonly end: number; readonly repaired: boolean }
  | { readonly value: undefined; readonly at: number; readonly cut: boolean };

const PLAIN: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};
const CLOSED = /[,:}\])\n\r<`]|$/y;

/**
 * Reads the string that begins at `start`. Keeps raw newlines. An unknown escape stands for itself in Python and is a
 * repair in JSON, as is an unescaped quote inside the string.
 */
export function readQuoted(text: string, start: number, python: boolean): Quoted {
  const quote = text[start] ?? "";
  const triple = text.startsWith(quote.repeat(3), start);
  if (triple) return readTriple(text, start, quote);
  const parts: string[] = [];
  let [from, at, repaired] = [start + 1, start + 1, false];
  for (;;) {
    const char = text[at];
    if (char === undefined) return { value: undefined, at, cut: true };
    if (char === quote) {
      if (python || closes(text, at + 1)) {
        parts.push(asWritten(text.slice(from, at)));
        return { value: parts.join(""), end: at + 1, repaired };
      }
      repaired = true;
    }
    if (char !== "\\") {
      at += 1;
      continue;
    }
    parts.push(asWritten(text.slice(from, at)));
    const escape = readEscape(text, at, python || quote === "'");
    if (escape === undefined) return { value: undefined, at, cut: at + 10 > text.length };
    if (escape.invented) repaired = true;
    parts.push(escape.value);
    at = escape.end;
    from = at;
  }
}

/** Normalizes the reply's own line ends; line ends written as escapes stay as they are. */
const asWritten = (raw: string): string => raw.replaceAll("\r\n", "\n");

/** A quote closes the string only if the text after it can follow a string, or the line ends. */
function closes(text: string, after: number): boolean {
  let at = after;
  while (text[at] === " " || text[at] === "\t") at += 1;
  CLOSED.lastIndex = at;
  return CLOSED.test(text);
}

function readTriple(text: string, start: number, quote: string): Quoted {
  const end = text.indexOf(quote.repeat(3), start + 3);
  if (end === -1) return { value: undefined, at: text.length, cut: true };
  const raw = text.slice(start + 3, end);
  if (!raw.includes("\\")) return { value: asWritten(raw), end: end + 3, repaired: false };
  const parts: string[] = [];
  for (let at = 0; at < raw.length;) {
    const next = raw.indexOf("\\", at);
    parts.push(asWritten(raw.slice(at, next === -1 ? raw.length : next)));
    if (next === -1) break;
    const escape = readEscape(raw, next, true);
    if (escape === undefined) return { value: undefined, at: start, cut: false };
    parts.push(escape.value);
    at = escape.end;
  }
  return { value: parts.join(""), end: end + 3, repaired: false };
}

interface Escape {
  readonly value: string;
  readonly end: number;
  readonly invented: boolean;
}

function readEscape(text: string, at: number, python: boolean): Escape | undefined {
  const char = text[at + 1];
  if (char === undefined) return undefined;
  const plain = python && char === "/" ? undefined : PLAIN[char];
  if (plain !== undefined) return { value: plain, end: at + 2, invented: false };
  const digits = char === "u" ? 4 : python ? (PYTHON_DIGITS[char] ?? 0) : 0;
  if (digits > 0) return readCode(text, at + 2, digits);
  if (python && char === "\n") return { value: "", end: at + 2, invented: false };
  return { value: `\\${char}`, end: at + 2, invented: !python };
}

const PYTHON_DIGITS: Readonly<Record<string, number>> = { x: 2, U: 8 };

function readCode(text: string, from: number, digits: number): Escape | undefined {
  const hex = text.slice(from, from + digits);
  if (!/^[0-9a-fA-F]+$/.test(hex) || hex.length < digits) return undefined;
  const code = Number.parseInt(hex, 16);
  if (code > 0x10_ff_ff) return undefined;
  const value = digits === 4 ? String.fromCharCode(code) : String.fromCodePoint(code);
  return { value, end: from + digits, invented: false };
}
