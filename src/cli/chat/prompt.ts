import { createInterface, type Interface } from "node:readline";
import { Readable } from "node:stream";
import type { Keyboard } from "./keyboard.ts";
import type { Piece } from "./keys.ts";
import { Pastes } from "./pastes.ts";
import { type Output } from "../../render/tty/output.ts";

export type Line =
  | { readonly kind: "line"; readonly text: string }
  /** Ctrl-C; `empty` when there was nothing to throw away. */
  | { readonly kind: "interrupt"; readonly empty: boolean }
  /** Ctrl-D, or the terminal is gone. */
  | { readonly kind: "end" };

export type Complete = (line: string) => readonly [hits: readonly string[], of: string];

const PROMPT = "harness> ";
const MORE = "     ... ";
const MOST_HISTORY = 200;

/** Asks a person for a text: lines as readline edits them, more than one by a backslash at the end or by pasting. */
export class Prompt {
  readonly #keyboard: Keyboard;
  readonly #output: Output;
  readonly #complete: Complete;
  readonly #pastes = new Pastes();
  #reader: Interface | undefined;
  /** Newest first. */
  #history: string[] = [];

  constructor(keyboard: Keyboard, output: Output, complete: Complete) {
    this.#keyboard = keyboard;
    this.#output = output;
    this.#complete = complete;
  }

  /** What the arrow keys bring back, oldest first. */
  remember(texts: readonly string[]): void {
    this.#history = texts.toReversed().map((text) => this.#pastes.folded(text));
  }

  /** After something else was on the screen. */
  redraw(): void {
    this.#reader?.prompt(true);
  }

  /** `initial` stands there to be sent or edited; whoever types something else types over it. */
  async ask(initial = ""): Promise<Line> {
    const lines: string[] = [];
    let fill = this.#pastes.folded(initial);
    for (;;) {
      const line = await this.#line(lines.length === 0 ? PROMPT : MORE, fill);
      fill = "";
      if (line.kind === "interrupt") return { ...line, empty: line.empty && lines.length === 0 };
      if (line.kind === "end") return line;
      const goesOn = /(?<!\\)(?:\\\\)*\\$/.test(line.text);
      lines.push(goesOn ? line.text.slice(0, -1) : line.text);
      if (!goesOn) return { kind: "line", text: this.#pastes.unfolded(lines.join("\n")) };
    }
  }

  #line(prompt: string, fill: string): Promise<Line> {
    const input = new Readable({ read: () => undefined });
    const reader = createInterface({
      input,
      output: this.#output.editor,
      terminal: true,
      prompt,
      history: this.#history,
      historySize: MOST_HISTORY,
      removeHistoryDuplicates: true,
      completer: (line: string) => {
        const [hits, of] = this.#complete(line);
        return [[...hits], of];
      },
    });
    const { promise, resolve } = Promise.withResolvers<Line>();
    reader.on("history", (history: string[]) => (this.#history = [...history]));
    reader.once("line", (text) => resolve({ kind: "line", text }));
    reader.once("SIGINT", () => resolve({ kind: "interrupt", empty: reader.line === "" }));
    reader.once("close", () => resolve({ kind: "end" }));
    this.#reader = reader;
    reader.prompt();
    if (fill !== "") reader.write(fill);
    let offered = fill !== "";
    const take = (piece: Piece | undefined): void => {
      if (piece === undefined) return reader.close();
      if (offered && isTyped(piece)) reader.write("", { ctrl: true, name: "u" });
      offered = false;
      this.#feed(reader, input, piece);
    };
    for (const event of ["line", "SIGINT", "close"] as const)
      reader.once(event, () => this.#keyboard.done(take));
    this.#keyboard.read(take);
    return promise.then((line) => {
      this.#reader = undefined;
      reader.close();
      if (line.kind !== "line") this.#output.write("\n");
      return line;
    });
  }

  #feed(reader: Interface, input: Readable, piece: Piece): void {
    if (piece.kind === "paste") reader.write(this.#pastes.folded(piece.text));
    else if (piece.kind === "keys") input.emit("data", Buffer.from(piece.text));
    else if (piece.kind === "interrupt") input.emit("data", Buffer.from("\u0003"));
  }
}

/** As against keys that move, send or erase. */
const isTyped = ({ kind, ...piece }: Piece): boolean =>
  kind === "paste" || ("text" in piece && /^[^\u0000-\u001F\u007F]/.test(piece.text));
