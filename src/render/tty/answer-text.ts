import { visiblePieces } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

export interface AnswerStream {
  /** Takes the next piece of a reply and returns what can be written now. */
  push(text: string): string;
  /** Returns what was held back; the next piece starts a new reply. */
  end(): string;
}

/**
 * Renders a reply that arrives in pieces of any size. Control characters are made visible; with colours, headings, lists,
 * bold words and code are styled. Text is held back from the first mark whose meaning is not known yet.
 */
export function answerStream(stream: Output): AnswerStream {
  return stream.isTTY && stream.marksOf("bold") !== undefined ? new MarkdownStream(stream) : visiblePieces();
}

/** The start of a line that may still turn out to be a heading, a list item or a fence. */
const OPEN_START = /^ {0,12}(?:(?:#{1,6}|[-*+]) {0,12}|`{1,2}|~{1,2})?$/;
const HEADING = /^#{1,6} {1,12}(?=\S)/;
const ITEM = /^( {0,12})[-*+] {1,12}(?=\S)/;
/** The text after an opening fence names the language; a mark in it makes the line ordinary text. */
const FENCE = /^ {0,12}(`{3,20}|~{3,20})[^`]{0,200}$/;
const NO_MARK = { mark: "", skip: 0 };

/** At most `MAX_LINE` characters are held back, and each is looked at a bounded number of times. */
export class MarkdownStream implements AnswerStream {
  readonly #stream: Output;
  readonly #plain = visiblePieces();
  /** The part of the incomplete line that is not written yet. */
  #line = "";
  #atStart = true;
  #heading = false;
  /** The fence of the open code block. */
  #fence: string | undefined;
  #from = 0;
  #looked = 0;

  constructor(stream: Output) {
    this.#stream = stream;
  }

  /** Number of characters in which a closing mark was searched for so far, including repeated searches. */
  get looked(): number {
    return this.#looked;
  }

  /** Number of characters that are held back. */
  get held(): number {
    return this.#line.length;
  }

  push(text: string): string {
    return this.#take(this.#plain.push(text), false);
  }

  end(): string {
    const rest = this.#take(this.#plain.end(), true);
    this.#newLine();
    this.#fence = undefined;
    return rest;
  }

  #take(text: string, last: boolean): string {
    const lines = (this.#line + text).split("\n");
    const open = lines.pop() ?? "";
    const whole = lines.map((line) => {
      const shown = this.#part(line, true).shown;
      this.#newLine();
      return `${shown}\n`;
    });
    const { shown, rest, from } = this.#part(open, last);
    this.#line = rest;
    this.#from = from;
    return whole.join("") + shown;
  }

  #newLine(): void {
    this.#atStart = true;
    this.#from = 0;
    this.#heading = false;
  }

  /** Renders the rest of a line, complete or not. */
  #part(line: string, whole: boolean): Inline {
    const block = this.#atStart ? this.#block(line, whole) : undefined;
    if (block !== undefined) return block;
    const { mark, skip } = this.#atStart && this.#fence === undefined ? this.#startOf(line) : NO_MARK;
    if (line !== "") this.#atStart = false;
    if (this.#fence !== undefined) return { shown: line, rest: "", from: 0 };
    const { shown, rest, from } = inlineText(line.slice(skip), {
      stream: this.#stream,
      whole,
      from: this.#from,
      inBold: false,
      look: (characters) => {
        this.#looked += characters;
      },
    });
    const set = this.#heading && shown !== "" ? styleText("bold", shown, { stream: this.#stream }) : shown;
    return { shown: mark + set, rest, from };
  }

  /** Whether the start of a line is still ambiguous, or is the fence of a code block. */
  #block(line: string, whole: boolean): Inline | undefined {
    const fence = FENCE.exec(line)?.[1];
    if (!whole)
      return OPEN_START.test(line) || fence !== undefined ? { shown: "", rest: line, from: 0 } : undefined;
    if (fence === undefined || !this.#fences(fence, line)) return undefined;
    return { shown: styleText("dim", line, { stream: this.#stream }), rest: "", from: 0 };
  }

  #startOf(line: string): { readonly mark: string; readonly skip: number } {
    const heading = HEADING.exec(line);
    this.#heading = heading !== null;
    if (heading !== null) return { ...NO_MARK, skip: heading[0].length };
    const item = ITEM.exec(line);
    return item === null ? NO_MARK : { mark: `${item[1] ?? ""}• `, skip: item[0].length };
  }

  /** Whether the line opens a code block, or closes the open one. */
  #fences(fence: string, line: string): boolean {
    if (this.#fence === undefined) {
      this.#fence = fence;
      return true;
    }
    const closes = line.trim() === fence && fence.startsWith(this.#fence);
    if (closes) this.#fence = undefined;
    return closes;
  }
}

interface Inline {
  readonly shown: string;
  /** The part from the first unclosed mark on, which may still turn out to be styled. */
  readonly rest: string;
  /** Where in `rest` the search for the closing mark goes on. */
  readonly from: number;
}

/** Longer texts are not searched for marks: a text that waits for a closing mark is shown as it is at this length. */
const MAX_LINE = 2000;

const RUN = /`+|\*+/g;
const isBlank = (character: string | undefined): boolean => character === undefined || /\s/.test(character);

interface InlineParts {
  readonly stream: Output;
  /** No more follows. */
  readonly whole: boolean;
  /** Where the search for the mark that closes the first one begins. */
  readonly from: number;
  readonly inBold: boolean;
  readonly look: (characters: number) => void;
}

/**
 * Styles bold and code in one line and removes their marks; unclosed marks stay as they are. A closing mark that was not
 * found is not searched for again.
 */
function inlineText(text: string, parts: InlineParts): Inline {
  const { stream, whole, inBold, look } = parts;
  if (text.length > MAX_LINE) return { shown: text, rest: "", from: 0 };
  const unclosed = new Set(inBold ? ["**"] : []);
  let { from } = parts;
  let shown = "";
  let at = 0;
  for (;;) {
    RUN.lastIndex = at;
    const found = RUN.exec(text);
    if (found === null) return { shown: shown + text.slice(at), rest: "", from: 0 };
    shown += text.slice(at, found.index);
    at = found.index;
    const set = markedAt(text, at, found[0], from, unclosed);
    look(set.looked);
    if (set.isHeld && !whole) return { shown, rest: text.slice(at), from: set.next - at };
    const { mark, end } = set;
    if (end === -1) {
      unclosed.add(mark);
      shown += found[0];
      at += found[0].length;
    } else {
      const words = text.slice(at + mark.length, end);
      shown += mark === "**" ? boldText(words, parts) : styleText("cyan", words, { stream });
      at = end + mark.length;
    }
    from = 0;
  }
}

interface Marked extends Closing {
  /** Empty if the run of signs opens nothing. */
  readonly mark: string;
  /** What follows may still change its meaning. */
  readonly isHeld: boolean;
  readonly looked: number;
}

/** What the run of signs at this place opens, and where that ends. */
function markedAt(
  text: string,
  at: number,
  run: string,
  from: number,
  unclosed: ReadonlySet<string>,
): Marked {
  const mark = run.startsWith("`") ? run : isBlank(text[at + 2]) || run === "*" ? "" : "**";
  const search = Math.max(from, at + mark.length + 1);
  if (mark === "" || unclosed.has(mark))
    return { mark, end: -1, next: at, isHeld: mayClose(text.slice(at)), looked: 0 };
  const { end, next } = findClosing(text, mark, search);
  const to = end === -1 ? text.length : end + mark.length;
  const isHeld = end === -1 ? mayClose(text.slice(at)) : to === text.length;
  return { mark, end, next, isHeld, looked: Math.max(0, to - search) };
}

const boldText = (words: string, { stream, look }: InlineParts): string =>
  styleText("bold", inlineText(words, { stream, look, whole: true, from: 0, inBold: true }).shown, {
    stream,
  });

interface Closing {
  /** -1: there is none so far. */
  readonly end: number;
  /** The start of the last run of marks that was looked at, which may still grow: a later search begins there. */
  readonly next: number;
}

/** As many backticks as opened code, or two stars behind a word; of more stars than two, the last two close. */
function findClosing(text: string, mark: string, from: number): Closing {
  for (let at = from; ;) {
    const start = text.indexOf(mark, at);
    if (start === -1) return { end: -1, next: Math.max(at, withoutRun(text, mark[0] ?? "")) };
    let end = start;
    while (text[end] === mark[0]) end += 1;
    const last = end - mark.length;
    const closes = mark === "**" ? !isBlank(text[last - 1]) : last === start;
    if (closes) return { end: last, next: start };
    if (end === text.length) return { end: -1, next: start };
    at = end;
  }
}

/** The length of the text without the signs at its end. */
function withoutRun(text: string, sign: string): number {
  let end = text.length;
  while (text[end - 1] === sign) end -= 1;
  return end;
}

/** A single star, or two before a blank, are ordinary text. */
const mayClose = (text: string): boolean => text.startsWith("`") || /^\*(?:$|\*(?:$|\S))/.test(text);
