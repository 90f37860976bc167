import type { OfferedTool, NotationResult, TextReading } from "./text-protocol.ts";
import { announcedAsShown, findHidden, insideCode, mayBegin, mayBeToken } from "./hidden-text.ts";
import { type ReplyItem, Items } from "./markup.ts";
import {
  AnyNames,
  inOtherForm,
  MAY_MISS,
  readBare,
  readFenced,
  weakAsProse,
  withMissed,
} from "./weak-calls.ts";
import {
  CLOSERS,
  ENDS,
  opensHarmony,
  opensWrapped,
  readHarmony,
  readWrapped,
  type HarmonySegment,
  strippedThought,
  tokenAt,
} from "./notations.ts";
import { isShown, itemAfter, OfferedTools, settle } from "./settle.ts";

const RESCAN_LENGTH = 512;

/**
 * A reply as it streams in. Text that may be a call is held back. How the reply is cut into chunks makes no difference.
 */
export class CallStream {
  readonly #tools: OfferedTools;
  readonly #scanner: Scanner;
  /** Below this length, no new scan is made: it would read the held-back text again for every letter. */
  #next = 0;
  #settled = 0;
  #partOfItem = 0;
  #shown = "";
  #space = "";

  constructor(tools: readonly OfferedTool[]) {
    this.#tools = new OfferedTools(tools);
    this.#scanner = new Scanner(this.#tools);
  }

