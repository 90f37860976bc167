import { readQuoted } from "./quoted.ts";
import { CUT, type Found, GARBLED, type Outcome } from "./reading.ts";
import { readPythonCall, skipSpace } from "./pythonic.ts";

const HEAD = /call:([A-Za-z_][\w.-]{0,79})\s*([{(])/y;
const KEY = /\s*["']?([A-Za-z_]\w*)["']?\s*:\s*/y;
const QUOTES = ['<|"|>', "<escape>"] as const;
const PLAIN = /(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?=\s*[,}\]])/y;
const DEEPEST = 16;

/** `call:N{key:<|"|>text<|"|>,other:true}` of Gemma, with its own quotes; or `call:N(key="text")`. */
export function readGemmaCall(text: string, start: number): Outcome {
  HEAD.lastIndex = start;
  const head = HEAD.exec(text);
  const name = head?.[1];
  if (head === null || name === undefined) return { kind: "text", end: start + 1 };
  if (head[2] === "(") return readPythonCall(text, start + "call:".length);
  const reader = new GemmaReader(text, HEAD.lastIndex);
  const args = reader.members(0);
  const found: Found[] =
    args === undefined
      ? [{ name, args: {}, repaired: false, broken: reader.cut ? CUT : (reader.reason ?? GARBLED) }]
      : [{ name, args, repaired: false }];
  return { kind: "calls", found, end: reader.cut ? text.length : reader.at, cut: reader.cut };
}

class GemmaReader {
  at: number;
  reason: string | undefined;
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  get cut(): boolean {
    return this.at >= this.#text.length;
  }

  /** The members up to the closing brace; undefined when they cannot be read. */
  members(depth: number): Record<string, unknown> | undefined {
    const args = new Map<string, unknown>();
    for (;;) {
      this.at = skipSpace(this.#text, this.at);
      if (this.#text[this.at] === "}") {
        this.at += 1;
        return Object.fromEntries(args);
      }
      KEY.lastIndex = this.at;
      const key = KEY.exec(this.#text)?.[1];
      if (key === undefined) return this.#fail();
      this.at = KEY.lastIndex;
      const value = this.#value(depth);
      if (value === undefined) return undefined;
      if (args.has(key)) {
        this.reason = `the argument ${key} is given twice`;
        return undefined;
      }
      args.set(key, value.value);
      if (!this.#more("}")) return undefined;
    }
  }

  #more(closer: string): boolean {
    this.at = skipSpace(this.#text, this.at);
    if (this.#text[this.at] === ",") this.at += 1;
    else if (this.#text[this.at] !== closer) return this.#fail() !== undefined;
    return true;
  }

  #value(depth: number): { value: unknown } | undefined {
    const text = this.#text;
    const quote = QUOTES.find((each) => text.startsWith(each, this.at));
    if (quote !== undefined) return this.#quoted(quote);
    const char = text[this.at];
    if (char === '"' || char === "'") return this.#plainString();
    if ((char === "{" || char === "[") && depth < DEEPEST) {
      this.at += 1;
      const inner = char === "{" ? this.members(depth + 1) : this.#list(depth + 1);
      return inner === undefined ? undefined : { value: inner };
    }
    PLAIN.lastIndex = this.at;
    const plain = PLAIN.exec(text)?.[0];
    if (plain === undefined) {
      if (!/[,}\]\n]/.test(text.slice(this.at, this.at + 200))) this.at = text.length;
      return this.#fail();
    }
    this.at = PLAIN.lastIndex;
    return { value: JSON.parse(plain) as unknown };
  }

  #quoted(quote: string): { value: string } | undefined {
    const end = this.#text.indexOf(quote, this.at + quote.length);
    if (end === -1) {
      this.at = this.#text.length;
      return undefined;
    }
    const value = this.#text.slice(this.at + quote.length, end);
    this.at = end + quote.length;
    return { value };
  }

  #plainString(): { value: string } | undefined {
    const read = readQuoted(this.#text, this.at, false);
    if (read.value === undefined || read.repaired) {
      this.at = read.value === undefined ? (read.cut ? this.#text.length : read.at) : read.end;
      return undefined;
    }
    this.at = read.end;
    return { value: read.value };
  }

  #list(depth: number): unknown[] | undefined {
    const values: unknown[] = [];
    for (;;) {
      this.at = skipSpace(this.#text, this.at);
      if (this.#text[this.at] === "]") {
        this.at += 1;
        return values;
      }
      const value = this.#value(depth);
      if (value === undefined) return undefined;
      values.push(value.value);
      if (!this.#more("]")) return undefined;
    }
  }

  #fail(): undefined {
    return undefined;
  }
}
