/** What one API provides, how it fails, and the limits on its time. */

import { reasonOf } from "../core/errors.ts";
import type { FailureKind, JsonSchema, ModelFailure, ModelRequest, Stop } from "../core/model-provider.ts";
import { formatDuration } from "../core/wording.ts";

/**
 * One API, without what all APIs share: `provider.ts` adds time limits, retries, calls written as prose, checks of
 * native calls and accounting.
 */
export interface ModelWire {
  /**
   * One request, one attempt. Yields events as they arrive. Returns once the server has said that it is done; in every
   * other case it throws a `WireFailure`, and never anything else. `signal` ends the request at once.
   */
  send(request: WireRequest, signal: AbortSignal): AsyncIterable<WireEvent>;
  /**
   * When the API can constrain a reply to `held`: from the first token, which rules out thinking, or after the
   * thoughts. Left out if it cannot.
   */
  readonly holds?: "at_once" | "after_thinking";
}

export interface WireRequest extends ModelRequest {
  /** False if the server or the model refuses tools: they are not sent but written into the prompt. */
  readonly nativeTools: boolean;
  /** The schema for the reply; the tools are sent as usual. */
  readonly replySchema?: JsonSchema;
  /**
   * Longest wait for a connection, which only the adapter can see; the failure is a passing `timeout`. The caller
   * limits the wait for the first event and between events through `signal`.
   */
  readonly connectMs: number;
}

/** A tool in the form of OpenAI's API, which Ollama's API shares. */
export const functionTool = ({ name, description, schema }: WireRequest["tools"][number]) => ({
  type: "function",
  function: { name, description, parameters: schema },
});

export type WireEvent =
  | { readonly type: "text" | "thinking"; readonly text: string }
  /** Parts of native calls, by index; `args` is JSON text, either whole or the next piece. */
  | {
      readonly type: "call";
      readonly index: number;
      readonly id?: string;
      readonly name?: string;
      readonly args?: string;
    }
  /** The server's own counts; the last event counts. `cached` is part of `prompt`. */
  | {
      readonly type: "usage";
      readonly prompt?: number;
      readonly completion?: number;
      readonly cached?: number;
    }
  | { readonly type: "stop"; readonly stop: Stop }
  /** Something the user should know: the prompt was cut, a setting was ignored. */
  | { readonly type: "note"; readonly text: string };

/** Why one attempt failed. */
export class WireFailure extends Error {
  override readonly name = "WireFailure";
  readonly kind: FailureKind;
  readonly remedy: string;
  /** A later attempt may succeed. */
  readonly passing: boolean;
  /** The server is up but overloaded. */
  readonly busy: boolean;
  /** The wait that the server asked for, in milliseconds. */
  readonly retryAfterMs: number | null;
  /**
   * The model's text, if the server could not parse it: it may contain calls. Empty if the server does not pass the
   * text on; null for every other failure.
   */
  readonly raw: string | null;
  /** The server does not accept `tools` for this model. */
  readonly refusesTools: boolean;
  /** The server cannot constrain a reply to `held`. */
  readonly refusesHold: boolean;

  constructor(
    kind: FailureKind,
    reason: string,
    more: Partial<
      Pick<
        WireFailure,
        "remedy" | "passing" | "busy" | "retryAfterMs" | "raw" | "refusesTools" | "refusesHold"
      >
    > = {},
  ) {
    super(reason);
    this.kind = kind;
    this.remedy = more.remedy ?? "";
    this.passing = more.passing ?? false;
    this.busy = this.passing && (more.busy ?? kind === "rate_limited");
    this.retryAfterMs = more.retryAfterMs ?? null;
    this.raw = more.raw ?? null;
    this.refusesTools = more.refusesTools ?? false;
    this.refusesHold = more.refusesHold ?? false;
  }
}

/** UTF-16 units of one line or event of a stream; the longest in practice is a whole call that contains a file. */
export const MAX_LINE_LENGTH = 2 ** 24;
/** Bytes of one reply including its framing; the next is for an answer that is not streamed. */
export const MAX_STREAM_LENGTH = 2 ** 26;
export const MAX_BODY_LENGTH = 2 ** 24;

/** Another attempt would give the same result. */
export const endlessReply = (what: string): WireFailure => new WireFailure("cut", what);

const MAX_REASON_LENGTH = 2000;

/** The next step for the user, if an adapter knows nothing better. */
const REMEDIES: Readonly<Record<FailureKind, string>> = {
  unreachable: "Start the model server, or name its address with --base-url.",
  unauthorised: "Check the key, and that it belongs to this server.",
  no_model: "List the models with: harness model list",
  too_long: "Choose a model with a larger window, or begin a new session.",
  rate_limited: "Wait, and try again.",
  server: "Check the model server's log, and try again.",
  garbled: "Check that --provider matches the server at --base-url.",
  timeout: "Check whether the model server is still working; a smaller model answers sooner.",
  out_of_memory: "Choose a smaller model or a smaller window: harness config set max_context_tokens 8192",
  empty: "Try again, or choose another model.",
  cut: "Try again, or choose another model; if every reply is endless, check the model server's log.",
  refused: "Word the task differently, or choose another model.",
  cancelled: "",
};

/** Turns anything thrown into the failure of an attempt. Only a defect throws anything but a `WireFailure`. */
export const asFailure = (thrown: unknown): WireFailure =>
  thrown instanceof WireFailure ? thrown : new WireFailure("garbled", reasonOf(thrown));

export function modelFailure(failure: WireFailure, clean: (text: string) => string): ModelFailure {
  const { kind, retryAfterMs } = failure;
  const wish =
    retryAfterMs !== null && retryAfterMs > 0
      ? ` (the server asks to wait ${formatDuration(retryAfterMs)})`
      : "";
  const reason = `${inShort(failure.message.trim() || kind, clean)}${wish}`;
  return { kind, reason, remedy: clean(failure.remedy || REMEDIES[kind]) };
}

/** Keeps the beginning, which says what happened, and the end, which often says why. */
export function inShort(text: string, clean: (text: string) => string): string {
  const whole = clean(text);
  if (whole.length <= MAX_REASON_LENGTH) return whole;
  return `${whole.slice(0, MAX_REASON_LENGTH * 0.75)} … ${whole.slice(-MAX_REASON_LENGTH * 0.25)}`.toWellFormed();
}

const BEFORE_READING: ReadonlySet<FailureKind> = new Set([
  "unreachable",
  "unauthorised",
  "no_model",
  "too_long",
  "rate_limited",
  "server",
  "refused",
]);

/** The server returned the request before a model read it, so it used no tokens. */
export const wasRefused = ({ kind, raw, refusesTools, refusesHold }: WireFailure): boolean =>
  refusesTools || refusesHold || (raw === null && BEFORE_READING.has(kind));

/**
 * Limits on the time and size of one attempt. A local model may load for minutes, and may write a call without output.
 */
export interface RequestLimits {
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

const MINUTE_MS = 60_000;

export const LIMITS: RequestLimits = {
  connectMs: 10_000,
  firstMs: 10 * MINUTE_MS,
  idleMs: 10 * MINUTE_MS,
  totalMs: 120 * MINUTE_MS,
  characters: 2 ** 20,
  events: 2 ** 17,
};

interface Watch {
  readonly limits: RequestLimits;
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
