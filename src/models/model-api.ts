import { formatDuration } from "../core/text/bounds.ts";
import { reasonOf } from "../core/errors.ts";
import type { FailureKind, JsonSchema, ModelFailure, ModelRequest, Stop } from "../core/model-provider.ts";

/**
 * One API, without everything that all of them share. `provider.ts` adds time limits, retries, calls written as prose,
 * checks of native calls and accounting on top.
 */
export interface Wire {
  /**
   * One request, one attempt. Yields what comes as it comes; returns when the server has said that it is done, throws a
   * `WireFailure` for everything else, and for nothing else throws. `signal` ends it at once.
   */
  send(request: WireRequest, signal: AbortSignal): AsyncIterable<WireEvent>;
  /**
   * It can hold a reply to `held`: from the first token on, so that nothing may be thought, or behind the thoughts. Left
   * out, it cannot.
   */
  readonly holds?: "at_once" | "after_thinking";
}

export interface WireRequest extends ModelRequest {
  /** False: tools are not sent, as the server or the model refuses them; they stand in the prompt instead. */
  readonly nativeTools: boolean;
  /** The schema that the reply is held to; the tools are sent as ever. */
  readonly held?: JsonSchema;
  /**
   * Longest wait for a connection, which only the adapter sees: it fails as `timeout`, passing. Waiting for the first
   * event and between events is limited by the caller, through `signal`.
   */
  readonly connectMs: number;
}

export type WireEvent =
  | { readonly type: "text" | "thinking"; readonly text: string }
  /** Parts of native calls, by index; `args` is JSON text, whole or the next piece of it. */
  | {
      readonly type: "call";
      readonly index: number;
      readonly id?: string;
      readonly name?: string;
      readonly args?: string;
    }
  /** What the server counted; the last word counts. `cached` is a part of `prompt`. */
  | {
      readonly type: "usage";
      readonly prompt?: number;
      readonly completion?: number;
      readonly cached?: number;
    }
  | { readonly type: "stop"; readonly stop: Stop }
  /** Something that the user should hear: the prompt was cut, a setting was ignored. */
  | { readonly type: "note"; readonly text: string };

/** Why one attempt failed. */
export class WireFailure extends Error {
  override readonly name = "WireFailure";
  readonly kind: FailureKind;
  readonly remedy: string;
  /** Trying again later may help. */
  readonly passing: boolean;
  /** The server is there and has too much to do. */
  readonly busy: boolean;
  /** What the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null;
  /**
   * The server could not read what the model wrote: this is that text, as there may be calls in it; empty when the server
   * keeps it to itself. null for every other failure.
   */
  readonly raw: string | null;
  /** It will not take `tools` for this model. */
  readonly refusesTools: boolean;
  /** It will not hold a reply to `held`. */
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

/** UTF-16 units of one line or event of a stream: the longest that anybody sends is a whole call with a file in it. */
export const MAX_LINE_LENGTH = 2 ** 24;
/** Bytes of one reply with all that is around its words, and of one answer that is no stream. */
export const MAX_STREAM_LENGTH = 2 ** 26;
export const MAX_BODY_LENGTH = 2 ** 24;

/** Asking again would bring the same. */
export const endless = (what: string): WireFailure => new WireFailure("cut", what);

const MAX_REASON_LENGTH = 2000;

/** The next thing to do where an adapter knows nothing better. */
const REMEDIES: Readonly<Record<FailureKind, string>> = {
  unreachable: "Start the model server, or name its address with --base-url.",
  unauthorised: "Check the key, and that it belongs to this server.",
  no_model: "See what there is with: harness model list",
  too_long: "Choose a model with a larger window, or begin a new session.",
  rate_limited: "Wait, and try again.",
  server: "Look into the log of the model server, and try again.",
  garbled: "Check that --provider is what the server at --base-url speaks.",
  timeout: "Look whether the model server is still at work; a smaller model answers sooner.",
  out_of_memory: "Choose a smaller model or a smaller window: harness config set max_context_tokens 8192",
  empty: "Try again, or choose another model.",
  cut: "Try again, or choose another model; where every reply is endless, look into the log of the model server.",
  refused: "Word the task in another way, or choose another model.",
  cancelled: "",
};

/** Whatever was thrown, as the failure of an attempt. Only a defect throws anything but a `WireFailure`. */
export const asFailure = (thrown: unknown): WireFailure =>
  thrown instanceof WireFailure ? thrown : new WireFailure("garbled", reasonOf(thrown));

export function modelFailure(failure: WireFailure, clean: (text: string) => string): ModelFailure {
  const { kind, retryAfterMs } = failure;
  const asked =
    retryAfterMs !== null && retryAfterMs > 0
      ? ` (the server asks to wait ${formatDuration(retryAfterMs)})`
      : "";
  const reason = `${inShort(failure.message.trim() || kind, clean)}${asked}`;
  return { kind, reason, remedy: clean(failure.remedy || REMEDIES[kind]) };
}

/** The beginning, which says what happened, and the end, which often says why. */
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

/** The server gave the request back before a model read it, so it used nothing. */
export const wasRefused = ({ kind, raw, refusesTools, refusesHold }: WireFailure): boolean =>
  refusesTools || refusesHold || (raw === null && BEFORE_READING.has(kind));
