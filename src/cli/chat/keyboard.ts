import { move } from "../../render/tty/output.ts";
import { KeyPieces, type Piece } from "./keys.ts";

/** A piece for the reader; undefined when no more will come. */
export type Reader = (piece: Piece | undefined) => void;

/** Of a terminal's input, as much as this needs. */
interface KeySource {
  setRawMode(on: boolean): unknown;
  setEncoding(encoding: "utf8"): unknown;
  on(event: "data", listener: (text: string) => void): unknown;
  on(event: "end" | "error", listener: () => void): unknown;
  pause(): unknown;
}

export interface KeyboardOptions {
  readonly input: KeySource;
  /** For what the terminal itself is told. */
  readonly write: (text: string) => void;
  /** Ctrl-C while nobody reads; false when nothing goes on that it could be meant for. */
  readonly onInterrupt: () => boolean;
  /** Ctrl-Z; the terminal is as it was before until this returns. */
  readonly suspend: () => void;
}

/**
 * The keys of a person, to one reader at a time. What is typed while nobody reads waits for the next reader, unless it is
 * dropped: by whoever must not be answered by it, and by Ctrl-C.
 */
export class Keyboard implements Disposable {
  readonly #options: KeyboardOptions;
  readonly #pieces = new KeyPieces();
  #ahead: Piece[] = [];
  #reader: Reader | undefined;
  #ended = false;

  constructor(options: KeyboardOptions) {
    this.#options = options;
    const { input } = options;
    input.setEncoding("utf8");
    input.on("data", (text) => this.#take(text));
    input.on("end", () => this.end());
    input.on("error", () => this.end());
    this.#grab();
  }

  /** Whoever read before goes on when this one is done. */
  read(reader: Reader): void {
    this.#reader = reader;
    this.#hand();
  }

  /** The reader has what it wanted. */
  done(reader: Reader): void {
    if (this.#reader === reader) this.#reader = undefined;
  }

  drop(): void {
    this.#ahead = [];
  }

  end(): void {
    this.#ended = true;
    this.#hand();
  }

  /** After the program was stopped and goes on. */
  resume(): void {
    this.#grab();
  }

  [Symbol.dispose](): void {
    this.#release();
    this.#options.input.pause();
  }

  /** Ctrl-C, by whatever way it comes. */
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
