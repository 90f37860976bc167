import { plainEnd, regexEnd } from "./delimited.ts";

/** What a sed script does beyond editing the text that it is given. `input`: it runs that text as commands. */
export type SedDeed =
  | { readonly kind: "read" | "write" | "runs"; readonly text: string }
  | { readonly kind: "input" };

/** Everything the script does, or null where any of it is not understood. Linear. */
export function sedDeeds(script: string): readonly SedDeed[] | null {
  const reader = new ScriptReader(script);
  return reader.read() ? reader.deeds : null;
}

const PLAIN = "=dDgGhHnNpPxzF";
const COUNTED = "lLqQ";
const FILES: Readonly<Record<string, "read" | "write">> = { r: "read", R: "read", w: "write", W: "write" };
const isDigit = (char: string): boolean => char >= "0" && char <= "9";
const isBlank = (char: string): boolean => char === " " || char === "\t";
const isLabel = (char: string): boolean => /^[\w.-]$/.test(char);
/** Any other delimiter may be read in parts, or as something else. */
const isDelimiter = (char: string): boolean => char > " " && char < "\x7f" && char !== "\\";

class ScriptReader {
  readonly deeds: SedDeed[] = [];
  private at = 0;
  private depth = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  read(): boolean {
    for (;;) {
      this.skip((char) => isBlank(char) || char === ";" || char === "\n");
      if (this.at >= this.text.length) return this.depth === 0;
      if (!this.addresses()) return false;
      this.skip((char) => isBlank(char) || char === "!");
      if (!this.command(this.next())) return false;
    }
  }

  private here(): string {
    return this.text.charAt(this.at);
  }

  private next(): string {
    this.at += 1;
    return this.text.charAt(this.at - 1);
  }

  private skip(takes: (char: string) => boolean): number {
    const from = this.at;
    while (this.at < this.text.length && takes(this.here())) this.at += 1;
    return this.at - from;
  }

  private line(): string {
    const newline = this.text.indexOf("\n", this.at);
    const end = newline === -1 ? this.text.length : newline;
    const rest = this.text.slice(this.at, end);
    this.at = end;
    return rest;
  }

  private addresses(): boolean {
    if (!this.startsAddress()) return true;
    if (!this.address()) return false;
    this.skip(isBlank);
    if (this.here() !== ",") return true;
    this.at += 1;
    this.skip(isBlank);
    if (this.here() !== "+" && this.here() !== "~") return this.startsAddress() && this.address();
    this.at += 1;
    return this.skip(isDigit) > 0;
  }

  private startsAddress(): boolean {
    const char = this.here();
    return isDigit(char) || char === "$" || char === "/" || char === "\\";
  }

  private address(): boolean {
    const char = this.next();
    if (char === "$") return true;
    if (char === "/") return this.regex("/");
    if (char === "\\") return this.regex(this.next());
    this.skip(isDigit);
    if (this.here() !== "~") return true;
    this.at += 1;
    return this.skip(isDigit) > 0;
  }

  private regex(delimiter: string): boolean {
    if (!this.part(delimiter, regexEnd)) return false;
    this.skip((char) => char === "I" || char === "M");
    return true;
  }

  private part(delimiter: string, endOf: typeof plainEnd): boolean {
    if (!isDelimiter(delimiter)) return false;
    const end = endOf(this.text, this.at, delimiter);
    this.at = end + 1;
    return end !== -1;
  }

  private command(name: string): boolean {
    if (name !== "" && PLAIN.includes(name)) return this.end();
    if (name !== "" && COUNTED.includes(name)) return this.counted();
    const file = FILES[name];
    if (file !== undefined) return this.file(file);
    switch (name) {
      case "{":
        this.depth += 1;
        return true;
      case "}":
        this.depth -= 1;
        return this.depth >= 0 && this.end();
      case "#":
        this.line();
        return true;
      case "s":
        return this.substitute();
      case "y":
        return this.translate();
      default:
        return this.rarer(name);
    }
  }

  private rarer(name: string): boolean {
    if (name === "e") return this.run();
    if (name === "a" || name === "i" || name === "c") return this.inserted();
    if (name !== "b" && name !== "t" && name !== "T" && name !== ":" && name !== "v") return false;
    this.skip(isBlank);
    return (this.skip(isLabel) > 0 || name !== ":") && this.end();
  }

  private counted(): boolean {
    this.skip(isBlank);
    this.skip(isDigit);
    return this.end();
  }

  /** What may stand behind a command. */
  private end(): boolean {
    this.skip(isBlank);
    const char = this.here();
    if (char === ";" || char === "\n") this.at += 1;
    return char === "" || char === ";" || char === "\n" || char === "}" || char === "#";
  }

  private file(kind: "read" | "write"): boolean {
    this.skip(isBlank);
    const text = this.line();
    this.deeds.push({ kind, text });
    return text !== "";
  }

  private run(): boolean {
    this.skip(isBlank);
    const text = this.line();
    this.deeds.push(text === "" ? { kind: "input" } : { kind: "runs", text });
    return true;
  }

  /** `a`, `i` and `c`: their text goes to the end of the line, and on where a backslash ends that. */
  private inserted(): boolean {
    this.skip(isBlank);
    if (this.here() === "\\") {
      this.at += 1;
      const behind = this.at;
      this.skip(isBlank);
      if (this.here() === "\\") return false;
      // Blanks alone are a text of one line to some, and nothing to others.
      if (this.here() === "\n" && this.at > behind) return false;
      if (this.here() === "\n") this.at += 1;
    } else if (this.here() === "\n") return false;
    // `$a\\` with nothing behind it ends the last line, where it has no end.
    if (this.at >= this.text.length) return this.text.endsWith("\\");
    for (; this.at < this.text.length && this.here() !== "\n"; this.at += 1)
      if (this.here() === "\\") this.at += 1;
    return this.at <= this.text.length;
  }

  private translate(): boolean {
    const delimiter = this.next();
    return this.part(delimiter, plainEnd) && this.part(delimiter, plainEnd) && this.end();
  }

  private substitute(): boolean {
    const delimiter = this.next();
    if (!this.part(delimiter, regexEnd) || !this.part(delimiter, plainEnd)) return false;
    for (;;) {
      this.skip((char) => "gpiImM".includes(char) || isDigit(char));
      const char = this.here();
      if (char !== "e" && char !== "w") return this.end();
      this.at += 1;
      if (char === "w") return this.file("write");
      this.deeds.push({ kind: "input" });
    }
  }
}
