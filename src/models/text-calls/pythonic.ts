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
  let at = HEAD.lastIndex;
  const args = new Map<string, unknown>();
  const broken = (reason: string, end: number, cut = false): Outcome => ({
    kind: "calls",
    found: [{ name, args: {}, repaired: false, broken: reason }],
    end,
    cut,
  });
  for (;;) {
    at = skipSpace(text, at);
    if (text[at] === ")") break;
    KEYWORD.lastIndex = at;
    const key = KEYWORD.exec(text)?.[1];
    if (key === undefined)
      return broken(at >= text.length ? CUT : LITERALS, lineEnd(text, at), at >= text.length);
    const read = readLiteral(text, KEYWORD.lastIndex, true);
    if (!read.ok)
      return broken(read.cut ? CUT : LITERALS, read.cut ? text.length : lineEnd(text, read.at), read.cut);
    if (args.has(key)) return broken(`the argument ${key} is given twice`, lineEnd(text, read.end));
    if (read.repaired) return broken(LITERALS, lineEnd(text, read.end), read.atEnd);
    args.set(key, read.value);
    at = skipSpace(text, read.end);
    if (text[at] === ",") at += 1;
    else if (text[at] !== ")")
      return broken(at >= text.length ? CUT : LITERALS, lineEnd(text, at), at >= text.length);
  }
  at += 1;
  if (head[0].startsWith("print")) {
    at = skipSpace(text, at);
    if (text[at] !== ")")
      return broken(at >= text.length ? CUT : LITERALS, lineEnd(text, at), at >= text.length);
    at += 1;
  }
  return {
    kind: "calls",
    found: [{ name, args: Object.fromEntries(args), repaired: false }],
    end: at,
    cut: false,
  };
}

/** `[f(a=1), g()]`. */
export function readPythonList(text: string, start: number): Outcome {
  const found: Found[] = [];
  let at = skipSpace(text, start + 1);
  for (;;) {
    const read = readPythonCall(text, at);
    if (read.kind !== "calls") {
      const rest = text.slice(at, at + 90);
      if (rest.length === 90 || !/^[\w.-]*\s*$/.test(rest)) return { kind: "text", end: start + 1 };
      const last = { name: rest.trim(), args: {}, repaired: true, broken: CUT };
      return { kind: "calls", found: [...cutOff(found), last], end: text.length, cut: true };
    }
    found.push(...read.found);
    if (read.cut || read.found.some((each) => each.broken !== undefined)) return { ...read, found };
    at = skipSpace(text, read.end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
    if (text[at] === "]") return { kind: "calls", found, end: at + 1, cut: false };
    if (at >= text.length) return { kind: "calls", found: cutOff(found), end: at, cut: true };
    if (text[at - 1] !== "," && !/\s/.test(text[at - 1] ?? "")) return { kind: "text", end: at };
  }
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
