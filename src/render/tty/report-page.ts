import { visibleLine } from "../../core/visible.ts";
import type { Tone, Worded } from "../report/words.ts";
import { widthOfStream, wrapped } from "./fitted.ts";
import { type Output, styleText } from "./output.ts";

const COLOURS = { good: "green", bad: "red", held: "yellow", plain: "dim" } as const satisfies Record<
  Tone,
  unknown
>;

/** Lines as they come together; nothing that goes in here by `wrapped` or `said` acts on a terminal. */
export class Page {
  readonly #stream: Output;
  readonly width: number;
  text = "";

  constructor(stream: Output) {
    this.#stream = stream;
    this.width = widthOfStream(stream);
  }

  line(text: string): void {
    this.text += `${text}\n`;
  }

  heading(text: string): void {
    this.line(`\n${styleText("bold", text, { stream: this.#stream })}`);
  }

  wrapped(text: string, indent = "  "): void {
    for (const part of text.split("\n"))
      for (const line of wrapped(part, this.width - indent.length)) this.line(indent + line);
  }

  dim(text: string): string {
    return styleText("dim", text, { stream: this.#stream });
  }

  said({ tone, text }: Worded): string {
    return styleText(COLOURS[tone], visibleLine(text), { stream: this.#stream });
  }
}
