import type { List, Node, WordPiece, ShellReading, Redirect, Span } from "./shell-syntax.ts";

/** Deeper nesting is an error, so that no text can exhaust the stack. */
const MAX_DEPTH = 100;

/** A here-document whose body has not been read yet. */
export interface Awaited {
  readonly redirect: { target: Redirect["target"] };
  readonly delimiter: string;
  readonly quoted: boolean;
  readonly tabs: boolean;
}

/** Functions of the reader that depend on each other in a circle. */
export interface Grammar {
  /** Reads the commands up to `closer` or, where it is 0, up to the end; the closer is left unread. */
  readonly script: (c: Cursor, closer: number) => List;
  /** Reads commands up to something that cannot begin one. */
  readonly list: (c: Cursor) => List;
  /** Reads what a `$` at the cursor begins; null when it is only a dollar sign, which is left unread. */
  readonly dollar: (c: Cursor, quoted: boolean) => Expansion | null;
  readonly backtick: (c: Cursor, quoted: boolean) => Expansion;
}

type Problem = ShellReading["errors"][number];

/**
 * A position in the text being read. The first failure ends the reading: it moves the cursor to the end, so every loop
 * terminates and what was read so far is kept.
 */
export class Cursor {
  readonly text: string;
  readonly grammar: Grammar;
  /** Set when offsets in `text` are not offsets in the judged text: every node gets this span. */
  readonly fixed: Span | null;
  pos = 0;
  end: number;
  depth = 0;
  problem: Problem | null = null;
  /** The last word contained a line continuation. */
  joined = false;
  awaited: Awaited[] = [];
  /** Here-documents outside of the script being read that wait for their bodies. */
  outerHereDocuments = 0;
  /** Number of words that brace expansion has made. */
  braces = 0;

  constructor(text: string, grammar: Grammar, fixed: Span | null) {
    this.text = text;
    this.grammar = grammar;
    this.fixed = fixed;
    this.end = text.length;
  }

  /** The code unit `ahead` of the cursor, -1 beyond the end. */
  peek(ahead = 0): number {
    const at = this.pos + ahead;
    return at < this.end ? this.text.charCodeAt(at) : -1;
  }

  span(start: number, end: number): Span {
    return this.fixed ?? [start, end];
  }

  fail(message: string, start = this.pos): void {
    if (this.problem !== null) return;
    const from = Math.max(0, Math.min(start, this.text.length - 1));
    const to = Math.min(this.text.length, Math.max(from + 1, this.pos));
    this.problem = { message, span: this.span(from, to) };
    this.pos = this.text.length;
    this.end = 0;
  }

  /** True if one more level may be entered; `leave` has to follow. */
  enter(): boolean {
    this.depth++;
    if (this.depth <= MAX_DEPTH) return true;
    this.fail("unsupported: too deeply nested");
    return false;
  }

  leave(): void {
    this.depth--;
  }

  /** Limits the text to what precedes `end` while `read` runs. */
  within<T>(end: number, read: () => T): T {
    const outer = this.end;
    this.end = end;
    const result = read();
    if (this.problem === null) this.end = outer;
    return result;
  }

  /** Skips blanks, line continuations and a comment. */
  blanks(): void {
    for (;;) {
      const code = this.peek();
      if (code === SPACE || code === TAB) this.pos++;
      else if (code === BACKSLASH && this.peek(1) === NEWLINE) this.pos += 2;
      else {
        if (code === HASH) this.#comment();
        return;
      }
    }
  }

  #comment(): void {
    while (this.pos < this.end && this.text.charCodeAt(this.pos) !== NEWLINE) this.pos++;
  }
}

/** Character codes of the grammar, and the classes of each ASCII character. */
export const TAB = 9;
export const NEWLINE = 10;
const SPACE = 32;
export const BANG = 33;
export const DOUBLE = 34;
const HASH = 35;
export const DOLLAR = 36;
export const AMPERSAND = 38;
export const SINGLE = 39;
export const OPEN = 40;
export const CLOSE = 41;
export const STAR = 42;
export const PLUS = 43;
export const COMMA = 44;
export const MINUS = 45;
export const DOT = 46;
export const COLON = 58;
export const SEMICOLON = 59;
export const LESS = 60;
export const EQUALS = 61;
export const GREATER = 62;
export const QUESTION = 63;
export const BRACKET = 91;
export const BACKSLASH = 92;
export const BRACKET_CLOSE = 93;
export const BACKTICK = 96;
export const BRACE = 123;
export const BAR = 124;
export const BRACE_CLOSE = 125;

/** The classes of `CLASS`, as bits. */
const NAME_START = 1;
const DIGIT = 2;
/** Ends an unquoted word. */
export const BREAK = 4;
/** Quotes, expansions and escapes: a word with one of them is read piece by piece. */
export const ACTIVE = 8;
/** Special only once the word is complete: patterns, braces, tildes. */
export const LATE = 16;

