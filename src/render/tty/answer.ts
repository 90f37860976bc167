import { type Inline, inlineText } from "./markdown.ts";
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
