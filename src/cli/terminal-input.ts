import { createInterface, type Interface } from "node:readline";
import { Readable } from "node:stream";
import { EXIT, HarnessError } from "../core/errors.ts";
import { visible } from "../core/visible.ts";
import { move, type Output, stdout } from "../render/tty/output.ts";

/** The person's next input. */
export type Line =
  | { readonly kind: "line"; readonly text: string }
  /** Ctrl-C; `empty`: there was no text to discard. */
  | { readonly kind: "interrupt"; readonly empty: boolean }
  /** Ctrl-D, or the terminal is gone. */
  | { readonly kind: "end" };

/** Candidates, and the part of the line that they would replace. */
export type Completion = readonly [hits: readonly string[], of: string];

/** Receives a piece; undefined when no more will come. */
export type InputReader = (piece: InputPiece | undefined) => void;

/** The part of a terminal's input that this needs. */
interface KeySource {
  setRawMode(on: boolean): unknown;
  setEncoding(encoding: "utf8"): unknown;
  on(event: "data", listener: (text: string) => void): unknown;
  on(event: "end" | "error", listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
}

interface KeyboardOptions {
  readonly input: KeySource;
  /** For control sequences to the terminal. */
  readonly write: (text: string) => void;
  /** For Ctrl-C while nothing reads; false if there is nothing to interrupt. */
  readonly onInterrupt: () => boolean;
  /** For Ctrl-Z; until this returns, the terminal is as it was before. */
  readonly suspend: () => void;
}

/**
 * The keys of a person, for one reader at a time. Keys typed while nothing reads wait for the next reader, unless they
 * are dropped: by a reader that they must not answer, or by Ctrl-C.
 */
export class Keyboard implements Disposable {
  readonly #options: KeyboardOptions;
  readonly #pieces = new KeyPieces();
  #ahead: InputPiece[] = [];
  #reader: InputReader | undefined;
  #ended = false;

  constructor(options: KeyboardOptions) {
    this.#options = options;
    const { input } = options;
    input.setEncoding("utf8");
    input.on("data", (text) => this.#take(text));
    input.on("end", () => this.end());
    input.on("error", () => this.end());
    this.#grab();
    // An earlier question may have left the input paused.
    input.resume();
  }

  /** The previous reader continues when this one is done. */
  read(reader: InputReader): void {
    this.#reader = reader;
    this.#hand();
  }

  /** The reader has what it wanted. */
  done(reader: InputReader): void {
    if (this.#reader === reader) this.#reader = undefined;
  }

  drop(): void {
    this.#ahead = [];
  }

  end(): void {
    this.#ended = true;
    this.#hand();
  }

  /**
   * The program continues after it was stopped. Raw mode is turned off first, because a shell may have changed the
   * terminal meanwhile, and Node does not set a mode that it believes to be set.
   */
  resume(): void {
    this.#options.input.setRawMode(false);
    this.#grab();
  }

  [Symbol.dispose](): void {
    this.#release();
    this.#options.input.pause();
  }

  /** Ctrl-C, from the keyboard or as a signal. */
  interrupt(): void {
    this.drop();
    if (this.#reader === undefined && this.#options.onInterrupt()) return;
    this.#ahead.push({ kind: "interrupt" });
    this.#hand();
  }

  #take(text: string): void {
    for (const piece of this.#pieces.push(text)) {
      if (piece.kind === "suspend") {
        this.#release();
        this.#options.suspend();
      } else if (piece.kind === "interrupt") {
        this.interrupt();
      } else {
        this.#ahead.push(piece);
        this.#hand();
      }
    }
  }

  #hand(): void {
    while (this.#reader !== undefined) {
      const next = this.#ahead.shift();
      if (next === undefined && !this.#ended) return;
      this.#reader(next);
      if (next === undefined) return;
    }
  }

  #grab(): void {
    this.#options.input.setRawMode(true);
    this.#options.write(move("pasteson"));
  }

  #release(): void {
    this.#options.write(move("pastesoff"));
    this.#options.input.setRawMode(false);
  }
}

/** A signal that stopped the program has stopped it by then. */
const STOPPING_MS = 50;

/** A program that stops itself for Ctrl-Z, until `fg` continues it. */
export class Suspension {
  #isOn = false;

