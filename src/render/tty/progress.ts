import { formatDuration } from "../../core/bounds.ts";
import { visibleLine } from "../../core/visible.ts";
import { move, type Output, styleText } from "./output.ts";

type StepState = "ok" | "stand-in" | "fail";

export interface StepLine {
  readonly name: string;
  readonly state: StepState;
  readonly detail: string;
  readonly remedy: string;
  /** The same in a few words, for the closing table. */
  readonly short: string;
}

const MARKS = { ok: ["green", "✓"], "stand-in": ["yellow", "~"], fail: ["red", "✗"] } as const;

/** One finished step as one line with its time, and its remedy below when there is one. */
export function stepLine(step: StepLine, ms: number, stream: Output): string {
  const [colour, mark] = MARKS[step.state];
  const time = styleText("dim", formatDuration(ms).padStart(9), { stream });
  const head = `  ${styleText(colour, mark, { stream })} ${step.name.padEnd(9)} ${time}  ${step.detail}\n`;
  return step.remedy === ""
    ? head
    : `${head}${" ".repeat(25)}${styleText("bold", "next:", { stream })} ${step.remedy}\n`;
}

/** A line that is rewritten while something goes on; nothing at all where nobody watches. */
export class LiveLine {
  readonly #stream: Output;
  readonly #live: boolean;

  constructor(stream: Output, quiet: boolean) {
    this.#stream = stream;
    this.#live = stream.isTTY && !quiet && process.env["TERM"] !== "dumb";
  }

  show(text: string): void {
    if (!this.#live) return;
    const width = Math.max(20, (this.#stream.columns ?? 80) - 1);
    this.#stream.write(`${move("erase")}${visibleLine(text).slice(0, width)}`);
  }

  clear(): void {
    if (this.#live) this.#stream.write(move("erase"));
  }
}

/** The first that fits into a line of the terminal, the last where none does. */
export const fitting = (columns: number | undefined, texts: readonly string[]): string =>
  texts.find(({ length }) => length < (columns ?? 80)) ?? texts.at(-1) ?? "";

export function progressBar(done: number, total: number, width = 24): string {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const filled = Math.round(share * width);
  return `[${"#".repeat(filled)}${".".repeat(width - filled)}] ${String(Math.floor(share * 100)).padStart(3)} %`;
}