const MEMBERS: readonly (readonly [string, number])[] = [
  ["ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", NAME_START],
  ["0123456789", DIGIT],
  [" \t\n;&|<>()", BREAK],
  ["\"'`$\\", ACTIVE],
  ["*?[{~", LATE],
];

/** Classes of each ASCII character; all other characters are plain. */
export const CLASS: Readonly<Uint8Array> = classes();

function classes(): Uint8Array {
  const table = new Uint8Array(128);
  for (const [members, bit] of MEMBERS)
    for (let at = 0; at < members.length; at++) {
      const code = members.charCodeAt(at);
      table[code] = (table[code] ?? 0) | bit;
    }
  return table;
}

/** The class bits of a code unit, 0 for a plain character, `BREAK` for the end of the text. */
export function classOf(code: number): number {
  return code < 128 ? (CLASS[code] ?? BREAK) : code > 127 ? 0 : BREAK;
}

export function isName(code: number): boolean {
  return (classOf(code) & (NAME_START | DIGIT)) !== 0;
}

export function isNameStart(code: number): boolean {
  return (classOf(code) & NAME_START) !== 0;
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Reads one level deeper, with a separate list of here-documents. */
export function nested<T>(c: Cursor, read: () => T): T {
  const { awaited, outerHereDocuments } = c;
  c.outerHereDocuments = outerHereDocuments + awaited.length;
  c.awaited = [];
  c.enter();
  const result = read();
  c.leave();
  if (c.awaited.length > 0) c.fail("a here-document has no body");
  c.awaited = awaited;
  c.outerHereDocuments = outerHereDocuments;
  return result;
}

/** Adds the command substitutions of an expansion inside another one. */
export function collect(piece: Expansion, scripts: Node[]): void {
  if (piece.kind === "script") scripts.push(piece.body);
  else if (piece.kind === "unknown") for (const script of piece.scripts) scripts.push(script);
}

const WORDS: ReadonlySet<string> = new Set([
  "!",
  "[[",
  "]]",
  "{",
  "}",
  "case",
  "coproc",
  "do",
  "done",
  "elif",
  "else",
  "esac",
  "fi",
  "for",
  "function",
  "if",
  "in",
  "select",
  "then",
  "time",
  "until",
  "while",
]);

const MAX_LENGTH = 8;

/** The reserved word at the cursor, unread; empty when there is none. Counts only where a command may begin. */
export function reserved(c: Cursor): string {
  const { text, pos } = c;
  if (!begins(c.peek())) return "";
  const most = Math.min(c.end, pos + MAX_LENGTH + 1);
  let at = pos + 1;
  while (at < most && continues(text.charCodeAt(at))) at++;
  if (at === pos + MAX_LENGTH + 1 || (at < c.end && (classOf(text.charCodeAt(at)) & BREAK) === 0)) return "";
  const word = text.slice(pos, at);
  return WORDS.has(word) ? word : "";
}

export function isReserved(word: string): boolean {
  return WORDS.has(word);
}

/** The first characters of reserved words. */
function begins(code: number): boolean {
  switch (code) {
    case 33:
    case 91:
    case 93:
    case 123:
    case 125:
      return true;
    default:
      return code >= 99 && code <= 119 && FIRST.includes(String.fromCharCode(code));
  }
}

const FIRST = "cdefistuw";

/** Lower-case letters, and the second bracket. */
function continues(code: number): boolean {
  return (code >= 97 && code <= 122) || code === 91 || code === 93;
}

export type Expansion = Exclude<WordPiece, { readonly kind: "text" }>;

/** A piece of a word being read. `quoted` text is no pattern, brace or tilde, and may be empty. */
export type WordFragment =
  | Expansion
  | { readonly kind: "text"; readonly text: string; readonly quoted: boolean };

/** Adds text, joined to the text before it if both are quoted or both are not. */
export function addText(parts: WordFragment[], text: string, quoted: boolean): void {
  const last = parts.at(-1);
  if (last !== undefined && last.kind === "text" && last.quoted === quoted)
    parts[parts.length - 1] = { kind: "text", text: last.text + text, quoted };
  else if (quoted || text !== "") parts.push({ kind: "text", text, quoted });
}

export function addPart(parts: WordFragment[], part: WordFragment): void {
  if (part.kind === "text") addText(parts, part.text, part.quoted);
  else parts.push(part);
}

/** The normal form of a word's pieces. */
export function normalPieces(parts: readonly WordFragment[]): readonly WordPiece[] {
  const pieces: WordPiece[] = [];
  for (const part of parts) {
    const last = pieces.at(-1);
    if (part.kind === "text") {
      if (part.text === "") continue;
      if (last?.kind === "text") pieces[pieces.length - 1] = { kind: "text", text: last.text + part.text };
      else pieces.push({ kind: "text", text: part.text });
    } else if (part.kind === "glob" && last?.kind === "glob")
      pieces[pieces.length - 1] = { kind: "glob", text: last.text + part.text };
    else pieces.push(part);
  }
  return pieces;
}
