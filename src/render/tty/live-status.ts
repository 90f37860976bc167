import { formatDuration } from "../../core/wording.ts";
import { cellsOf, fitted, widthOf, widthOfStream } from "./columns.ts";
import { move, type Output, styleText } from "./output.ts";
import { type Clock, PacedWriter } from "./paced-writer.ts";

export interface Status {
  readonly text: string;
  readonly alarming: boolean;
  /** Further details, if there is room. */
  readonly beside?: readonly string[];
  /** Shown on the right: variants, longest first; the first one that fits is used. */
  readonly right?: readonly string[];
}

/** The status is redrawn by time, not by events, so that short activities do not flash by. */
const TICK_MS = 500;
// Called only when needed: the first call loads node:crypto.
const erase = (): string => move("erase");
/** Characters that may wait for a terminal that accepts no output. */
const ROOM = 256 * 1024;

/**
 * Lines that stay and, on a terminal, a status below them that is rewritten periodically. All output goes through
 * `write`. Nothing here waits for the terminal.
 */
export class LiveStatus {
  readonly #stream: Output;
  readonly #clock: Clock;
  readonly #status: ((now: number) => Status | undefined) | undefined;
  readonly #writer: PacedWriter;
  #shown = "";
  #stop: (() => void) | undefined;

  /** Without `status`, or if the stream cannot redraw a line, only lines are shown. */
  constructor(stream: Output, clock: Clock, status?: (now: number) => Status | undefined) {
    this.#stream = stream;
    this.#clock = clock;
    this.#status = stream.redraws ? status : undefined;
    this.#writer = new PacedWriter(stream, clock, {
      room: ROOM,
      leftOut: (texts) =>
        `${stream.redraws ? erase() : ""}(${texts} messages were left out here: they came faster than they were read)\n`,
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

  /** Writes text that stays, including its line end, and shows the present status below it. */
  write(text: string): void {
    const line = this.#stop === undefined ? "" : this.#line();
    this.#writer.write(`${this.#shown === "" ? "" : erase()}${text}${line}`);
    this.#shown = line;
  }

  #line(): string {
    const status = this.#status?.(this.#clock.now());
    return status === undefined ? "" : this.#lineOf(status);
  }

  /** Holds back all output, without a status, until the returned function is called. */
  pause(): () => void {
    this.#clear();
    return this.#writer.pause();
  }

  /** Removes the status and writes all lines that still wait. */
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

/**
 * A terminal wraps after its last column, and echoes `^C` after the line: without free columns, half of it would
 * remain.
 */
const FREE = 3;
/** Below this width, every column is needed for the text. */
const NARROW = 40;
/** Largest share of the line for its right side. */
const MOST_RIGHT = 0.42;

/** A time in whole seconds, or in larger units from a minute on. */
export const seconds = (ms: number): string => {
  const whole = Math.max(0, Math.floor(ms / 1000));
  return whole < 60 ? `${whole} s` : formatDuration(whole * 1000);
};
