import { visiblePieces } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

export interface AnswerStream {
  /** What is to be written of a reply when so much more of it has come. */
  push(text: string): string;
  /** What was held back; the next piece begins a new reply. */
  end(): string;
}

/**
 * A reply in pieces of any size. Its controls are shown; where there are colours headings, lists, bold words and code
 * are set. What is held back begins with a mark of the last line that may still become something.
 */
export function answerStream(stream: Output): AnswerStream {
  return stream.isTTY && stream.marksOf("bold") !== undefined ? new MarkdownStream(stream) : visiblePieces();
}

/** A beginning of a line that may still become something. */
const OPEN_START = /^ {0,12}(?:(?:#{1,6}|[-*+]) {0,12}|`{1,2}|~{1,2})?$/;
const HEADING = /^#{1,6} {1,12}(?=\S)/;
const ITEM = /^( {0,12})[-*+] {1,12}(?=\S)/;
/** What stands behind an opening one names the language: a mark in it makes the line a text. */
const FENCE = /^ {0,12}(`{3,20}|~{3,20})[^`]{0,200}$/;
const NO_MARK = { mark: "", skip: 0 };

class MarkdownStream implements AnswerStream {
  readonly #stream: Output;
  readonly #plain = visiblePieces();
  /** Of the line that is not whole yet: what is not written. */
  #line = "";
  #atStart = true;
  #heading = false;
  /** The fence that code stands in. */
  #fence: string | undefined;

  constructor(stream: Output) {
    this.#stream = stream;
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
    const { shown, rest } = this.#part(open, last);
    this.#line = rest;
    return whole.join("") + shown;
  }

  #newLine(): void {
    this.#atStart = true;
    this.#heading = false;
  }

  /** A line from where it was written to, whole or not. */
  #part(line: string, whole: boolean): Inline {
    const block = this.#atStart ? this.#block(line, whole) : undefined;
    if (block !== undefined) return block;
    const { mark, skip } = this.#atStart && this.#fence === undefined ? this.#startOf(line) : NO_MARK;
    if (line !== "") this.#atStart = false;
    if (this.#fence !== undefined) return { shown: line, rest: "" };
    const { shown, rest } = inlineText(line.slice(skip), whole, this.#stream);
    const set = this.#heading && shown !== "" ? styleText("bold", shown, { stream: this.#stream }) : shown;
    return { shown: mark + set, rest };
  }

  /** A beginning that says too little yet, or the fence of a block of code. */
  #block(line: string, whole: boolean): Inline | undefined {
    const fence = FENCE.exec(line)?.[1];
    if (!whole) return OPEN_START.test(line) || fence !== undefined ? { shown: "", rest: line } : undefined;
    if (fence === undefined || !this.#fences(fence, line)) return undefined;
    return { shown: styleText("dim", line, { stream: this.#stream }), rest: "" };
  }

  #startOf(line: string): { readonly mark: string; readonly skip: number } {
    const heading = HEADING.exec(line);
    this.#heading = heading !== null;
    if (heading !== null) return { ...NO_MARK, skip: heading[0].length };
    const item = ITEM.exec(line);
    return item === null ? NO_MARK : { mark: `${item[1] ?? ""}• `, skip: item[0].length };
  }

  /** Whether it opens a block of code, or closes the one that is open. */
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
  /** What may still become something: from a mark on that is not closed yet. */
  readonly rest: string;
}

const CODE = /^(`+)([^`].*?|)(?<!`)\1(?!`)/;
const BOLD = /^\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\*)/;

/** A longer text is no line of words; looking for marks in it would take too long. */
const MAX_LINE = 2000;

/** Words of one line: bold and code are set and lose their marks; a mark that nothing closes stays as it is. */
function inlineText(text: string, whole: boolean, stream: Output): Inline {
  if (text.length > MAX_LINE) return { shown: text, rest: "" };
  let shown = "";
  let rest = text;
  for (;;) {
    const mark = rest.search(/`|\*/);
    if (mark === -1) return { shown: shown + rest, rest: "" };
    shown += rest.slice(0, mark);
    rest = rest.slice(mark);
    const set = setText(rest, stream);
    const held = set === undefined ? mayClose(rest) : set.length === rest.length;
    if (held && !whole) return { shown, rest };
    const { words, length } = set ?? literal(rest);
    shown += words;
    rest = rest.slice(length);
  }
}

interface SetText {
  readonly words: string;
  /** Of what it stands for. */
  readonly length: number;
}

function setText(text: string, stream: Output): SetText | undefined {
  const code = CODE.exec(text);
  if (code?.[2] !== undefined && code[2] !== "")
    return { words: styleText("cyan", code[2], { stream }), length: code[0].length };
  const bold = BOLD.exec(text);
  if (bold?.[1] === undefined) return undefined;
  return {
    words: styleText("bold", inlineText(bold[1], true, stream).shown, { stream }),
    length: bold[0].length,
  };
}

/** A bare star, or two before a blank, are what they are. */
const mayClose = (text: string): boolean => text.startsWith("`") || /^\*(?:$|\*(?:$|\S))/.test(text);

function literal(text: string): SetText {
  const words = /^(?:`+|\*+)/.exec(text)?.[0] ?? "";
  return { words, length: words.length };
}
