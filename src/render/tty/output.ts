/**
 * The only way to write to stdout and stderr, and so to a terminal; a lint rule keeps other files from using them.
 * Control characters in a text are made visible and have no effect. Colours and cursor moves of our own are requested
 * by name and marked in the text with a random key; the key is new in each process and never written.
 */
import { once } from "node:events";
import { Writable } from "node:stream";
import { styleText as styledByNode } from "node:util";
import { visible, visibleStream, withoutEmojiParts } from "../../core/visible.ts";

/** Created on first use: many commands style nothing, and loading node:crypto takes a tenth of the start. */
class RandomMark {
  #text: string | undefined;

  mark(what: string): string {
    this.#text ??= process.getBuiltinModule("node:crypto").randomBytes(12).toString("base64url");
    return `\u0001${this.#text}${what}\u0002`;
  }

  isIn(text: string): boolean {
    return this.#text !== undefined && text.includes(this.#text);
  }

  /** Splits a text at its marks; the marked items are at odd indexes. */
  parted(text: string): readonly string[] {
    if (!this.isIn(text)) return [text];
    return text.split(new RegExp(`\u0001${this.#text}([\\d;]+|[a-z]+)\u0002`));
  }
}

const key = new RandomMark();

/** Cursor moves and modes that our own lines use. */
const MOVES = {
  erase: "\r\u001B[2K",
  /** The cursor's row and everything below it. */
  below: "\r\u001B[J",
  rubout: "\b \b",
  pasteson: "\u001B[?2004h",
  pastesoff: "\u001B[?2004l",
  cursor: "\u001B[?25h",
  bell: "\u0007",
} as const;

export const move = (name: keyof typeof MOVES): string => key.mark(name);

const isMove = (name: string): name is keyof typeof MOVES => Object.hasOwn(MOVES, name);
const sequenceOf = (what: string): string => (isMove(what) ? MOVES[what] : `\u001B[${what}m`);

type Style = Parameters<typeof styledByNode>[0];

/** Styles a text if the output supports colours. */
export function styleText(style: Style, text: string, { stream }: { readonly stream: Output }): string {
  const marks = stream.marksOf(style);
  if (marks === undefined || text === "") return text;
  const [open, close] = marks;
  // A style that ends inside the text would end this one too, since bold and dim share their end code.
  return open + text.replaceAll(close, close + open) + close;
}

/** Whether a text contains styles, so that its length is not its width. */
export const isStyled = (text: string): boolean => key.isIn(text);

