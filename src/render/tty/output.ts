/**
 * The one way to stdout and stderr, and so to a terminal: no other file names them, which a rule of the house checks.
 * A text that is written is shown, never obeyed. What may be obeyed, colours and the moves of our own lines, is asked
 * for by name, and stands in a text under a key that is made anew in each process and leaves none.
 */
import { once } from "node:events";
import { Writable } from "node:stream";
import { styleText as styledByNode } from "node:util";
import { visible, visibleStream, withoutEmojiParts } from "../../core/visible.ts";

/** Made when it is first wanted: many a command sets nothing, and loading what makes it takes a tenth of the start. */
class Key {
  #text: string | undefined;

  mark(what: string): string {
    this.#text ??= process.getBuiltinModule("node:crypto").randomBytes(12).toString("base64url");
    return `\u0001${this.#text}${what}\u0002`;
  }

  isIn(text: string): boolean {
    return this.#text !== undefined && text.includes(this.#text);
  }

  /** What is marked stands at odd places. */
  parted(text: string): readonly string[] {
    if (!this.isIn(text)) return [text];
    return text.split(new RegExp(`\u0001${this.#text}([\\d;]+|[a-z]+)\u0002`));
  }
}

const key = new Key();

/** What else our own lines do to a terminal. */
const MOVES = {
  erase: "\r\u001B[2K",
  rubout: "\b \b",
  pasteson: "\u001B[?2004h",
  pastesoff: "\u001B[?2004l",
} as const;

export const move = (name: keyof typeof MOVES): string => key.mark(name);

const isMove = (name: string): name is keyof typeof MOVES => Object.hasOwn(MOVES, name);
const sequenceOf = (what: string): string => (isMove(what) ? MOVES[what] : `\u001B[${what}m`);

type Style = Parameters<typeof styledByNode>[0];

/** In colours where the output has them. */
export function styleText(style: Style, text: string, { stream }: { readonly stream: Output }): string {
  const marks = stream.marksOf(style);
  if (marks === undefined || text === "") return text;
  const [open, close] = marks;
  // What ends a style within it would end it, too: bold and dim end alike.
  return open + text.replaceAll(close, close + open) + close;
}

/** Whether something in it is set already, so that its length is not its width. */
export const isStyled = (text: string): boolean => key.isIn(text);

