import type { Arg, FoundEffect, Use, UseReader } from "./program-model.ts";
import { plainEnd, regexEnd } from "./sed-program.ts";

/** A token of an awk program. `glued`: no blank stands between it and the next one. */
interface AwkWord {
  readonly kind: "name" | "string" | "regex" | "number" | "sign" | "newline";
  /** For strings and regular expressions the source text between the delimiters. */
  readonly text: string;
  readonly glued: boolean;
}

/** The tokens of a program; null where implementations of awk may disagree. Linear. */
function awkWords(program: string): readonly AwkWord[] | null {
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

/** Tracks whether the last closing bracket ended a condition, after which a statement starts. */
class Brackets {
  condition = false;
  readonly #open: boolean[] = [];

  take({ kind, text }: AwkWord, before: AwkWord | undefined): void {
    if (kind !== "sign") return;
    if (text === "(") this.#open.push(before?.kind === "name" && CONDITIONS.has(before.text));
    else if (text === ")") this.condition = this.#open.pop() ?? true;
  }
}

const CONDITIONS = new Set(["if", "while", "for", "switch"]);

/** Skips blanks, comments and continued lines. */
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
/** After these words, implementations disagree on what a slash is. */
const UNCLEAR = new Set("length getline in BEGIN END ++ -- $".split(" "));

/** Whether a slash after this word is a division; null where that is uncertain. */
function dividesAfter(before: AwkWord | undefined, condition: boolean): boolean | null {
  if (before === undefined || before.kind === "newline") return false;
  const { kind, text } = before;
  if (kind === "regex") return null;
  if (LITERALS.has(kind)) return true;
  if (kind === "name") return UNCLEAR.has(text) ? null : !BEFORE_REGEX.has(text);
  if (text === ")") return condition ? null : true;
  return UNCLEAR.has(text) ? null : text === "]";
}

/**
 * Effects of an awk program beyond computing and printing. `command`: a shell text that it runs; `filters`: the text only
 * orders or cuts what is printed. `unknown`: something that is not understood.
 */
type AwkDeed =
  | { readonly kind: "read" | "write"; readonly path: string }
  | { readonly kind: "command"; readonly text: string; readonly filters: boolean }
  | { readonly kind: "environment" }
  | { readonly kind: "unknown" };

/** Null where the program is not understood at all. */
export function awkDeeds(program: string): readonly AwkDeed[] | null {
  const words = awkWords(program);
  return words === null ? null : new ProgramReader(words).read();
}

const FORBIDDEN = new Set("system ARGV ARGC SYMTAB FUNCTAB".split(" "));
const KEYWORDS = new Set(
  "if while for switch return in print printf getline delete exit case else do function func".split(" "),
);
const BUILTINS = new Set(
  `length substr index split sub gsub gensub match sprintf tolower toupper sin cos atan2 exp log sqrt int rand srand
  close fflush systime strftime mktime asort asorti patsplit strtonum and or xor lshift rshift compl isarray typeof`.split(
    /\s+/,
  ),
);
/** Commands that order or cut what they are given, with options that take no path. */
const FILTER =
  /^(?:sort|uniq|head|tail|wc|cat|tac|nl|column)(?: -(?:[bcdfghiklMnrstuVwx\d]+|[kt] ?[\w.,:]+))*$/;
const UNKNOWN_DEED: AwkDeed = { kind: "unknown" };
const END: AwkWord = { kind: "newline", text: "\n", glued: false };

class ProgramReader {
  readonly #deeds: AwkDeed[] = [];
  readonly #defined = new Set<string>();
  /** Bracket depth at which the current `print` began; null outside of one. */
  #printing: number | null = null;
  #depth = 0;
  readonly #words: readonly AwkWord[];

  constructor(words: readonly AwkWord[]) {
    this.#words = words;
  }

  read(): readonly AwkDeed[] {
    for (const [at, { text }] of this.#words.entries())
      if (text === "function" || text === "func") this.#defined.add(this.#word(at + 1).text);
    for (const [at, word] of this.#words.entries()) {
      if (word.kind === "name") this.#name(word, at);
      else if (word.kind === "sign") this.#sign(word.text, at);
      else if (word.kind === "newline" && this.#endsLine(at)) this.#printing = null;
    }
    return this.#deeds;
  }

  #word(at: number): AwkWord {
    return this.#words[at] ?? END;
  }

  #isSign(at: number, ...signs: readonly string[]): boolean {
    const { kind, text } = this.#word(at);
    return kind === "sign" && signs.includes(text);
  }

  /** A statement continues on the next line after a comma and the like, and inside of brackets. */
  #endsLine(at: number): boolean {
    const { kind, text } = this.#word(at - 1);
    return (
      this.#depth === (this.#printing ?? 0) &&
      (kind !== "sign" ||
        text === ")" ||
        text === "]" ||
        text === "++" ||
        text === "--" ||
        text === ";" ||
        text === "}")
    );
  }

  #name({ text, glued }: AwkWord, at: number): void {
    if (text === "system" && this.#isSign(at + 1, "(") && this.#isSign(at + 3, ")"))
      this.#command(at + 2, false);
    else if (FORBIDDEN.has(text)) this.#deeds.push(UNKNOWN_DEED);
    else if (text === "ENVIRON") this.#deeds.push({ kind: "environment" });
    else if (text === "print" || text === "printf") this.#printing = this.#depth;
    else if (text === "getline") this.#getline(at);
    else if (glued && this.#isSign(at + 1, "(") && !this.#isFunction(text)) this.#deeds.push(UNKNOWN_DEED);
  }

  #isFunction(name: string): boolean {
    return BUILTINS.has(name) || KEYWORDS.has(name) || this.#defined.has(name);
  }

  #sign(text: string, at: number): void {
    switch (text) {
      case "(":
        this.#depth += 1;
        return;
      case ")":
        this.#depth -= 1;
        if (this.#printing !== null && this.#depth < this.#printing) this.#printing = null;
        return;
      case ";":
      case "}":
        if (this.#depth <= (this.#printing ?? 0)) this.#printing = null;
        return;
      case "|":
      case "|&":
        this.#pipe(at);
        return;
      case ">>":
        this.#file("write", at + 1);
        return;
      case ">":
        if (this.#printing === this.#depth) this.#file("write", at + 1);
    }
  }

  /** `print | "command"` and `"command" | getline`. */
  #pipe(at: number): void {
    if (this.#word(at + 1).text === "getline") this.#command(at - 1, false);
    else if (this.#endsStatement(at + 2)) this.#command(at + 1, this.#printing !== null);
    else this.#deeds.push(UNKNOWN_DEED);
  }

  /** A command given by a single string literal. */
  #command(at: number, isFed: boolean): void {
    const { kind, text } = this.#word(at);
    const plain = kind === "string" && text !== "" && !text.includes("\\");
    this.#deeds.push(plain ? { kind: "command", text, filters: isFed && FILTER.test(text) } : UNKNOWN_DEED);
  }

  /** `getline`, `getline name`, and both with `< "file"`. */
  #getline(at: number): void {
    const next = this.#word(at + 1).kind === "name" ? at + 2 : at + 1;
    if (this.#isSign(next, "<")) this.#file("read", next + 1);
    else if (!this.#endsStatement(next)) this.#deeds.push(UNKNOWN_DEED);
  }

  /** A file given by a single string literal. */
  #file(kind: "read" | "write", at: number): void {
    const { kind: what, text } = this.#word(at);
    const plain = what === "string" && text !== "" && !text.includes("\\") && this.#endsStatement(at + 1);
    this.#deeds.push(plain ? { kind, path: text } : UNKNOWN_DEED);
  }

  #endsStatement(at: number): boolean {
    return this.#word(at).kind === "newline" || this.#isSign(at, ";", "}", ")");
  }
}

const TEXTS: ReadonlySet<string> = new Set(["-e", "--source"]);
const VARIABLES: ReadonlySet<string> = new Set(["-v", "--assign"]);
const FILES: ReadonlySet<string> = new Set(["-f", "--file", "-E", "--exec", "-i", "--include"]);
/** Values of mawk's `-W` that are harmless or print its version. */
const MAWK_SETTINGS: ReadonlySet<string> = new Set([
  "version",
  "help",
  "usage",
  "posix",
  "interactive",
  "v",
  "V",
]);

function programEffects(use: Use): readonly FoundEffect[] {
  const { options, operands } = use;
  const optionTexts = options.flatMap(({ name, value }) =>
    TEXTS.has(name) && value !== null ? [value] : [],
  );
  const files = options.some(({ name }) => FILES.has(name));
  const programs = optionTexts.length > 0 || files ? optionTexts : operands.slice(0, 1);
  const others = files && optionTexts.length === 0 ? operands.slice(0, 1) : [];
  return [
    ...others.map(({ span, ...arg }) => ({ kind: "read", path: use.place({ span, ...arg }), span }) as const),
    ...optionDoubts(use),
    ...operands
      .filter(({ value }) => /^ARG[CV]=/.test(value))
      .map((arg) => use.doubt("operand.unknown", arg)),
    ...textEffects(programs, use),
  ];
}

function optionDoubts(use: Use): readonly FoundEffect[] {
  return use.options.flatMap(({ name, value }) => {
    if (value === null) return [];
    if (name === "-W" && !MAWK_SETTINGS.has(value.value))
      return [use.doubt("option.unknown", value, `-W ${value.value}`)];
    if (!VARIABLES.has(name)) return [];
    // An unquoted unknown value could become several words, and the second one a program.
    if (value.loose === true || value.kind === "glob") return [use.doubt("word.dynamic", value)];
    return /^[A-Za-z_]\w*=/.test(value.value) && !value.value.startsWith("ARG")
      ? []
      : [use.doubt("operand.unknown", value)];
  });
}

/** Several program texts are joined, each on a line of its own. */
function textEffects(texts: readonly Arg[], use: Use): readonly FoundEffect[] {
  const [first] = texts;
  if (first === undefined) return [];
  const open = texts.find(({ kind }) => kind !== "literal");
  if (open !== undefined)
    return [use.doubt(open.kind === "glob" ? "language.unknown" : "word.dynamic", open)];
  const deeds = awkDeeds(texts.map(({ value }) => value).join("\n"));
  if (deeds === null) return [use.doubt("language.unknown", first)];
  const known = deeds.every((deed) => deed.kind !== "unknown" && (deed.kind !== "command" || deed.filters));
  return [
    ...(known ? [] : [use.doubt("language.unknown", first)]),
    ...deeds.flatMap((deed) => deedEffects(deed, first, { use, known })),
  ];
}

interface DeedAt {
  readonly use: Use;
  /** The whole program is understood; of another one only the dangers count. */
  readonly known: boolean;
}

function deedEffects(deed: AwkDeed, { span }: Arg, { use, known }: DeedAt): readonly FoundEffect[] {
  switch (deed.kind) {
    case "environment":
      return known ? [{ kind: "read", path: "/proc/self/environ", span }] : [];
    case "read":
    case "write":
      return known
        ? [{ kind: deed.kind, path: use.place({ kind: "literal", value: deed.path, span }), span }]
        : [];
    case "command":
      return deed.filters ? [] : use.shell({ kind: "literal", value: deed.text, span });
    case "unknown":
      return [];
  }
}

/** The readers of this file, by the names that rows use. */
export const AWK_READERS: Readonly<Record<string, UseReader>> = {
  awk: programEffects,
};
