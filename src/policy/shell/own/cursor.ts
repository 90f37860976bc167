import type { List, Reading, Redirect, Span } from "../syntax.ts";
import { BACKSLASH, HASH, NEWLINE, SPACE, TAB } from "./chars.ts";
import type { Expansion } from "./pieces.ts";

/** Nested constructs beyond this are an error, so that no text can use up the stack. */
const DEEPEST = 100;

/** A here-document whose body is still to come. */
export interface Awaited {
  readonly redirect: { target: Redirect["target"] };
  readonly delimiter: string;
  readonly quoted: boolean;
  readonly tabs: boolean;
}

/** What the parts of the reader need of each other in a circle. */
export interface Grammar {
  /** Reads the commands up to `closer` or, where it is 0, up to the end; the closer is left unread. */
  readonly script: (c: Cursor, closer: number) => List;
  /** Reads commands up to what none can begin with. */
  readonly list: (c: Cursor) => List;
  /** Reads what a `$` at the cursor begins; null when it is only a dollar sign, which is left unread. */
  readonly dollar: (c: Cursor, quoted: boolean) => Expansion | null;
  readonly backtick: (c: Cursor, quoted: boolean) => Expansion;
}

type Problem = Reading["errors"][number];

/**
 * A place in the text that is being read. The first failure ends the reading: it puts the cursor at the end,
 * so every loop finishes by itself and what was read so far is kept.
 */
export class Cursor {
  readonly text: string;
  readonly grammar: Grammar;
  /** Given to everything that is read, when offsets in `text` are none of the judged text. */
  readonly fixed: Span | null;
  pos = 0;
  end: number;
  depth = 0;
  problem: Problem | null = null;
  /** True when the last word held a line continuation. */
  joined = false;
  awaited: Awaited[] = [];
  /** How many here-documents await their bodies outside of the script that is being read. */
  held = 0;
  /** How many words brace expansion has made. */
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

  /** True when one more level may be entered; `leave` must follow. */
  enter(): boolean {
    this.depth++;
    if (this.depth <= DEEPEST) return true;
    this.fail("not read: too deeply nested");
    return false;
  }

  leave(): void {
    this.depth--;
  }

  /** Takes the text up to `end` as all there is, for as long as `read` runs. */
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
        if (code === HASH) this.comment();
        return;
      }
    }
  }

  private comment(): void {
    while (this.pos < this.end && this.text.charCodeAt(this.pos) !== NEWLINE) this.pos++;
  }
}
