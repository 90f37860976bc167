/** Output that changes while work goes on: a progress line, a status below lines that stay, and writes that never wait. */
import { formatDuration, formatSize } from "../../core/wording.ts";
import { columnsOf, fitToWidth, widthOfStream } from "./columns.ts";
import { move, type Output, styleText } from "./output.ts";

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
  readonly endIsReported?: boolean;
  readonly clock?: Clock;
}

/** After this time, the elapsed time is shown. */
const LONG_MS = 1000;
/** If lines cannot be rewritten, shorter work gets no lines: a log should show only what causes delay. */
const WORTH_A_LINE_MS = 5000;
/** In narrower output, the share is shown without a bar. */
const BAR_COLUMNS = 70;
const MAX_NOW = 60;

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

  /** Ends with all steps done: a step that is reported when it begins does not say when it ended. */
  complete(): void {
    const { total } = this.#at;
    if (total !== undefined) this.#at = { ...this.#at, done: total };
    this.end();
  }

  end(): void {
    this.#cancelStartLine?.();
    this.#live.stop();
    if (!this.#startIsWritten || this.#ended || this.#options.endIsReported === true) return;
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
        ...(doing === "" ? [] : [`  ${fitToWidth(doing, MAX_NOW)}`]),
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

const BAR_WIDTH = 24;

function progressBar(share: number): string {
  const filled = Math.round(share * BAR_WIDTH);
  return `[${"#".repeat(filled)}${".".repeat(BAR_WIDTH - filled)}]`;
}

/** Two stretches of this length have to agree before the remaining time is shown. */
const STRETCH_MS = 1500;
const ALIKE_FACTOR = 2;

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
    return slower > 0 && Math.max(one, other) <= slower * ALIKE_FACTOR ? (one + other) / 2 : null;
  }
}

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
const MAX_WAITING = 256 * 1024;

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
      room: MAX_WAITING,
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
    const width = columns - (columns < NARROW_WIDTH ? 1 : FREE_COLUMNS);
    const other = alarming ? undefined : right.find((each) => each.length + 2 <= width * MAX_RIGHT);
    const room = other === undefined ? width : width - other.length - 2;
    const whole = beside.reduce(
      (line, each) => (line.length + each.length <= room ? line + each : line),
      text,
    );
    const left = fitToWidth(whole, room);
    const line = other === undefined ? left : `${left}${" ".repeat(room - columnsOf(left))}  ${other}`;
    return styleText(alarming ? "yellow" : "dim", line, { stream: this.#stream });
  }
}

/**
 * A terminal wraps after its last column, and echoes `^C` after the line: without free columns, half of it would
 * remain.
 */
const FREE_COLUMNS = 3;
/** Below this width, every column is needed for the text. */
const NARROW_WIDTH = 40;
/** Largest share of the line for its right side. */
const MAX_RIGHT = 0.42;

/** A time in whole seconds, or in larger units from a minute on. */
export const seconds = (ms: number): string => {
  const whole = Math.max(0, Math.floor(ms / 1000));
  return whole < 60 ? `${whole} s` : formatDuration(whole * 1000);
};

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

/** Number of writes in a frame that go out at once; further ones are written together at the end of the frame. */
const AT_ONCE = 20;
const FRAME_MS = 250;

interface Bounds {
  /** Characters kept for a slow reader; further texts are dropped. */
  readonly room: number;
  /** The text that replaces what was dropped. */
  readonly leftOut: (texts: number) => string;
}

/** Options for one text: its own bound within the shared room. */
interface WriteOptions {
  readonly room?: number;
  readonly needed?: boolean;
}

/**
 * Writes to an output without ever waiting for it. Bursts are combined, so the number of writes depends on time, not on
 * events. While the reader is behind, texts wait within a bounded room; the number of dropped texts is reported once it
 * reads again.
 */
export class PacedWriter {
  readonly #stream: Output;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  #pending: string[] = [];
  #size = 0;
  #dropped = 0;
  #frame = Number.NEGATIVE_INFINITY;
  #writes = 0;
  #paused = 0;
  #stopWaiting: (() => void) | undefined;
  #stopFrame: (() => void) | undefined;

  constructor(stream: Output, clock: Clock, bounds: Bounds) {
    this.#stream = stream;
    this.#clock = clock;
    this.#bounds = bounds;
  }

  /** Text waits for its frame, for the reader, or for the end of a pause. */
  get waits(): boolean {
    return this.#paused > 0 || this.#pending.length > 0 || this.#stopWaiting !== undefined;
  }

  /** `needed`: the text is kept even if there is no room. */
  write(text: string, { room = this.#bounds.room, needed = false }: WriteOptions = {}): void {
    if (text === "") return;
    if (!this.waits && this.#writesInFrame() < AT_ONCE) return this.#put(text);
    if (!needed && this.#size + text.length > room) this.#dropped += 1;
    else {
      this.#reportDropped();
      this.#pending.push(text);
      this.#size += text.length;
    }
    this.#stopFrame ??= this.#clock.every(FRAME_MS, () => this.#next());
  }

  /** Nothing is written until the returned function is called. */
  pause(): () => void {
    this.#paused += 1;
    return () => {
      this.#paused -= 1;
      this.#next();
    };
  }

  /** Writes everything that waits. This has to be the last call, because nothing waits for the reader any more. */
  end(): void {
    this.#paused = 0;
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#flush();
  }

  #writesInFrame(): number {
    const now = this.#clock.now();
    if (now - this.#frame >= FRAME_MS) {
      this.#frame = now;
      this.#writes = 0;
    }
    return this.#writes;
  }

  #next(): void {
    if (this.#paused === 0 && this.#stopWaiting === undefined) this.#flush();
  }

  #flush(): void {
    this.#stopFrame?.();
    this.#stopFrame = undefined;
    this.#reportDropped();
    const text = this.#pending.join("");
    this.#pending = [];
    this.#size = 0;
    if (text !== "") this.#put(text);
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    this.#pending.push(this.#bounds.leftOut(this.#dropped));
    this.#dropped = 0;
  }

  #put(text: string): void {
    this.#writesInFrame();
    this.#writes += 1;
    if (this.#stream.write(text)) return;
    this.#stopWaiting = this.#stream.on("drain", () => {
      this.#stopWaiting?.();
      this.#stopWaiting = undefined;
      this.#next();
    });
  }
}