  get isOn(): boolean {
    return this.#isOn;
  }

  /**
   * The system stops no program that no shell could continue (the command of a container, of ssh, of a terminal
   * window): `unstopped` is called then.
   */
  begin(unstopped: (why: string) => void): void {
    this.#isOn = true;
    process.kill(process.pid, "SIGTSTP");
    // After a stop, the handlers of SIGCONT run before this check.
    setTimeout(() => setImmediate(() => void (this.#isOn && unstopped(UNSTOPPED))), STOPPING_MS);
  }

  /** The program goes on; false if it did not stop itself. */
  end(): boolean {
    const wasOn = this.#isOn;
    this.#isOn = false;
    return wasOn;
  }
}

const UNSTOPPED = "no shell here could continue a suspended program, so Ctrl-Z does nothing";

/** Keyboard input, in pieces that each belong to one reader. */
export type InputPiece =
  /** At most one line end, and only at the end. */
  | { readonly kind: "keys"; readonly text: string }
  /** The text between the marks that terminals put around a paste, however many lines. */
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: "interrupt" }
  | { readonly kind: "suspend" };

const START = "\u001B[200~";
const END = "\u001B[201~";
const NEXT = /\u0003|\u001A|\r\n|\r|\n/;

/** Splits the text of a terminal in raw mode. A mark may arrive in several chunks. */
export class KeyPieces {
  #pending = "";
  #inPaste = false;

  push(chunk: string): readonly InputPiece[] {
    let text = this.#pending + chunk;
    this.#pending = "";
    const pieces: InputPiece[] = [];
    for (;;) {
      const mark = this.#inPaste ? END : START;
      const at = text.indexOf(mark);
      if (at === -1) break;
      pieces.push(...this.#before(text.slice(0, at)));
      text = text.slice(at + mark.length);
      this.#inPaste = !this.#inPaste;
    }
    const whole = text.length - this.#openEnd(text);
    this.#pending = text.slice(whole);
    if (this.#inPaste) this.#pending = text;
    else pieces.push(...keysOf(text.slice(0, whole)));
    return pieces;
  }

  #before(text: string): readonly InputPiece[] {
    if (!this.#inPaste) return keysOf(text);
    return [{ kind: "paste", text: text.replaceAll(/\r\n?/g, "\n") }];
  }

  /**
   * How much of the end may be the beginning of a mark. The escape key alone does not count: it would wait for the next
   * key.
   */
  #openEnd(text: string): number {
    for (let length = START.length - 1; length > 1; length -= 1)
      if (text.endsWith(START.slice(0, length))) return length;
    return 0;
  }
}

function keysOf(text: string): readonly InputPiece[] {
  const pieces: InputPiece[] = [];
  let rest = text;
  while (rest !== "") {
    const next = NEXT.exec(rest);
    const end = next === null ? rest.length : next.index;
    const mark = next?.[0] ?? "";
    const isLine = mark.startsWith("\r") || mark === "\n";
    const keys = rest.slice(0, end) + (isLine ? "\r" : "");
    if (keys !== "") pieces.push({ kind: "keys", text: keys });
    if (mark === "\u0003") pieces.push({ kind: "interrupt" });
    if (mark === "\u001A") pieces.push({ kind: "suspend" });
    rest = rest.slice(end + mark.length);
  }
  return pieces;
}

type Complete = (line: string) => Completion | Promise<Completion>;

const PROMPT = "harness> ";
const MORE = "     ... ";
const MAX_HISTORY = 200;

/** Asks a person for a text: lines edited by readline; several lines by a backslash at the end, or by pasting. */
export class Prompt {
  readonly #keyboard: Keyboard;
  readonly #output: Output;
  readonly #complete: Complete;
  readonly #words: string;
  readonly #pastes = new Pastes();
  #reader: Interface | undefined;
  /** Newest first. */
  #history: string[] = [];

  constructor(keyboard: Keyboard, output: Output, complete: Complete, words = PROMPT) {
    this.#keyboard = keyboard;
    this.#output = output;
    this.#complete = complete;
    this.#words = words;
  }

  /** Sets what the arrow keys bring back, oldest first. */
  remember(texts: readonly string[]): void {
    this.#history = texts.toReversed().map((text) => this.#pastes.folded(text));
  }

  /** Called after something else was on the screen. */
  redraw(): void {
    this.#reader?.prompt(true);
  }

  /** Writes something else on lines of its own, with the line that is being edited below it again. */
  besides(write: () => void): void {
    const reader = this.#reader;
    if (reader === undefined) return write();
    this.#output.write("\n");
    write();
    // readline would move up over the rows that it drew before.
    Reflect.set(reader, "prevRows", 0);
    reader.prompt(true);
  }

  /** Nothing waits for a line any more. */
  leave(): void {
    this.#reader?.close();
  }

  /** `initial` is offered to be sent or edited; typing something else replaces it, unless it is `kept`. */
  async ask(initial = "", kept = false): Promise<Line> {
    const lines: string[] = [];
    let fill = kept ? initial : this.#pastes.folded(initial);
    for (;;) {
      const line = await this.#line(lines.length === 0 ? this.#words : MORE, fill, kept);
      fill = "";
      if (line.kind === "interrupt") return { ...line, empty: line.empty && lines.length === 0 };
      if (line.kind === "end") return line;
      const goesOn = /(?<!\\)(?:\\\\)*\\$/.test(line.text);
      lines.push(goesOn ? line.text.slice(0, -1) : line.text);
      if (!goesOn) return { kind: "line", text: this.#pastes.unfolded(lines.join("\n")) };
    }
  }

  #line(prompt: string, fill: string, kept: boolean): Promise<Line> {
    const input = new Readable({ read: () => undefined });
    const reader = createInterface({
      input,
      output: this.#output.editor,
      terminal: true,
      prompt,
      history: this.#history,
      historySize: MAX_HISTORY,
      removeHistoryDuplicates: true,
      completer: (line: string, done: (_: null, found: [string[], string]) => void) => {
        const give = ([hits, of]: Completion): void => done(null, [[...hits], of]);
        const found = this.#complete(line);
        if (!(found instanceof Promise)) return give(found);
        const isSame = (): boolean => reader.line.slice(0, reader.cursor) === line;
        // Text typed since stays as it is; a closed reader accepts nothing.
        const later = async (): Promise<void> => {
          const late = await found;
          if (this.#reader === reader) give(isSame() ? late : [[], ""]);
        };
        void later();
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
    let offered = fill !== "" && !kept;
    const take = (piece: InputPiece | undefined): void => {
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

  #feed(reader: Interface, input: Readable, piece: InputPiece): void {
    if (piece.kind === "paste") reader.write(this.#pastes.folded(piece.text));
    else if (piece.kind === "keys") input.emit("data", Buffer.from(piece.text));
    else if (piece.kind === "interrupt") input.emit("data", Buffer.from("\u0003"));
  }
}

/** Unlike keys that move, send or erase. */
const isTyped = ({ kind, ...piece }: InputPiece): boolean =>
  kind === "paste" || ("text" in piece && /^[^\u0000-\u001F\u007F]/.test(piece.text));

/** The longest paste that is shown as it is; more would fill the screen. */
const MAX_SHOWN_PASTE = 400;
const TOKEN = /\[pasted (?:\d+ lines|\d+ characters) #(\d+)\]/g;

/** Long or multi-line texts in an edited line: a token stands for each until the line is sent. */
export class Pastes {
  readonly #kept: string[] = [];

  /** The text in the form that it has in a line. */
  folded(text: string): string {
    const shown = visible(text).replaceAll("\t", "  ");
    if (!shown.includes("\n") && shown.length <= MAX_SHOWN_PASTE) return shown;
    const at = this.#kept.indexOf(text) === -1 ? this.#kept.push(text) : this.#kept.indexOf(text) + 1;
    const lines = text.split("\n").length;
    return lines > 1 ? `[pasted ${lines} lines #${at}]` : `[pasted ${text.length} characters #${at}]`;
  }

  /** The original text. */
  unfolded(line: string): string {
    return line.replaceAll(TOKEN, (token, number: string) => this.#kept[Number(number) - 1] ?? token);
  }
}

/** A chat is for a person: input comes from a terminal, and answers go to one. */
export function requireTerminal(hint: string): void {
  if (process.stdin.isTTY && stdout.isTTY) return;
  throw new HarnessError(EXIT.usage, "the chat needs a terminal for its input and output", hint);
}
