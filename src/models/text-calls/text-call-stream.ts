import type { OfferedTool, Reading, ReadingOptions } from "./call-reading.ts";
import { Scanner } from "./reply-scanner.ts";
import { isShown, itemAfter, OfferedTools, settle } from "./settle.ts";

const SMALL = 512;

/** A reply as it comes. What may be a call is held back; how the reply is cut into chunks changes nothing. */
export class CallStream {
  readonly #tools: OfferedTools;
  readonly #readers: ReadonlySet<string>;
  readonly #scanner: Scanner;
  /** Below this length another look is not worth it: what is held back would be read again for every letter. */
  #next = 0;
  #settled = 0;
  #partOfItem = 0;
  #shown = "";
  #space = "";

  constructor(tools: readonly OfferedTool[], options: ReadingOptions = {}) {
    this.#tools = new OfferedTools(tools);
    this.#readers = new Set(options.readers ?? PURE_READERS);
    this.#scanner = new Scanner(this.#tools);
  }

  /** The text that may be displayed now, behind all that was given before. */
  push(chunk: string): string {
    const scanner = this.#scanner;
    scanner.text += chunk;
    const { length } = scanner.text;
    if (length < this.#next) return "";
    scanner.scan(false);
    const held = length - scanner.at;
    this.#next = held < SMALL ? 0 : length + Math.floor(held / 4);
    return this.#release();
  }

  /**
   * The same as the reading of the whole text. Its prose begins with what `push` gave, unless a late `</think>` made
   * that a thought.
   */
  end(): Reading {
    return readOffered(this.#scanner.text, this.#tools, this.#readers);
  }

  #release(): string {
    const { items, text } = this.#scanner;
    const { list } = items;
    const parts: string[] = [];
    if (list.length < this.#settled) this.#settled = 0;
    for (; this.#settled < list.length; this.#settled += 1) {
      const item = list[this.#settled];
      if (item === undefined) break;
      if (item.kind === "prose") {
        const from = Math.max(item.from, this.#partOfItem);
        parts.push(text.slice(from, item.to));
        this.#partOfItem = Math.max(item.to, this.#partOfItem);
        if (this.#settled === list.length - 1) break;
      } else if (item.kind === "calls") {
        const shown = isShown(item, itemAfter(list, this.#settled, text), text, false);
        if (shown === undefined) break;
        if (shown) parts.push(text.slice(item.from, item.to));
      }
    }
    return this.#visible(parts.join(""));
  }

  /** Space at the ends is no prose: it is held until something follows. */
  #visible(text: string): string {
    const given = this.#space + text;
    const whole = this.#shown === "" ? given.trimStart() : given;
    const visible = whole.trimEnd();
    this.#space = whole.slice(visible.length);
    this.#shown += visible;
    return visible;
  }
}

/** Tools that change nothing: for them alone a notation is repaired. */
const PURE_READERS: readonly string[] = [
  "read_file",
  "list_dir",
  "glob",
  "grep",
  "notes",
  "show_full",
  "semantic_search",
];

/** Reads a whole reply. Never throws. */
export function readCalls(
  text: string,
  tools: readonly OfferedTool[],
  options: ReadingOptions = {},
): Reading {
  return readOffered(text, new OfferedTools(tools), new Set(options.readers ?? PURE_READERS));
}

function readOffered(text: string, tools: OfferedTools, readers: ReadonlySet<string>): Reading {
  const scanner = new Scanner(tools);
  scanner.text = text;
  scanner.scan(true);
  return settle(scanner.items.list, text, { tools, readers });
}
