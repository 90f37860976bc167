import type { FailureKind, ModelRequest, Stop } from "../core/model-provider.ts";

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
}

export interface WireRequest extends ModelRequest {
  /** False: tools are not sent, as the server or the model refuses them; they stand in the prompt instead. */
  readonly nativeTools: boolean;
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
  /** What the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null;
  /**
   * The server could not read what the model wrote: this is that text, as there may be calls in it; empty when the server
   * keeps it to itself. null for every other failure.
   */
  readonly raw: string | null;
  /** It will not take `tools` for this model. */
  readonly refusesTools: boolean;

  constructor(
    kind: FailureKind,
    reason: string,
    more: Partial<Pick<WireFailure, "remedy" | "passing" | "retryAfterMs" | "raw" | "refusesTools">> = {},
  ) {
    super(reason);
    this.kind = kind;
    this.remedy = more.remedy ?? "";
    this.passing = more.passing ?? false;
    this.retryAfterMs = more.retryAfterMs ?? null;
    this.raw = more.raw ?? null;
    this.refusesTools = more.refusesTools ?? false;
  }
}

/** UTF-16 units of one line or event of a stream: the longest that anybody sends is a whole call with a file in it. */
export const LONGEST_LINE = 2 ** 24;
/** Bytes of one reply with all that is around its words, and of one answer that is no stream. */
export const LONGEST_STREAM = 2 ** 26;
export const LONGEST_BODY = 2 ** 24;

/** Asking again would bring the same. */
export const endless = (what: string): WireFailure => new WireFailure("cut", what);
