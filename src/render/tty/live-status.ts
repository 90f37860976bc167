import { fitted, widthOfStream } from "./columns.ts";
import { move, type Output, styleText } from "./output.ts";

export interface Clock {
  now(): number;
  /** Calls `tick` repeatedly until the returned function is called. */
  every(ms: number, tick: () => void): () => void;
}

/** Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  every: (ms, tick) => {
    const timer = setInterval(tick, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};

export interface Status {
  readonly text: string;
  readonly alarming: boolean;
}

const TICK_MS = 500;
const ERASE = move("erase");

/** A status on the last line of a terminal, rewritten over time. All other output goes through `around`. */
export class LiveStatus {
  readonly #stream: Output;
  readonly #clock: Clock;
  readonly #status: (now: number) => Status | undefined;
  #shown = "";
  #stop: (() => void) | undefined;

  constructor(stream: Output, clock: Clock, status: (now: number) => Status | undefined) {
    this.#stream = stream;
    this.#clock = clock;
    this.#status = status;
  }

  start(): void {
    this.#stop ??= this.#clock.every(TICK_MS, () => this.refresh());
  }

  refresh(): void {
    const status = this.#status(this.#clock.now());
    const line = status === undefined ? "" : this.#lineOf(status);
    if (line === this.#shown) return;
    this.#stream.write(`${this.#shown === "" ? "" : ERASE}${line}`);
    this.#shown = line;
  }

  /** Writes text that stays, with its line end, and puts the status below it again. */
  around(text: string): void {
    this.#stream.write(`${this.#shown === "" ? "" : ERASE}${text}${this.#shown}`);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
    if (this.#shown !== "") this.#stream.write(ERASE);
    this.#shown = "";
  }

  /** Leaves the last column free, because a terminal wraps when it is written. */
  #lineOf({ text, alarming }: Status): string {
    const line = fitted(text, widthOfStream(this.#stream) - 1);
    return styleText(alarming ? "yellow" : "dim", line, { stream: this.#stream });
  }
}
