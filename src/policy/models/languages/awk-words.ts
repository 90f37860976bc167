import { plainEnd, regexEnd } from "./delimited.ts";

/** A token of an awk program. `glued`: nothing stands between it and the next one. */
export interface AwkWord {
  readonly kind: "name" | "string" | "regex" | "number" | "sign" | "newline";
  /** Of strings and regular expressions what stands between the delimiters, as written. */
  readonly text: string;
  readonly glued: boolean;
}

/** The tokens of a program, or null where implementations of awk may read it in different ways. Linear. */
export function awkWords(program: string): readonly AwkWord[] | null {
  const words: AwkWord[] = [];
  const brackets = new Brackets();
  let at = 0;
  for (;;) {
    const from = at;
    at = skipSpace(program, at);
    if (at === -1) return null;
    const last = words.at(-1);
    if (last !== undefined && at > from) words[words.length - 1] = { ...last, glued: false };
    if (at >= program.length) return words;
    const word = wordAt(program, at, () => dividesAfter(last, brackets.condition));
    if (word === null) return null;
    brackets.take(word, last);
    const quotes = word.kind === "string" || word.kind === "regex" ? 2 : 0;
    at += word.text.length + quotes;
    words.push(word);
  }
}

/** Knows whether the last closing bracket ended a condition, behind which a statement begins. */
class Brackets {
  condition = false;
  private readonly open: boolean[] = [];

  take({ kind, text }: AwkWord, before: AwkWord | undefined): void {
    if (kind !== "sign") return;
    if (text === "(") this.open.push(before?.kind === "name" && CONDITIONS.has(before.text));
    else if (text === ")") this.condition = this.open.pop() ?? true;
  }
}

const CONDITIONS = new Set(["if", "while", "for", "switch"]);

/** Past blanks, comments and continued lines. */
function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const char = text.charAt(at);
    if (char === " " || char === "\t") at += 1;
    else if (char === "\\" && text.charAt(at + 1) === "\n") at += 2;
    else if (char === "#") {
      const newline = text.indexOf("\n", at);
      const end = newline === -1 ? text.length : newline;
      if (text.charAt(end - 1) === "\\") return -1;
      at = end;
    } else return at;
  }
}

const SIGNS = new Set("|| && |& >> >= <= == != ++ -- += -= *= /= %= ^= **".split(" "));
const SINGLE = "+-*/%^!~?:;,$()[]{}<>=|";
const isDigit = (char: string): boolean => char >= "0" && char <= "9";
const isName = (char: string): boolean =>
  (char >= "a" && char <= "z") || (char >= "A" && char <= "Z") || char === "_" || isDigit(char);

function wordAt(text: string, at: number, divides: () => boolean | null): AwkWord | null {
  const char = text.charAt(at);
  if (char === "\n") return { kind: "newline", text: char, glued: false };
  if (char === '"') return quoted("string", text, at, plainEnd(text, at + 1, '"'));
  if (isDigit(char) || (char === "." && isDigit(text.charAt(at + 1)))) return number(text, at);
  if (isName(char)) {
    let end = at + 1;
    while (end < text.length && isName(text.charAt(end))) end += 1;
    return { kind: "name", text: text.slice(at, end), glued: true };
  }
  if (char === "/") {
    const divided = divides();
    if (divided === null) return null;
    if (!divided) return quoted("regex", text, at, regexEnd(text, at + 1, "/"));
  }
  return sign(text, at);
}

function sign(text: string, at: number): AwkWord | null {
  const two = text.slice(at, at + 2);
  const one = text.charAt(at);
  if (SIGNS.has(two)) return { kind: "sign", text: two, glued: true };
  return SINGLE.includes(one) ? { kind: "sign", text: one, glued: true } : null;
}

function quoted(kind: "string" | "regex", text: string, at: number, end: number): AwkWord | null {
  return end === -1 ? null : { kind, text: text.slice(at + 1, end), glued: true };
}

function number(text: string, at: number): AwkWord {
  let end = at;
  while (end < text.length && (isDigit(text.charAt(end)) || text.charAt(end) === ".")) end += 1;
  return { kind: "number", text: text.slice(at, end), glued: true };
}

const BEFORE_REGEX = new Set("print printf return case else do".split(" "));
const LITERALS: ReadonlySet<AwkWord["kind"]> = new Set(["string", "number"]);
/** After these, a slash is one thing to some implementations and another to others. */
const UNCLEAR = new Set("length getline in BEGIN END ++ -- $".split(" "));

/** Whether a slash after this word divides; null where that is not sure. */
function dividesAfter(before: AwkWord | undefined, condition: boolean): boolean | null {
  if (before === undefined || before.kind === "newline") return false;
  const { kind, text } = before;
  if (kind === "regex") return null;
  if (LITERALS.has(kind)) return true;
  if (kind === "name") return UNCLEAR.has(text) ? null : !BEFORE_REGEX.has(text);
  if (text === ")") return condition ? null : true;
  return UNCLEAR.has(text) ? null : text === "]";
}
