import { type AwkWord, awkWords } from "./awk-words.ts";

/** What an awk program does beyond computing and printing. `unknown`: something that is not understood. */
export type AwkDeed =
  | { readonly kind: "read" | "write"; readonly path: string }
  | { readonly kind: "environment" }
  | { readonly kind: "unknown" };

/** Null where the program is not understood. */
export function awkDeeds(program: string): readonly AwkDeed[] | null {
  const words = awkWords(program);
  if (words === null) return null;
  const deeds = new ProgramReader(words).read();
  return deeds.some(({ kind }) => kind === "unknown") ? null : deeds;
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
const UNKNOWN_DEED: AwkDeed = { kind: "unknown" };
const END: AwkWord = { kind: "newline", text: "\n", glued: false };

class ProgramReader {
  private readonly deeds: AwkDeed[] = [];
  private readonly defined = new Set<string>();
  /** Depth of brackets where the current `print` began; null outside of one. */
  private printing: number | null = null;
  private depth = 0;
  private readonly words: readonly AwkWord[];

  constructor(words: readonly AwkWord[]) {
    this.words = words;
  }

  read(): readonly AwkDeed[] {
    for (const [at, { text }] of this.words.entries())
      if (text === "function" || text === "func") this.defined.add(this.word(at + 1).text);
    for (const [at, word] of this.words.entries()) {
      if (word.kind === "name") this.name(word, at);
      else if (word.kind === "sign") this.sign(word.text, at);
      else if (word.kind === "newline" && this.endsLine(at)) this.printing = null;
    }
    return this.deeds;
  }

  private word(at: number): AwkWord {
    return this.words[at] ?? END;
  }

  private isSign(at: number, ...signs: readonly string[]): boolean {
    const { kind, text } = this.word(at);
    return kind === "sign" && signs.includes(text);
  }

  /** A line goes on after a comma and the like, and inside of brackets. */
  private endsLine(at: number): boolean {
    const { kind, text } = this.word(at - 1);
    return (
      this.depth === (this.printing ?? 0) &&
      (kind !== "sign" ||
        text === ")" ||
        text === "]" ||
        text === "++" ||
        text === "--" ||
        text === ";" ||
        text === "}")
    );
  }

  private name({ text, glued }: AwkWord, at: number): void {
    if (FORBIDDEN.has(text)) this.deeds.push(UNKNOWN_DEED);
    else if (text === "ENVIRON") this.deeds.push({ kind: "environment" });
    else if (text === "print" || text === "printf") this.printing = this.depth;
    else if (text === "getline") this.getline(at);
    else if (glued && this.isSign(at + 1, "(") && !this.isFunction(text)) this.deeds.push(UNKNOWN_DEED);
  }

  private isFunction(name: string): boolean {
    return BUILTINS.has(name) || KEYWORDS.has(name) || this.defined.has(name);
  }

  private sign(text: string, at: number): void {
    switch (text) {
      case "(":
        this.depth += 1;
        return;
      case ")":
        this.depth -= 1;
        if (this.printing !== null && this.depth < this.printing) this.printing = null;
        return;
      case ";":
      case "}":
        if (this.depth <= (this.printing ?? 0)) this.printing = null;
        return;
      case "|":
      case "|&":
        this.deeds.push(UNKNOWN_DEED);
        return;
      case ">>":
        this.file("write", at + 1);
        return;
      case ">":
        if (this.printing === this.depth) this.file("write", at + 1);
    }
  }

  /** `getline`, `getline name`, and both with `< "file"`. */
  private getline(at: number): void {
    const next = this.word(at + 1).kind === "name" ? at + 2 : at + 1;
    if (this.isSign(next, "<")) this.file("read", next + 1);
    else if (!this.endsStatement(next)) this.deeds.push(UNKNOWN_DEED);
  }

  /** A file given by a plain text that stands alone. */
  private file(kind: "read" | "write", at: number): void {
    const { kind: what, text } = this.word(at);
    const plain = what === "string" && text !== "" && !text.includes("\\") && this.endsStatement(at + 1);
    this.deeds.push(plain ? { kind, path: text } : UNKNOWN_DEED);
  }

  private endsStatement(at: number): boolean {
    return this.word(at).kind === "newline" || this.isSign(at, ";", "}", ")");
  }
}