/** What readline sends to edit a line: the cursor on it, what is behind the cursor, line ends. */
const EDITS = /\r\n|[\r\n]|\u001B\[(?:\d{0,4}(?:;\d{0,4})?[ABCDGH]|[01]?[JK])/;
/** What the help is set in. */
const COLOURS = /\u001B\[(?:0|1|2|3|4|22|23|24|3[0-7]|39|9[0-7])m/;

/** A text of a library of ours: of what it sends to a terminal nothing but these has an effect. */
function only(allowed: RegExp, text: string): string {
  const parts = text.split(new RegExp(`(${allowed.source})`));
  return parts.map((part, at) => (at % 2 === 1 ? part : visible(part))).join("");
}

type Heard = "resize" | "reader-left" | "error";

export interface ProgramOutput {
  readonly write: (bytes: Uint8Array) => Promise<void> | void;
  readonly end: () => Promise<void> | void;
}

export class Output {
  readonly #stream: NodeJS.WriteStream;
  readonly #put: (chunk: string | Uint8Array, done?: () => void) => boolean;
  /** The end of what was written: an emoji may come in two parts. */
  #before = "";
  #editor: Writable | undefined;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    const write = stream.write.bind(stream);
    this.#put = (chunk, done) => (done === undefined ? write(chunk) : write(chunk, done));
  }

  get isTTY(): boolean {
    return this.#stream.isTTY;
  }

  get columns(): number | undefined {
    return this.#stream.columns;
  }

  get rows(): number | undefined {
    return this.#stream.rows;
  }

  /** Whether there is room for more at once. */
  readonly write = (text: string): boolean => {
    const parts = key.parted(text);
    const shown = parts.map((part, at) => (at % 2 === 1 ? sequenceOf(part) : this.#shown(part)));
    return this.#put(shown.join(""));
  };

  /** The same, no faster than it is read. */
  async writeAll(text: string): Promise<void> {
    if (!this.write(text)) await once(this.#stream, "drain");
  }

  #shown(text: string): string {
    const shown = visible(text, this.#before);
    if (text !== "") this.#before = (this.#before + text.slice(-6)).slice(-6);
    return this.#fitting(shown);
  }

  /** A terminal may set an emoji of several parts in any width: it gets them one by one. */
  #fitting(shown: string): string {
    return this.#stream.isTTY ? withoutEmojiParts(shown) : shown;
  }

  /** What opens and closes a style; undefined where nothing is set. */
  marksOf(style: Style): readonly [open: string, close: string] | undefined {
    const [open = "", close = ""] = styledByNode(style, "|", { stream: this.#stream }).split("|");
    return open === "" ? undefined : [keyedCodes(open), keyedCodes(close)];
  }

  on(event: Heard, listener: () => void): () => void {
    this.#stream.on(event, listener);
    return () => void this.#stream.removeListener(event, listener);
  }

  /** Whoever reads it has left; false where nobody has to put something away first. */
  readerLeft(): boolean {
    return this.#stream.emit("reader-left");
  }

  /** The bytes of a program in a box: a file or a pipe gets them as they are, a terminal is shown them. */
  program(): ProgramOutput {
    const stream = this.#stream;
    const state = { left: false };
    stream.once("error", () => (state.left = true));
    const put = (chunk: Uint8Array | string): Promise<void> | void => {
      // What a reader that left would have got is dropped: nothing would ever drain.
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

  /** A terminal of the box on this one, for whoever asked for a shell there; `leave` puts this one right again. */
  boxTerminal(): { readonly write: (bytes: Uint8Array) => void; readonly leave: () => void } {
    const filter = screenFilter();
    return {
      write: (bytes) => void this.#put(filter(bytes)),
      leave: () => void this.#put(SCREEN_RESET),
    };
  }

  /** For readline alone. */
  get editor(): NodeJS.WritableStream {
    this.#editor ??= this.#editorOver(this.#stream);
    return this.#editor;
  }

  #editorOver(stream: NodeJS.WriteStream): Writable {
    const editor = new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        this.#put(this.#fitting(only(EDITS, String(chunk))));
        done();
      },
    });
    Object.defineProperty(editor, "columns", { get: () => stream.columns });
    Object.defineProperty(editor, "isTTY", { get: () => stream.isTTY });
    stream.on("resize", () => editor.emit("resize"));
    return editor;
  }

  /** What a library writes to it by itself is shown, too; only the colours of the help are left. */
  guard(): void {
    const write = (chunk: string | Uint8Array, ...more: readonly unknown[]): boolean => {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      const done = more.find((each) => typeof each === "function") as (() => void) | undefined;
      return this.#put(this.#fitting(only(COLOURS, text)), done);
    };
    Object.assign(this.#stream, { write });
  }
}

const keyedCodes = (sequences: string): string =>
  [...sequences.matchAll(/\u001B\[([\d;]+)m/g)].map(([, codes = ""]) => key.mark(codes)).join("");

/** Until its terminator, or whatever else a terminal takes for an end. */
const END = /\u001B\\|[\u0007\u009C\u0018\u001A]/;

/** OSC, DCS, SOS, PM, APC: in two characters, or in one. */
const START = /\u001B[\]PX^_]|[\u0090\u0098\u009D\u009E\u009F]/;

/** Leaves a person's terminal as it was: colours, cursor, the other screen, mouse, bracketed paste. */
const SCREEN_RESET =
  "\u001B[0m\u001B[?25h\u001B[?1049l\u001B[?1000l\u001B[?1002l\u001B[?1003l\u001B[?1006l\u001B[?2004l\u001B[?1l\u001B>";

export const stdout = new Output(process.stdout);
export const stderr = new Output(process.stderr);

/**
 * A program's own terminal on a person's: colours and cursor moves pass, strings for the terminal itself do not
 * (titles, the clipboard, notifications, downloads, requests that the terminal answers with a text of its own).
 */
function screenFilter(): (bytes: Uint8Array) => string {
  const decoder = new TextDecoder();
  let held = "";
  let inString = false;
  return (bytes) => {
    let text = held + decoder.decode(bytes, { stream: true });
    held = "";
    let out = "";
    while (text !== "") {
      const next = inString ? END.exec(text) : START.exec(text);
      if (next === null) {
        const cut = text.endsWith("\u001B") ? text.length - 1 : text.length;
        if (!inString) out += text.slice(0, cut);
        held = text.slice(cut);
        break;
      }
      if (!inString) out += text.slice(0, next.index);
      text = text.slice(next.index + next[0].length);
      inString = !inString;
    }
    return out;
  };
}
