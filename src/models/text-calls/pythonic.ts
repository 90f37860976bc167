import { readLiteral } from "./literals.ts";
import { CUT, type Found, type Outcome } from "./reading.ts";

const HEAD = /(?:print\s*\(\s*)?([A-Za-z_][\w.-]{0,79})\s*\(/y;
const KEYWORD = /\s*([A-Za-z_]\w*)\s*=(?!=)\s*/y;
const LITERALS = 'arguments must be plain values with their names, as in f(path="a")';

/** One `name(key=literal, …)`, with `print(…)` round it or without. */
export function readPythonCall(text: string, start: number): Outcome {
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

  /** The fault, if there is one. */
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
export function readPythonList(text: string, start: number): Outcome {
  const found: Found[] = [];
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

/** Something that is no call, unless it is the beginning of one that the end cuts. */
function readListEnd(text: string, at: number, start: number, found: readonly Found[]): Outcome {
  const rest = text.slice(at, at + 90);
  if (rest.length === 90 || !/^[\w.-]*\s*$/.test(rest)) return { kind: "text", end: start + 1 };
  const last = { name: rest.trim(), args: {}, repaired: true, broken: CUT };
  return { kind: "calls", found: [...cutOff(found), last], end: text.length, cut: true };
}

/** A list whose end is missing may have lost calls, so that none of it is whole. */
const cutOff = (found: readonly Found[]): readonly Found[] =>
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
