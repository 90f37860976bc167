import { visiblePieces } from "../../core/text/visible.ts";
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

class MarkdownStream implements AnswerStream {
  readonly #stream: Output;
  readonly #plain = visiblePieces();
  /** The part of the incomplete line that is not written yet. */
  #line = "";
  #atStart = true;
  #heading = false;
  /** The fence of the open code block. */
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

  /** Renders the rest of a line, complete or not. */
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

  /** Whether the start of a line is still ambiguous, or is the fence of a code block. */
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
}

const CODE = /^(`+)([^`].*?|)(?<!`)\1(?!`)/;
const BOLD = /^\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\*)/;

/** Longer texts are not searched for marks, because that would take too long. */
const MAX_LINE = 2000;

/** Styles bold and code in one line and removes their marks; unclosed marks stay as they are. */
function inlineText(text: string, whole: boolean, stream: Output): Inline {
  if (text.length > MAX_LINE) return { shown: text, rest: "" };
  let shown = "";
  let rest = text;
  for (;;) {
    const mark = rest.search(/`|\*/);
    if (mark === -1) return { shown: shown + rest, rest: "" };
    shown += rest.slice(0, mark);
    rest = rest.slice(mark);
    const set = styledText(rest, stream);
    const held = set === undefined ? mayClose(rest) : set.length === rest.length;
    if (held && !whole) return { shown, rest };
    const { words, length } = set ?? unstyledMark(rest);
    shown += words;
    rest = rest.slice(length);
  }
}

interface StyledText {
  readonly words: string;
  /** Length of the source text that it replaces. */
  readonly length: number;
}

function styledText(text: string, stream: Output): StyledText | undefined {
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

/** A single star, or two before a blank, are ordinary text. */
const mayClose = (text: string): boolean => text.startsWith("`") || /^\*(?:$|\*(?:$|\S))/.test(text);

function unstyledMark(text: string): StyledText {
  const words = /^(?:`+|\*+)/.exec(text)?.[0] ?? "";
  return { words, length: words.length };
}
