import { readQuoted } from "./quoted.ts";

/** A literal of JSON or Python as it stands in a text. */
export type Literal =
  | {
      readonly ok: true;
      readonly value: unknown;
      readonly end: number;
      readonly repaired: boolean;
      readonly atEnd: boolean;
    }
  | { readonly ok: false; readonly at: number; readonly cut: boolean; readonly twice: boolean };

const DEEPEST = 64;
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
 * The literal at `start`. Lossless liberties are taken: Python's words and quotes, trailing commas, raw newlines.
 * Inventions are marked as repairs: bare keys, quotes, escapes, one bracket that is missing at the very end.
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
  /** The missing bracket is missing because the text ends. */
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
    if (this.#depth > DEEPEST) throw new Unreadable(this.at, false);
    this.at += 1;
  }

  /** Past the closer, or before the next member. */
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

  /** Only the outermost bracket may be missing, and only where the text or its wrapper ends. */
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
