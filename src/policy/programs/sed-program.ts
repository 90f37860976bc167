import type { Arg, FoundEffect, UseReader, Use } from "./program-model.ts";

/** Effects of a sed script beyond editing its input. `input`: it runs its input as commands. */
type SedDeed =
  | { readonly kind: "read" | "write" | "runs"; readonly text: string }
  | { readonly kind: "input" };

/** All effects of the script; null where any part of it is not understood. Linear. */
export function sedDeeds(script: string): readonly SedDeed[] | null {
  const reader = new ScriptReader(script);
  return reader.read() ? reader.deeds : null;
}

const PLAIN = "=dDgGhHnNpPxzF";
const COUNTED = "lLqQ";
const SCRIPT_FILES: Readonly<Record<string, "read" | "write">> = {
  r: "read",
  R: "read",
  w: "write",
  W: "write",
};
const isDigit = (char: string): boolean => char >= "0" && char <= "9";
const isBlank = (char: string): boolean => char === " " || char === "\t";
const isLabel = (char: string): boolean => /^[\w.-]$/.test(char);
/** Another delimiter may be read in parts, or as something else. */
const isDelimiter = (char: string): boolean => char > " " && char < "\x7f" && char !== "\\";

class ScriptReader {
  readonly deeds: SedDeed[] = [];
  #at = 0;
  #depth = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  read(): boolean {
    for (;;) {
      this.#skip((char) => isBlank(char) || char === ";" || char === "\n");
      if (this.#at >= this.#text.length) return this.#depth === 0;
      if (!this.#addresses()) return false;
      this.#skip((char) => isBlank(char) || char === "!");
      if (!this.#command(this.#next())) return false;
    }
  }

  #here(): string {
    return this.#text.charAt(this.#at);
  }

  #next(): string {
    this.#at += 1;
    return this.#text.charAt(this.#at - 1);
  }

  #skip(takes: (char: string) => boolean): number {
    const from = this.#at;
    while (this.#at < this.#text.length && takes(this.#here())) this.#at += 1;
    return this.#at - from;
  }