  /** The additional text that may be displayed now. */
  push(chunk: string): string {
    const scanner = this.#scanner;
    scanner.text += chunk;
    const { length } = scanner.text;
    if (length < this.#next) return "";
    scanner.scan(false);
    const unread = length - scanner.at;
    this.#next = unread < RESCAN_LENGTH ? 0 : length + Math.floor(unread / 4);
    return this.#release();
  }

  /**
   * The same as the reading of the whole text. Its prose begins with the text from `push`, unless a late `</think>`
   * turned that text into a thought.
   */
  end(): TextReading {
    return readOffered(this.#scanner.text, this.#tools);
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

  /** White space at the ends is not prose: it is held back until something follows. */
  #visible(text: string): string {
    const fresh = this.#space + text;
    const whole = this.#shown === "" ? fresh.trimStart() : fresh;
    const visible = whole.trimEnd();
    this.#space = whole.slice(visible.length);
    this.#shown += visible;
    return visible;
  }
}

/** Reads a whole reply. Never throws. */
export const readCalls = (text: string, tools: readonly OfferedTool[]): TextReading =>
  readOffered(text, new OfferedTools(tools));

function readOffered(text: string, tools: OfferedTools): TextReading {
  const reading = readKnown(text, tools);
  if (reading.calls.length + reading.malformed.length + reading.missed.length > 0) return reading;
  const other = inOtherForm(reading.prose, tools);
  return other === undefined ? reading : { ...reading, missed: [other] };
}

function readKnown(text: string, tools: OfferedTools): TextReading {
  const list = itemsOf(text, tools);
  const reading = settle(list, text, tools);
  if (!MAY_MISS.test(text)) return reading;
  return withMissed(reading, itemsOf(text, new AnyNames(tools)), text, {
    tools,
    asProse: () => settle(list.map(weakAsProse), text, tools),
  });
}

function itemsOf(text: string, tools: OfferedTools): readonly ReplyItem[] {
  const scanner = new Scanner(tools);
  scanner.text = text;
  scanner.scan(true);
  return scanner.items.list;
}

const SPECIAL = /[\n`"“”«»<[{fAcatO◁]/g;
const INDENT = /[ \t]*/y;

/**
 * Scans a reply once, from left to right. Unless the text is final, it stops where later text could still change the
 * result, and continues from there when more text has arrived.
 */
class Scanner {
  readonly items = new Items();
  text = "";
  /** Everything before this is in the items. */
  at = 0;
  readonly #tools: OfferedTools;
  readonly #quotation = new Quotation();
  /** Where the line began or the previous item ended. */
  #edge = 0;
  /** The beginning of the line at `at`, or -1 within a line. */
  #lineStart = 0;
  #final = false;
  /** The last calls that were judged by the line before them. */
  #last = { end: 0, shown: false };

  constructor(tools: OfferedTools) {
    this.#tools = tools;
  }

  scan(final: boolean): void {
    this.#final = final;
    if (this.at === 0 && !this.#opening()) return;
    while (this.at < this.text.length) if (!this.#step()) return;
  }

  #opening(): boolean {
    const thought = strippedThought(this.text, this.#final);
    return thought === undefined || this.#segment(thought);
  }

  #step(): boolean {
    if (this.#lineStart >= 0) return this.#line();
    const { text, at } = this;
    const char = text[at] ?? "";
    if (char === "\n") return this.#newLine();
    if (char === "`" && !this.#final && /^`{1,9}$/.test(text.slice(at, at + 10))) return false;
    if (this.#quotation.pass(text, at)) return this.#prose(this.#quotation.end);
    const done = this.#quotation.open ? undefined : this.#inline(char);
    return done ?? this.#prose(this.#nextSpecial(at + 1));
  }

  /** Handles an item within a line; undefined if none begins here. */
  #inline(char: string): boolean | undefined {
    const { text, at } = this;
    const hidden = findHidden(text, at, { edge: this.#edge, final: this.#final, called: this.items.called });
    if (hidden !== undefined) return this.#hide(hidden);
    if (!this.#final && mayBeToken(text, at)) return false;
    return char !== "{" && mayBegin(text, at, this.#edge) ? this.#strong(false) : undefined;
  }

  #nextSpecial(from: number): number {
    SPECIAL.lastIndex = from;
    return SPECIAL.exec(this.text)?.index ?? this.text.length;
  }

  #newLine(): boolean {
    this.#prose(this.at + 1);
    this.#lineStart = this.at;
    this.#edge = this.at;
    return true;
  }

  #line(): boolean {
    const { text } = this;
    INDENT.lastIndex = this.at;
    const first = this.at + (INDENT.exec(text)?.[0].length ?? 0);
    const char = text[first];
    if (char === undefined) return this.#final && this.#prose(first);
    if (char === "\n" || char === "\r") this.#quotation.reset();
    const done = this.#block(first, char);
    if (done !== undefined) return done;
    this.items.prose(this.at, first);
    this.at = first;
    return this.#beginning(char) ?? this.#noBeginning();
  }

  /** A fence, a quoted line or an indented one. */
  #block(first: number, char: string): boolean | undefined {
    const atStart = this.at === this.#lineStart;
    const indent = this.text.slice(this.at, first);
    const deep = atStart && (indent.length > 3 || indent.includes("\t"));
    const fence = char === "`" || char === "~" ? this.#fence(first, deep) : undefined;
    if (fence !== undefined) return fence;
    return atStart && (char === ">" || deep) ? this.#wholeLine() : undefined;
  }

  /** A call at the beginning of a line. */
  #beginning(char: string): boolean | undefined {
    const { open } = this.#quotation;
    if (!this.#final && !open && mayBeToken(this.text, this.at)) return false;
    const weak = char === "{" || char === "[" ? this.#weak() : undefined;
    return weak ?? (open ? undefined : this.#strong(true));
  }

  #noBeginning(): boolean {
    this.#lineStart = -1;
    return true;
  }

  #wholeLine(): boolean {
    const end = this.text.indexOf("\n", this.at);
    if (end === -1 && !this.#final) return false;
    this.#prose(end === -1 ? this.text.length : end);
    this.#lineStart = -1;
    return true;
  }

  #fence(first: number, deep: boolean): boolean | undefined {
    const read = readFence(this.text, first, this.#tools, this.#final);
    if (read === undefined) return undefined;
    if (read.kind === "more") return false;
    if (read.kind === "text") return this.#prose(read.end);
    if (deep || this.#quotation.open || this.#announced(first, read.end, true)) return this.#prose(read.end);
    return this.#calls(read, true);
  }

  #weak(): boolean | undefined {
    const { text, at } = this;
    const read = readBare(text, at, this.#tools);
    if (read.kind === "more" || (!this.#final && isOpen(text, at, read))) return false;
    if (read.kind === "text") return read.end > at + 1 ? this.#prose(read.end) : undefined;
    const end = behindSeparator(text, read.end);
    const lone = /^[ \t\r]*(?:$|\n|[<[{])/.test(text.slice(end, end + 80));
    if (!lone || this.#quotation.open || insideCode(text, at, 0) || this.#announced(at, read.end, true))
      return this.#prose(read.end);
    return this.#calls({ ...read, end }, true);
  }

  /**
   * Whether the text before says that calls are only shown. What is said before calls goes for all that follow each
   * other; the text of a call says nothing about the next one.
   */
  #announced(at: number, end: number, weak: boolean): boolean {
    const { text } = this;
    const between = text.slice(Math.max(this.#last.end, at - 400), at);
    const isNext = this.#last.end > 0 && /^[\s;,]*$/.test(between);
    const shown = isNext ? this.#last.shown : announcedAsShown(text, at, weak, this.#last.end);
    this.#last = { end, shown };
    return shown;
  }

  /** Undefined if no family's token is here. */
  #strong(lineStart: boolean): boolean | undefined {
    const { text, at } = this;
    if (opensHarmony(text, at)) return this.#segment(readHarmony(text, at, this.#final));
    if (!opensWrapped(text, at, lineStart)) return undefined;
    const read = readWrapped(text, at, this.#final);
    const shown = read.kind === "calls" && this.#announced(at, read.end, false);
    return this.#segment(shown && (this.#final || !read.cut) ? { kind: "text", end: read.end } : read);
  }

  #segment(read: HarmonySegment): boolean {
    if (read.kind === "more") return false;
    if (read.kind === "text") return this.#prose(Math.max(read.end, this.at + 1));
    if (read.kind === "calls") return this.#calls(read, false);
    this.items.add({ kind: "hidden", from: this.at, to: read.from });
    if (read.shown) this.items.prose(read.from, read.to);
    return this.#past(read.end);
  }

  #calls(read: Extract<HarmonySegment, { kind: "calls" }>, weak: boolean): boolean {
    if (!this.#final && (read.cut || read.end >= this.text.length)) return false;
    this.items.add({ kind: "calls", from: this.at, to: read.end, found: read.found, weak });
    return this.#past(read.end);
  }

  #hide(hidden: { readonly end: number; readonly kind: "hidden" | "thought" | "more" | "shown" }): boolean {
    if (hidden.kind === "more") return false;
    if (hidden.kind === "shown") return this.#prose(hidden.end);
    if (hidden.kind === "thought") this.items.forget();
    this.items.add({ kind: "hidden", from: this.at, to: hidden.end });
    return this.#past(hidden.end);
  }

  #past(end: number): boolean {
    this.at = Math.min(end, this.text.length);
    this.#edge = this.at;
    this.#lineStart = this.at;
    this.#quotation.reset();
    return true;
  }

  #prose(end: number): boolean {
    this.items.prose(this.at, end);
    this.at = end;
    if (this.#lineStart >= 0 && end > this.#lineStart && this.text[end - 1] !== "\n") this.#lineStart = -1;
    return true;
  }
}

/** A beginning that may still grow into a bare call. */
const mayGrow = (rest: string): boolean => /^[[{]\s*(?:\{\s*)?["']?[\w.-]*["']?\s*$/.test(rest);

/** A semicolon or comma may separate calls. */
function behindSeparator(text: string, end: number): number {
  const parted = /^\s{0,9}[;,]\s{0,9}(?=[[{<])/.exec(text.slice(end, end + 24));
  return end + (parted?.[0].length ?? 0);
}

/** Whether more text could change the reading of a bare call. */
function isOpen(text: string, at: number, read: Exclude<NotationResult, { kind: "more" }>): boolean {
  if (read.end >= text.length) return true;
  if (read.kind === "text") return mayGrow(text.slice(at, at + 200));
  return read.cut || /^\s{0,9}[;,]?\s{0,9}$/.test(text.slice(read.end, read.end + 24));
}

/** Inline code and quotation marks of a paragraph. Nothing inside an open one is a call. */
class Quotation {
  end = 0;
  #ticks = 0;
  #quoted = false;

  get open(): boolean {
    return this.#ticks > 0 || this.#quoted;
  }

  reset(): void {
    this.#ticks = 0;
    this.#quoted = false;
  }

  /** Whether a mark is here; sets `end` to the place after it. */
  pass(text: string, at: number): boolean {
    const char = text[at];
    this.end = at + 1;
    if (char === "`") {
      while (text[this.end] === "`") this.end += 1;
      const run = this.end - at;
      if (this.#ticks === 0) this.#ticks = run;
      else if (this.#ticks === run) this.#ticks = 0;
      return true;
    }
    if (this.#ticks > 0) return false;
    return this.#mark(text, at);
  }

  #mark(text: string, at: number): boolean {
    const char = text[at];
    if (char === "“" || char === "«") this.#quoted = true;
    else if (char === "”" || char === "»") this.#quoted = false;
    else if (char === '"')
      this.#quoted = !this.#quoted && (at === 0 || /[\s([{:,=—-]/.test(text[at - 1] ?? " "));
    else return false;
    return true;
  }
}

const OPENER = /(`{3,}|~{3,})[ \t]*([^\n`]*)\n/y;
const OPENING = /^(?:`{1,}|~{1,})[^\n`]*$/;
const LANGUAGES: ReadonlySet<string> = new Set(["", "json", "tool_code", "tool_call", "tool_calls"]);

/** A fence with its content; undefined if none begins here. */
function readFence(
  text: string,
  at: number,
  tools: OfferedTools,
  final: boolean,
): NotationResult | undefined {
  OPENER.lastIndex = at;
  const opener = OPENER.exec(text);
  const marks = opener?.[1];
  if (opener === null || marks === undefined)
    return !final && OPENING.test(text.slice(at, at + 200)) ? { kind: "more" } : undefined;
  const body = OPENER.lastIndex;
  const language = (opener[2] ?? "").trim().toLowerCase();
  const close = fenceEnd(text, body, marks);
  if (LANGUAGES.has(language)) {
    const read = readFenced(text, body, language, tools);
    if (read.kind === "calls") return fencedCalls(text, read, { marks, final, close });
  }
  if (close === undefined) return final ? { kind: "text", end: text.length } : { kind: "more" };
  return { kind: "text", end: close };
}

interface Fence {
  readonly marks: string;
  readonly final: boolean;
  readonly close: number | undefined;
}

function fencedCalls(
  text: string,
  read: Extract<NotationResult, { kind: "calls" }>,
  fence: Fence,
): NotationResult {
  if (!fence.final && (read.cut || fence.close === undefined)) return { kind: "more" };
  if (read.cut) return { ...read, end: text.length };
  const end = fenceEnd(text, lineBegin(text, read.end), fence.marks) ?? text.length;
  const between = text.slice(read.end, end).replaceAll(fence.marks, "").trim();
  return between === "" ? { ...read, end } : { kind: "text", end };
}

const lineBegin = (text: string, at: number): number => text.lastIndexOf("\n", at - 1) + 1;

/** The place after the line that closes a fence. */
function fenceEnd(text: string, from: number, marks: string): number | undefined {
  let at = from;
  while (at < text.length) {
    const next = text.indexOf("\n", at);
    const end = next === -1 ? text.length : next;
    const close = closes(text, at, end, marks);
    if (close !== undefined) return close;
    at = end + 1;
  }
  return undefined;
}

/**
 * The place after the marks that close a fence, either on a line of their own or followed by tokens that end the turn.
 */
function closes(text: string, from: number, end: number, marks: string): number | undefined {
  let at = from;
  while (text[at] === " " || text[at] === "\t") at += 1;
  if (!text.startsWith(marks, at) || end - at > 100) return undefined;
  let behind = at;
  while (text[behind] === marks[0]) behind += 1;
  if (text.slice(behind, end).trim() === "") return end;
  return tokenAt(ENDS, text, behind) === undefined && tokenAt(CLOSERS, text, behind) === undefined
    ? undefined
    : behind;
}
