import { formatDuration, formatSize } from "../../core/wording.ts";
import { fitted, widthOfStream } from "./columns.ts";
import { LiveStatus, type Status, seconds } from "./live-status.ts";
import type { Output } from "./output.ts";
import { type Clock, systemClock } from "./paced-writer.ts";

/** Progress of the work. Fields that are left out are unknown. */
export interface Advance {
  readonly done?: number;
  readonly total?: number;
  /** The counted things, as a noun; `bytes` are shown as sizes. */
  readonly unit?: string;
  /** The present activity. */
  readonly now?: string;
  /** The parts take about equally long, so the remaining time can be estimated. */
  readonly steady?: boolean;
}

interface ProgressOptions {
  readonly what: string;
  readonly quiet: boolean;
  /** The caller reports the end in its own words. */
  readonly endIsTold?: boolean;
  readonly clock?: Clock;
}

/** After this time, the elapsed time is shown. */
const LONG_MS = 1000;
/** If lines cannot be rewritten, shorter work gets no lines: a log should show only what causes delay. */
const WORTH_A_LINE_MS = 5000;
/** In narrower output, the share is shown without a bar. */
const BAR_COLUMNS = 70;
const MOST_NOW = 60;

/**
 * The progress of one long task on stderr. On a terminal, one line is rewritten periodically: what is done, a bar if
 * the total is known, the speed, the remaining and the elapsed time. Elsewhere, there is one line at the start and one
 * at the end, and none for short tasks. Quiet output shows nothing.
 */
export class ProgressLine {
  readonly #stream: Output;
  readonly #options: ProgressOptions;
  readonly #clock: Clock;
  readonly #live: LiveStatus;
  readonly #began: number;
  #pace = new Pace();
  #at: Advance = {};
  #cancelStartLine: (() => void) | undefined;
  #startIsWritten = false;
  #ended = false;

  constructor(stream: Output, wish: ProgressOptions) {
    this.#stream = stream;
    this.#options = wish;
    this.#clock = wish.clock ?? systemClock;
    this.#began = this.#clock.now();
    this.#live = new LiveStatus(stream, this.#clock, wish.quiet ? undefined : (now) => this.#status(now));
    if (wish.quiet) return;
    if (stream.redraws) this.#live.start();
    else this.#cancelStartLine = this.#clock.every(WORTH_A_LINE_MS, () => this.#start());
  }

  readonly take = (advance: Advance): void => {
    if (advance.unit !== this.#at.unit || advance.total !== this.#at.total) this.#pace = new Pace();
    this.#at = advance;
    if (advance.done !== undefined) this.#pace.take(advance.done, this.#clock.now());
  };

  /**
   * Takes an output line of a program at work. The image builder's own lines give the number of the step and of all
   * steps.
   */
  readonly line = (text: string): void => {
    const [, at, of, step] = /^Step (\d{1,4})\/(\d{1,4}) ?: ?(.*)/.exec(text) ?? [];
    if (at === undefined) this.#at = { ...this.#at, now: text };
    else
      this.take({ done: Number(at) - 1, total: Number(of), unit: "steps", now: step ?? "", steady: false });
  };

  /** Writes a line that stays, above the rewritten one. */
  readonly write = (text: string): void => this.#live.write(text);

  /** Shows nothing until the returned function is called, for example while a person is asked something. */
  pause(): () => void {
    const resume = this.#live.pause();
    return () => {
      resume();
      if (this.#stream.redraws) this.#live.start();
    };
  }

  end(): void {
    this.#cancelStartLine?.();
    this.#live.stop();
    if (!this.#startIsWritten || this.#ended || this.#options.endIsTold === true) return;
    this.#ended = true;
    const { done, total } = this.#at;
    const far = done === undefined || total === undefined ? "" : ` (${this.#counted(done, total)})`;
    this.#stream.write(
      `${this.#options.what}: ended after ${seconds(this.#clock.now() - this.#began)}${far}\n`,
    );
  }

  [Symbol.dispose](): void {
    this.end();
  }

  #start(): void {
    this.#cancelStartLine?.();
    this.#startIsWritten = true;
    this.#stream.write(`${this.#options.what} …\n`);
  }

  #status(now: number): Status {
    const { what } = this.#options;
    const { done, total, now: doing = "" } = this.#at;
    const right = now - this.#began < LONG_MS ? [] : [seconds(now - this.#began)];
    if (done === undefined || total === undefined)
      return { text: doing === "" ? what : `${what}: ${doing}`, alarming: false, right };
    const share = total > 0 ? Math.min(1, done / total) : 0;
    const bar = widthOfStream(this.#stream) < BAR_COLUMNS ? "" : ` ${progressBar(share)}`;
    return {
      text: `${what}${bar} ${Math.floor(share * 100)} %`,
      beside: [
        ` ${this.#counted(done, total)}`,
        ...this.#speedAndTimeLeft(total - done),
        ...(doing === "" ? [] : [`  ${fitted(doing, MOST_NOW)}`]),
      ],
      alarming: false,
      right,
    };
  }

  #counted(done: number, total: number): string {
    const { unit = "" } = this.#at;
    if (unit === "bytes") return `${formatSize(done)} of ${formatSize(total)}`;
    return `${done} of ${total} ${unit}`;
  }

  #speedAndTimeLeft(left: number): readonly string[] {
    const { steady = true, unit } = this.#at;
    const rate = this.#pace.perSecond;
    if (!steady || rate === null || left <= 0) return [];
    const fast = unit === "bytes" ? formatSize(rate) : Math.round(rate) || "";
    return [...(fast === "" ? [] : [`, ${fast} a second`]), `, ${formatDuration((left / rate) * 1000)} left`];
  }
}

const BAR = 24;

function progressBar(share: number): string {
  const filled = Math.round(share * BAR);
  return `[${"#".repeat(filled)}${".".repeat(BAR - filled)}]`;
}

/** Two stretches of this length have to agree before the remaining time is shown. */
const STRETCH_MS = 1500;
const ALIKE = 2;

interface Sample {
  readonly done: number;
  readonly at: number;
}

/** The speed of work. Ignores everything done before the first look or before the speed was steady. */
export class Pace {
  #mark: Sample | undefined;
  #rates: readonly number[] = [];

  /** `at`: milliseconds of any monotonic clock. */
  take(done: number, at: number): void {
    this.#mark ??= { done, at };
    const since = at - this.#mark.at;
    if (since < STRETCH_MS) return;
    this.#rates = [...this.#rates.slice(-1), ((done - this.#mark.done) / since) * 1000];
    this.#mark = { done, at };
  }

  /** Null until the speed is steady. */
  get perSecond(): number | null {
    const [one = 0, other = 0] = this.#rates;
    const slower = Math.min(one, other);
    return slower > 0 && Math.max(one, other) <= slower * ALIKE ? (one + other) / 2 : null;
  }
}
