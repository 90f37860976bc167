import { formatDuration } from "../core/text/bounds.ts";
import { WireFailure } from "./model-api.ts";

/**
 * Limits on the time and size of one attempt. A local model may load for minutes, and may write a call without output.
 */
export interface Limits {
  /** Time for a connection. */
  readonly connectMs: number;
  /** Time from the request to the first event: the server loads the model and reads the prompt. */
  readonly firstMs: number;
  /** Time between two events. Ollama sends nothing while a model writes a call. */
  readonly idleMs: number;
  readonly totalMs: number;
  /** Characters of text, thinking and calls together. */
  readonly characters: number;
  /** Each event is at least one token. */
  readonly events: number;
}

const MINUTE = 60_000;

export const LIMITS: Limits = {
  connectMs: 10_000,
  firstMs: 10 * MINUTE,
  idleMs: 10 * MINUTE,
  totalMs: 120 * MINUTE,
  characters: 2 ** 20,
  events: 2 ** 17,
};

interface Watch {
  readonly limits: Limits;
  readonly clock: Clock;
  /** The caller's signal. */
  readonly signal: AbortSignal;
}

/**
 * An iteration that ends in time even if its source ignores the signal that it was given. `next` rejects with a
 * `WireFailure` when a limit is reached, and at once when the caller cancels. Time counts only while `next` is pending.
 * `end` may be called twice; without it, a connection stays open.
 */
export class Watched<T> {
  readonly #open: (signal: AbortSignal) => AsyncIterable<T>;
  readonly #watch: Watch;
  readonly #aborter = new AbortController();
  readonly #totalDeadline: number;
  #source: AsyncIterator<T> | null = null;
  #resolve: ((step: IteratorResult<T>) => void) | null = null;
  #reject: ((failure: WireFailure) => void) | null = null;
  #failure: WireFailure | null = null;
  #cancelTimer: (() => void) | null = null;
  #deadline = 0;
  #timerAt = 0;
  #begun = false;
  #over = false;

  constructor(open: (signal: AbortSignal) => AsyncIterable<T>, watch: Watch) {
    this.#open = open;
    this.#watch = watch;
    this.#totalDeadline = watch.clock.now() + watch.limits.totalMs;
    watch.signal.addEventListener("abort", this.#cancel, { once: true });
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#watch.signal.aborted) this.#cancel();
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#wait();
      this.#source ??= this.#open(this.#aborter.signal)[Symbol.asyncIterator]();
      this.#source.next().then(this.#step, reject);
    });
  }

  end(): void {
    this.#watch.signal.removeEventListener("abort", this.#cancel);
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#over) return;
    this.#over = true;
    this.#aborter.abort();
    this.#source?.return?.().catch(() => {});
  }

  readonly #step = (step: IteratorResult<T>): void => {
    this.#reject = null;
    this.#begun = true;
    this.#over = step.done === true;
    this.#resolve?.(step);
  };

  readonly #cancel = (): void => this.#fail(new WireFailure("cancelled", "cancelled"));

  #fail(failure: WireFailure): void {
    this.#failure ??= failure;
    this.#aborter.abort();
    this.#reject?.(this.#failure);
    this.#reject = null;
  }

  #wait(): void {
    const { clock, limits } = this.#watch;
    const now = clock.now();
    this.#deadline = Math.min(now + (this.#begun ? limits.idleMs : limits.firstMs), this.#totalDeadline);
    if (this.#cancelTimer === null || this.#timerAt > this.#deadline)
      this.#setTimer(this.#deadline - now, now);
  }

  /** One timer serves many steps: if it fires too early, it is set again. */
  #setTimer(ms: number, now: number): void {
    this.#cancelTimer?.();
    this.#timerAt = now + ms;
    this.#cancelTimer = this.#watch.clock.after(ms, this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#cancelTimer = null;
    if (this.#reject === null) return;
    const now = this.#watch.clock.now();
    if (now < this.#deadline) this.#setTimer(this.#deadline - now, now);
    else this.#fail(this.#tooSlow());
  };

  #tooSlow(): WireFailure {
    const { limits } = this.#watch;
    if (this.#deadline === this.#totalDeadline)
      return new WireFailure("timeout", `the reply took longer than ${formatDuration(limits.totalMs)}`);
    const reason = this.#begun
      ? `nothing came for ${formatDuration(limits.idleMs)}, in the middle of the reply`
      : `no reply began within ${formatDuration(limits.firstMs)}`;
    return new WireFailure("timeout", reason);
  }
}

/** The provider's clock; tests replace it. */
export interface Clock {
  /** Milliseconds since an arbitrary moment. */
  readonly now: () => number;
  /** Calls once, later; the returned function cancels that. */
  readonly after: (ms: number, call: () => void) => () => void;
}

export const realClock: Clock = {
  now: () => performance.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after this time, or as soon as the signal fires. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      takeBack();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const takeBack = clock.after(ms, done);
    signal.addEventListener("abort", done, { once: true });
  });
}