/** Sequences that readline sends to edit a line: cursor moves, erasing, line ends. */
const EDITS = /\r\n|[\r\n]|\u001B\[(?:\d{0,4}(?:;\d{0,4})?[ABCDGH]|[01]?[JK])/;
/**
 * The colours of the help, and the sequence by which a drawing library shows the cursor again when the process ends.
 */
const COLOURS = /\u001B\[(?:(?:0|1|2|3|4|22|23|24|3[0-7]|39|9[0-7])m|\?25h)/;

/**
 * Sequences that a drawing library needs to repaint its lines: styles, moves, erasing, its cursor, synchronized
 * updates.
 */
const FRAMES =
  /\r\n|[\r\n]|\u001B\[(?:(?:\d{1,3}(?:;\d{1,3}){0,9})?m|\d{0,4}(?:;\d{0,4})?[ABCDEFGH]|[0-2]?[JK]|\?(?:25|2026)[hl])/;

/** Text written by a library: only the allowed sequences keep their effect. */
function onlyAllowed(allowed: RegExp, text: string): string {
  const parts = text.split(new RegExp(`(${allowed.source})`));
  return parts.map((part, at) => (at % 2 === 1 ? part : visible(part))).join("");
}

type OutputEvent = "resize" | "reader-left" | "error" | "drain";

export interface ProgramOutput {
  readonly write: (bytes: Uint8Array) => Promise<void> | void;
  readonly end: () => Promise<void> | void;
}

export class Output {
  readonly #stream: NodeJS.WriteStream;
  readonly #raw: (chunk: string | Uint8Array, done?: () => void) => boolean;
  /** Receives what is written, in place of the stream. */
  #taker: ((text: string) => void) | undefined;
  /** The end of what was written last, because an emoji may arrive in two parts. */
  #before = "";
  #editor: Writable | undefined;
  #plain = false;
  #hasWritten = false;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    const write = stream.write.bind(stream);
    this.#raw = (chunk, done) => (done === undefined ? write(chunk) : write(chunk, done));
  }

  #put(chunk: string | Uint8Array, done?: () => void): boolean {
    this.#hasWritten = true;
    if (this.#taker === undefined) return this.#raw(chunk, done);
    this.#taker(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
    done?.();
    return true;
  }

  /**
   * Passes all written text unchanged to `taker` until the returned function is called; `taker` has to apply
   * `shownText`.
   */
  taken(taker: (text: string) => void): () => void {
    this.#taker = taker;
    return () => {
      this.#taker = undefined;
    };
  }

  /** The text as `write` would send it: our own styles, with everything else made visible. */
  shownText(text: string): string {
    const parts = key.parted(text);
    return parts.map((part, at) => (at % 2 === 1 ? sequenceOf(part) : this.#fitting(visible(part)))).join("");
  }

  /** For a drawing library: only sequences that repaint its own lines have an effect. */
  frames(): Writable & { readonly columns?: number } {
    return this.#filtered(FRAMES);
  }

  get isTTY(): boolean {
    return this.#stream.isTTY;
  }

  /**
   * Node writes to a terminal synchronously, so a terminal that accepts nothing (Ctrl-S) stops the process. After this
   * call, such output waits in the stream: callers that write a lot have to bound it, and let it drain at the end.
   */
  neverBlocks(): void {
    const handle: unknown = this.#stream.isTTY ? Reflect.get(this.#stream, "_handle") : undefined;
    if (isHandle(handle)) handle.setBlocking(false);
  }

  /** Something was written, whether or not the reader has taken it. */
  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  /** The reader has not yet taken everything that was written. */
  get isBehind(): boolean {
    return this.waiting > 0;
  }

  /** The number of waiting bytes. */
  get waiting(): number {
    return this.#stream.writableLength;
  }

  /** Resolves when the reader has taken everything written so far; at once if it already has, or if it is gone. */
  async allTaken(): Promise<void> {
    if (!this.isBehind || this.#stream.destroyed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#raw("", resolve);
    await promise;
  }

  /** For screen readers, and on request: words instead of marks, no colours, no rewritten lines. */
  get plain(): boolean {
    return this.#plain;
  }

  becomePlain(): void {
    this.#plain = true;
  }

  /** A line can be rewritten here, and somebody is watching. */
  get redraws(): boolean {
    const { CI, TERM } = process.env;
    return this.#stream.isTTY && !this.#plain && TERM !== "dumb" && (CI ?? "") === "";
  }

  get columns(): number | undefined {
    return this.#stream.columns;
  }

  get rows(): number | undefined {
    return this.#stream.rows;
  }

  /** Returns false if the caller should wait before writing more. */
  readonly write = (text: string): boolean => {
    if (this.#taker !== undefined) {
      this.#taker(text);
      return true;
    }
    const parts = key.parted(text);
    const shown = parts.map((part, at) => (at % 2 === 1 ? sequenceOf(part) : this.#shown(part)));
    return this.#put(shown.join(""));
  };

  /** Bypasses the taker: for changes to the terminal's own state. */
  writeNow(text: string): void {
    this.#raw(this.shownText(text));
  }

  /** Writes and waits until the reader has caught up. */
  async writeAll(text: string): Promise<void> {
    if (!this.write(text)) await once(this.#stream, "drain");
  }

  #shown(text: string): string {
    const shown = visible(text, this.#before);
    if (text !== "") this.#before = (this.#before + text.slice(-6)).slice(-6);
    return this.#fitting(shown);
  }

  /** Terminals disagree on the width of composed emoji, so they get the parts one by one. */
  #fitting(shown: string): string {
    return this.#stream.isTTY ? withoutEmojiParts(shown) : shown;
  }

  /** The marks that open and close a style; undefined if the output has no styles. */
  marksOf(style: Style): readonly [open: string, close: string] | undefined {
    if (this.#plain) return undefined;
    const [open = "", close = ""] = styledByNode(style, "|", { stream: this.#stream }).split("|");
    return open === "" ? undefined : [keyedCodes(open), keyedCodes(close)];
  }

  on(event: OutputEvent, listener: () => void): () => void {
    this.#stream.on(event, listener);
    return () => void this.#stream.removeListener(event, listener);
  }

  /** Reports that the reader has gone; returns false if no listener needs to clean up first. */
  readerLeft(): boolean {
    return this.#stream.emit("reader-left");
  }

  /** Output of a program in a box: a file or pipe gets the raw bytes, a terminal gets visible text. */
  program(): ProgramOutput {
    const stream = this.#stream;
    const state = { left: false };
    stream.once("error", () => (state.left = true));
    const put = (chunk: Uint8Array | string): Promise<void> | void => {
      // Output for a reader that has gone is dropped, because it would never drain.
      if (chunk.length === 0 || state.left || this.#put(chunk)) return undefined;
      return once(stream, "drain").then(() => undefined);
    };
    if (!stream.isTTY) return { write: put, end: () => undefined };
    const text = visibleStream();
    return {
      write: (bytes) => put(this.#fitting(text.push(bytes))),
      end: () => put(this.#fitting(text.end())),
    };
  }

  /** Connects a shell's terminal in the box to this one; `leave` restores this one's state. */
  boxTerminal(): { readonly write: (bytes: Uint8Array) => void; readonly leave: () => void } {
    const filter = screenFilter();
    return {
      write: (bytes) => void this.#put(filter(bytes)),
      leave: () => void this.#put(SCREEN_RESET),
    };
  }

  /** Used only by readline. */
  get editor(): NodeJS.WritableStream {
    this.#editor ??= this.#filtered(EDITS);
    return this.#editor;
  }

  #filtered(allowed: RegExp): Writable {
    const stream = this.#stream;
    const filtered = new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        this.#raw(this.#fitting(onlyAllowed(allowed, String(chunk))));
        done();
      },
    });
    for (const size of ["columns", "rows", "isTTY"] as const)
      Object.defineProperty(filtered, size, { get: () => stream[size] });
    const resized = (): void => void filtered.emit("resize");
    stream.on("resize", resized);
    filtered.once("close", () => stream.removeListener("resize", resized));
    return filtered;
  }

  /** Also filters what libraries write to the stream directly; only the colours of the help remain. */
  guard(): void {
    const write = (chunk: string | Uint8Array, ...more: readonly unknown[]): boolean => {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      const done = more.find((each) => typeof each === "function") as (() => void) | undefined;
      return this.#put(this.#fitting(onlyAllowed(COLOURS, text)), done);
    };
    Object.assign(this.#stream, { write });
  }
}

/** Node has no public name for it; without it, writing to a terminal stays as Node does it. */
const isHandle = (handle: unknown): handle is { readonly setBlocking: (on: boolean) => unknown } =>
  typeof handle === "object" &&
  handle !== null &&
  "setBlocking" in handle &&
  typeof handle.setBlocking === "function";

const keyedCodes = (sequences: string): string =>
  [...sequences.matchAll(/\u001B\[([\d;]+)m/g)].map(([, codes = ""]) => key.mark(codes)).join("");

/** The end of a control string: its terminator, or anything else that terminals accept as one. */
const END = /\u001B\\|[\u0007\u009C\u0018\u001A]/;

/** The start of OSC, DCS, SOS, PM and APC strings, in their two-character and one-character forms. */
const START = /\u001B[\]PX^_]|[\u0090\u0098\u009D\u009E\u009F]/;

/** Restores a person's terminal: colours, cursor, main screen, mouse, bracketed paste. */
const SCREEN_RESET =
  "\u001B[0m\u001B[?25h\u001B[?1049l\u001B[?1000l\u001B[?1002l\u001B[?1003l\u001B[?1006l\u001B[?2004l\u001B[?1l\u001B>";

export const stdout = new Output(process.stdout);
export const stderr = new Output(process.stderr);

interface PlainConditions {
  /** From `--plain` or the setting. */
  readonly plain: boolean;
  readonly isTTY: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A terminal that cannot move its cursor needs plain output. A pipe has no cursor. */
export const isPlainWanted = ({ plain, isTTY, env }: PlainConditions): boolean =>
  plain || (isTTY && env["TERM"] === "dumb");

/** Makes both streams plain, before anything is shown, so that all output has the same form. */
export function makeStreamsPlain(): void {
  stdout.becomePlain();
  stderr.becomePlain();
}

/**
 * Filters a program's terminal output for a person's terminal: colours and cursor moves pass, control strings do not
 * (titles, clipboard, notifications, downloads, requests that make the terminal reply).
 */
function screenFilter(): (bytes: Uint8Array) => string {
  const decoder = new TextDecoder();
  let pending = "";
  let inString = false;
  return (bytes) => {
    let text = pending + decoder.decode(bytes, { stream: true });
    pending = "";
    let out = "";
    while (text !== "") {
      const next = inString ? END.exec(text) : START.exec(text);
      if (next === null) {
        const cut = text.endsWith("\u001B") ? text.length - 1 : text.length;
        if (!inString) out += text.slice(0, cut);
        pending = text.slice(cut);
        break;
      }
      if (!inString) out += text.slice(0, next.index);
      text = text.slice(next.index + next[0].length);
      inString = !inString;
    }
    return out;
  };
}

/** For a program of the user's that owns the terminal until it ends, such as an editor. */
export const WHOLE_TERMINAL = "inherit";
