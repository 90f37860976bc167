import { cellsOf, fitted, widthOf, widthOfStream } from "./columns.ts";
import { move, type Output, styleText } from "./output.ts";
import { type Clock, PacedWriter } from "./paced-writer.ts";

export interface Status {
  readonly text: string;
  readonly alarming: boolean;
  /** More about it, if there is room. */
  readonly beside?: readonly string[];
  /** On the right, by what there is room for: the longest first. */
  readonly right?: readonly string[];
}

/** By time alone is the line drawn anew, and not by events: what is over in a moment is not flashed. */
const TICK_MS = 500;
// Asked for when it is written: the first of them loads node:crypto.
const erase = (): string => move("erase");
/** Lines that wait for a terminal that does not take them. */
const ROOM = 256 * 1024;

/**
 * Lines that stay and, on a terminal, a status below them that is rewritten over time. All output goes through `write`.
 * Nothing here waits for the terminal.
 */
export class LiveStatus {
  readonly #stream: Output;
  readonly #clock: Clock;
  readonly #status: ((now: number) => Status | undefined) | undefined;
  readonly #writer: PacedWriter;
  #shown = "";
  #stop: (() => void) | undefined;

  /** Without `status`, or where the stream cannot redraw a line, there are lines alone. */
  constructor(stream: Output, clock: Clock, status?: (now: number) => Status | undefined) {
    this.#stream = stream;
    this.#clock = clock;
    this.#status = stream.redraws ? status : undefined;
    this.#writer = new PacedWriter(stream, clock, {
      room: ROOM,
      leftOut: (texts) =>
        `${stream.redraws ? erase() : ""}(${texts} texts were left out here: they came faster than they were read)\n`,
    });
  }

  start(): void {
    if (this.#status !== undefined) this.#stop ??= this.#clock.every(TICK_MS, () => this.#refresh());
  }

  #refresh(): void {
    if (this.#writer.waits) return;
    const line = this.#line();
    if (line === this.#shown) return;
    this.#writer.write(`${this.#shown === "" ? "" : erase()}${line}`);
    this.#shown = line;
  }

  /** Writes text that stays, with its line end, and puts the status below it as it is now. */
  write(text: string): void {
    const line = this.#stop === undefined ? "" : this.#line();
    this.#writer.write(`${this.#shown === "" ? "" : erase()}${text}${line}`);
    this.#shown = line;
  }

  #line(): string {
    const status = this.#status?.(this.#clock.now());
    return status === undefined ? "" : this.#lineOf(status);
  }

  /** Holds everything back, without a status, until the returned function is called. */
  pause(): () => void {
    this.#clear();
    return this.#writer.pause();
  }

  /** No status any more; all lines are written. */
  stop(): void {
    this.#clear();
    this.#writer.end();
  }

  #clear(): void {
    this.#stop?.();
    this.#stop = undefined;
    if (this.#shown !== "") this.#writer.write(erase(), { needed: true });
    this.#shown = "";
  }

  #lineOf({ text, alarming, beside = [], right = [] }: Status): string {
    const columns = widthOfStream(this.#stream);
    const width = columns - (columns < NARROW ? 1 : FREE);
    const other = alarming ? undefined : right.find((each) => each.length + 2 <= width * MOST_RIGHT);
    const room = other === undefined ? width : width - other.length - 2;
    const whole = beside.reduce(
      (told, each) => (told.length + each.length <= room ? told + each : told),
      text,
    );
    const left = fitted(whole, room);
    const line = other === undefined ? left : `${left}${" ".repeat(room - widthOf(cellsOf(left)))}  ${other}`;
    return styleText(alarming ? "yellow" : "dim", line, { stream: this.#stream });
  }
}

/** A terminal wraps when its last column is written, and it writes `^C` behind the line: half of that would stay behind. */
const FREE = 3;
/** From here down every column is wanted for words. */
const NARROW = 40;
/** Share of the line that its right side may have. */
const MOST_RIGHT = 0.42;
