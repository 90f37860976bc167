/** Which names a filter of jq or yq uses. */

/**
 * The names that stand for something, variables with their sign: no field of data, no key of an object. Null where the
 * filter is not understood. Linear.
 */
export function filterNames(filter: string): readonly string[] | null {
  const reader = new FilterReader(filter);
  return reader.code("") ? reader.names : null;
}

const DEEPEST = 16;
const isLetter = (char: string): boolean =>
  (char >= "a" && char <= "z") || (char >= "A" && char <= "Z") || char === "_";
const isDigit = (char: string): boolean => char >= "0" && char <= "9";

class FilterReader {
  readonly names: string[] = [];
  private at = 0;
  private depth = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Up to the bracket that closes an interpolation, or to the end. */
  code(closing: "" | ")"): boolean {
    let open = 0;
    while (this.at < this.text.length) {
      const char = this.text.charAt(this.at);
      if (char === ")" && closing !== "" && open === 0) return true;
      if (char === "(") open += 1;
      if (char === ")") open -= 1;
      if (!this.token(char)) return false;
    }
    return closing === "";
  }

  private token(char: string): boolean {
    if (char === '"') return this.string();
    if (char === "#") return this.comment();
    if (isLetter(char) || (char === "$" && isLetter(this.text.charAt(this.at + 1)))) {
      this.name();
      return true;
    }
    this.at += 1;
    return (char >= " " && char <= "~" && char !== "\\" && char !== "`") || char === "\n" || char === "\t";
  }

  /** Versions differ in whether a backslash continues a comment. */
  private comment(): boolean {
    const newline = this.text.indexOf("\n", this.at);
    const end = newline === -1 ? this.text.length : newline;
    const comment = this.text.slice(this.at, end);
    this.at = end;
    return !comment.includes("\\");
  }

  private string(): boolean {
    this.at += 1;
    while (this.at < this.text.length) {
      const char = this.text.charAt(this.at);
      this.at += 1;
      if (char === '"') return true;
      if (char !== "\\") continue;
      const escaped = this.text.charAt(this.at);
      this.at += 1;
      if (escaped === "(" && !this.interpolation()) return false;
    }
    return false;
  }

  private interpolation(): boolean {
    if (this.depth >= DEEPEST) return false;
    this.depth += 1;
    const closed = this.code(")");
    this.depth -= 1;
    this.at += 1;
    return closed;
  }

  private name(): void {
    const from = this.at;
    this.at += 1;
    while (this.at < this.text.length && this.isName(this.text.charAt(this.at))) this.at += 1;
    const field = this.text.charAt(from - 1) === "." && this.text.charAt(from - 2) !== ".";
    if (!field && !this.isKey(from)) this.names.push(this.text.slice(from, this.at));
  }

  private isName(char: string): boolean {
    return isLetter(char) || isDigit(char);
  }

  /** Of an object: `name: value`, after the opening brace or a comma. */
  private isKey(from: number): boolean {
    let next = this.at;
    while (this.text.charAt(next) === " ") next += 1;
    if (this.text.charAt(next) !== ":" || this.text.charAt(next + 1) === ":") return false;
    let before = from - 1;
    while (before >= 0 && " \n\t".includes(this.text.charAt(before))) before -= 1;
    return before >= 0 && "{,".includes(this.text.charAt(before));
  }
}
