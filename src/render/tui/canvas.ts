import { Readable, type Writable } from "node:stream";
import { Box, type Instance, render, Static, Text, useCursor } from "ink";
import { createElement, type ReactElement } from "react";
import type { Output } from "../tty/output.ts";

/** The part that is drawn last, and redrawn whenever it changes. */
export interface ScreenFrame {
  readonly rows: readonly string[];
  /** Both count from 0; undefined if nothing can be typed. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined;
}

interface Item {
  readonly text: string;
}

interface ChatView extends ScreenFrame {
  readonly items: readonly Item[];
}

const NOTHING: Item = { text: "" };
/** More rows at once are drawn in pieces. */
const ROWS_AT_ONCE = 200;
const FRAMES_A_SECOND = 30;

/**
 * The part that Ink does: finished rows are written once, above a frame that is repainted in place. Everything that
 * reaches the terminal goes through an Output's writer, which passes only sequences that repaint lines; the keyboard is
 * handled elsewhere.
 */
export class Canvas {
  readonly #output: Output;
  #instance: Instance | undefined;
  #stream: Writable | undefined;
  #items: Item[] = [];

  constructor(output: Output) {
    this.#output = output;
  }

  get isOpen(): boolean {
    return this.#instance !== undefined;
  }

  /** Rows may have styles of the output; each row has to fit its width. */
  draw(above: readonly string[], frame: ScreenFrame): void {
    const items = this.#itemsOf(above);
    const rows = frame.rows.map((row) => this.#output.shownText(row));
    const shown = createElement(Chat, { items, rows, cursor: frame.cursor });
    if (this.#instance === undefined) this.#open(shown);
    else this.#instance.rerender(shown);
  }

  /** Resolves when everything drawn is on its way to the terminal. */
  async written(): Promise<void> {
    await this.#instance?.waitUntilRenderFlush();
  }

  /** Removes the frame; the rows above it stay. */
  close(): void {
    const instance = this.#instance;
    if (instance === undefined) return;
    instance.rerender(createElement(Chat, { items: this.#itemsOf([]), rows: [], cursor: undefined }));
    this.#instance = undefined;
    instance.unmount();
    this.#stream?.destroy();
    this.#items = [];
  }

  /** For use after others have written: the old frame stays where it is, and the next one is drawn below. */
  abandon(): void {
    const instance = this.#instance;
    if (instance === undefined) return;
    this.#instance = undefined;
    this.#items = [];
    Object.assign(this.#stream ?? {}, { write: discardWrite });
    instance.unmount();
    this.#stream?.destroy();
  }

  #open(shown: ReactElement): void {
    const stream = this.#output.frames();
    this.#stream = stream;
    this.#instance = render(shown, {
      stdout: stream,
      stderr: stream,
      stdin: Readable.from([]),
      interactive: true,
      patchConsole: false,
      exitOnCtrlC: false,
      isScreenReaderEnabled: false,
      maxFps: FRAMES_A_SECOND,
      incrementalRendering: true,
    });
  }

  /** Items that were already drawn are only counted. */
  #itemsOf(above: readonly string[]): readonly Item[] {
    if (above.length === 0) return this.#items;
    const fresh: Item[] = [];
    for (let at = 0; at < above.length; at += ROWS_AT_ONCE)
      fresh.push({ text: this.#output.shownText(above.slice(at, at + ROWS_AT_ONCE).join("\n")) });
    this.#items = [...this.#items.map(() => NOTHING), ...fresh];
    return this.#items;
  }
}

/** Discards what a lost frame still writes. */
function discardWrite(...args: readonly unknown[]): boolean {
  const done = args.find((each) => typeof each === "function") as (() => void) | undefined;
  if (done !== undefined) setImmediate(done);
  return true;
}

/** The finished rows above, and the frame. */
function Chat({ items, rows, cursor }: ChatView): ReactElement {
  const { setCursorPosition } = useCursor();
  setCursorPosition(cursor === undefined ? undefined : { ...cursor });
  return createElement(
    Box,
    { flexDirection: "column" },
    createElement(Static<Item>, {
      items: [...items],
      children: ({ text }, at) => createElement(Text, { key: at }, text === "" ? " " : text),
    }),
    ...rows.map((row, at) =>
      createElement(Text, { key: `row ${at}`, wrap: "truncate" }, row === "" ? " " : row),
    ),
  );
}