  #line(): string {
    const newline = this.#text.indexOf("\n", this.#at);
    const end = newline === -1 ? this.#text.length : newline;
    const rest = this.#text.slice(this.#at, end);
    this.#at = end;
    return rest;
  }

  #addresses(): boolean {
    if (!this.#startsAddress()) return true;
    if (!this.#address()) return false;
    this.#skip(isBlank);
    if (this.#here() !== ",") return true;
    this.#at += 1;
    this.#skip(isBlank);
    if (this.#here() !== "+" && this.#here() !== "~") return this.#startsAddress() && this.#address();
    this.#at += 1;
    return this.#skip(isDigit) > 0;
  }

  #startsAddress(): boolean {
    const char = this.#here();
    return isDigit(char) || char === "$" || char === "/" || char === "\\";
  }

  #address(): boolean {
    const char = this.#next();
    if (char === "$") return true;
    if (char === "/") return this.#regex("/");
    if (char === "\\") return this.#regex(this.#next());
    this.#skip(isDigit);
    if (this.#here() !== "~") return true;
    this.#at += 1;
    return this.#skip(isDigit) > 0;
  }

  #regex(delimiter: string): boolean {
    if (!this.#part(delimiter, regexEnd)) return false;
    this.#skip((char) => char === "I" || char === "M");
    return true;
  }

  #part(delimiter: string, endOf: typeof plainEnd): boolean {
    if (!isDelimiter(delimiter)) return false;
    const end = endOf(this.#text, this.#at, delimiter);
    this.#at = end + 1;
    return end !== -1;
  }

  #command(name: string): boolean {
    if (name !== "" && PLAIN.includes(name)) return this.#end();
    if (name !== "" && COUNTED.includes(name)) return this.#counted();
    const file = SCRIPT_FILES[name];
    if (file !== undefined) return this.#file(file);
    switch (name) {
      case "{":
        this.#depth += 1;
        return true;
      case "}":
        this.#depth -= 1;
        return this.#depth >= 0 && this.#end();
      case "#":
        this.#line();
        return true;
      case "s":
        return this.#substitute();
      case "y":
        return this.#translate();
      default:
        return this.#rarer(name);
    }
  }

  #rarer(name: string): boolean {
    if (name === "e") return this.#run();
    if (name === "a" || name === "i" || name === "c") return this.#inserted();
    if (name !== "b" && name !== "t" && name !== "T" && name !== ":" && name !== "v") return false;
    this.#skip(isBlank);
    return (this.#skip(isLabel) > 0 || name !== ":") && this.#end();
  }

  #counted(): boolean {
    this.#skip(isBlank);
    this.#skip(isDigit);
    return this.#end();
  }

  /** Reads what may follow a command. */
  #end(): boolean {
    this.#skip(isBlank);
    const char = this.#here();
    if (char === ";" || char === "\n") this.#at += 1;
    return char === "" || char === ";" || char === "\n" || char === "}" || char === "#";
  }

  #file(kind: "read" | "write"): boolean {
    this.#skip(isBlank);
    const text = this.#line();
    this.deeds.push({ kind, text });
    return text !== "";
  }

  #run(): boolean {
    this.#skip(isBlank);
    const text = this.#line();
    this.deeds.push(text === "" ? { kind: "input" } : { kind: "runs", text });
    return true;
  }

  /** `a`, `i` and `c`: their text extends to the end of the line, and further after a backslash. */
  #inserted(): boolean {
    this.#skip(isBlank);
    if (this.#here() === "\\") {
      this.#at += 1;
      const behind = this.#at;
      this.#skip(isBlank);
      if (this.#here() === "\\") return false;
      // Implementations disagree on a text of blanks: one line, or nothing.
      if (this.#here() === "\n" && this.#at > behind) return false;
      if (this.#here() === "\n") this.#at += 1;
    } else if (this.#here() === "\n") return false;
    // `$a\\` with nothing after it terminates an unterminated last line.
    if (this.#at >= this.#text.length) return this.#text.endsWith("\\");
    for (; this.#at < this.#text.length && this.#here() !== "\n"; this.#at += 1)
      if (this.#here() === "\\") this.#at += 1;
    return this.#at <= this.#text.length;
  }

  #translate(): boolean {
    const delimiter = this.#next();
    return this.#part(delimiter, plainEnd) && this.#part(delimiter, plainEnd) && this.#end();
  }

  #substitute(): boolean {
    const delimiter = this.#next();
    if (!this.#part(delimiter, regexEnd) || !this.#part(delimiter, plainEnd)) return false;
    for (;;) {
      this.#skip((char) => "gpiImM".includes(char) || isDigit(char));
      const char = this.#here();
      if (char !== "e" && char !== "w") return this.#end();
      this.#at += 1;
      if (char === "w") return this.#file("write");
      this.deeds.push({ kind: "input" });
    }
  }
}

const SCRIPTS: ReadonlySet<string> = new Set(["-e", "--expression"]);
const FILES: ReadonlySet<string> = new Set(["-f", "--file"]);

/** Effects of the scripts. `--sandbox` makes sed refuse commands that reach beyond its text. */
function scriptEffects(use: Use): readonly FoundEffect[] {
  const { options, operands } = use;
  const files = options.filter(({ name }) => FILES.has(name));
  const optionScripts = options.flatMap(({ name, value }) =>
    SCRIPTS.has(name) && value !== null ? [value] : [],
  );
  const [first] = operands;
  const scripts = optionScripts.length > 0 || files.length > 0 ? optionScripts : operands.slice(0, 1);
  const found =
    optionScripts.length === 0 && files.length > 0 && first !== undefined ? [firstFile(first, use)] : [];
  // Where POSIXLY_CORRECT is set, options end at the first operand.
  const early = first === undefined ? use.args : use.args.slice(0, use.args.indexOf(first));
  const sandboxed = options.some(({ name }) => name === "--sandbox");
  if (sandboxed && early.some(({ value }) => value === "--sandbox")) return found;
  return [
    ...found,
    ...files.map(({ value, span, name }) =>
      use.doubt("language.unknown", value ?? { kind: "literal", value: name, span }),
    ),
    ...(scripts.length === 0 ? [] : textEffects(scripts, use)),
  ];
}

/** With scripts from files, the first operand is an input file too. */
function firstFile(arg: Arg, use: Use): FoundEffect {
  const writes = use.options.some(({ name }) => name === "-i" || name === "--in-place");
  return { kind: writes ? "write" : "read", path: use.place(arg), span: arg.span };
}

function textEffects(scripts: readonly Arg[], use: Use): readonly FoundEffect[] {
  const [first] = scripts as readonly [Arg];
  const open = scripts.find(({ kind }) => kind !== "literal");
  if (open !== undefined)
    return [use.doubt(open.kind === "glob" ? "language.unknown" : "word.dynamic", open)];
  // A trailing backslash of one script may extend into the next one.
  const torn = scripts.slice(0, -1).find(({ value }) => value.endsWith("\\"));
  const deeds = sedDeeds(scripts.map(({ value }) => value).join("\n"));
  if (torn !== undefined || deeds === null) return [use.doubt("language.unknown", torn ?? first)];
  return deeds.flatMap((deed) => deedEffects(deed, first, use));
}

function deedEffects(deed: SedDeed, { span }: Arg, use: Use): readonly FoundEffect[] {
  if (deed.kind === "input")
    return [{ kind: "code", from: use.input === "network" ? "fetched" : "input", path: null, span }];
  const arg: Arg = { kind: "literal", value: deed.text, span };
  if (deed.kind === "runs") return [use.doubt("language.unknown", arg), ...use.shell(arg)];
  return [{ kind: deed.kind, path: use.place(arg), span }];
}

/*
 * Parts of a script between delimiters, as sed and awk have them. All answers are the offset of the closing delimiter,
 * or -1.
 */

/**
 * End of a regular expression that starts at `from`. -1 where implementations disagree on its bracket expressions. A program
 * without bracket expressions would end it inside of one and refuse the script, so no bracket may stay open.
 */
export function regexEnd(text: string, from: number, delimiter: string): number {
  const end = scan(text, from, delimiter, false);
  return end !== -1 && scan(text, from, delimiter, true) === end ? end : -1;
}

/** End of plain text; a backslash escapes the next character. */
export function plainEnd(text: string, from: number, delimiter: string): number {
  for (let at = from; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\") at += 1;
    else if (char === delimiter) return at;
    else if (char === "\n") return -1;
  }
  return -1;
}

/** `escapes`: a backslash inside brackets escapes a closing one, which only some programs support. */
function scan(text: string, from: number, delimiter: string, escapes: boolean): number {
  for (let at = from; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\") at += 1;
    else if (char === delimiter) return at;
    else if (char === "\n") return -1;
    else if (char === "[") {
      at = bracketEnd(text, at, escapes);
      if (at === -1) return -1;
    }
  }
  return -1;
}

/** The closing bracket of the expression that opens at `from`. */
function bracketEnd(text: string, from: number, escapes: boolean): number {
  let at = from + 1;
  if (text.charAt(at) === "^") at += 1;
  if (text.charAt(at) === "]") at += 1;
  for (; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "]") return at;
    if (char === "\n") return -1;
    if (char === "\\" && escapes) at += 1;
    else if (char === "[" && CLASSES.has(text.charAt(at + 1))) {
      const close = text.indexOf(`${text.charAt(at + 1)}]`, at + 2);
      if (close === -1) return -1;
      at = close + 1;
    }
  }
  return -1;
}

/** `[:alpha:]`, `[=e=]`, `[.-.]`. */
const CLASSES: ReadonlySet<string> = new Set([":", "=", "."]);

/** The readers of this file, by the names that rows use. */
export const SED_READERS: Readonly<Record<string, UseReader>> = {
  sed: scriptEffects,
};
