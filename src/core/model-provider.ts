import type { Message, Usage } from "./messages.ts";

/** The port through which a model is asked. Its contract suite runs on every adapter. */

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A tool as a model sees it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface ModelRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  /** In this order, byte for byte the same from turn to turn: servers keep what they have read. */
  readonly tools: readonly ToolOffer[];
  /** Most tokens of the reply; the server's own limit when left out. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** What the model does by itself when left out. */
  readonly think?: boolean;
  /** What the reply should fit. */
  readonly format?: JsonSchema;
}

export type AssistantMessage = Extract<Message, { readonly role: "assistant" }>;

/** A call that cannot be run: it was cut, needs a repair, or names nothing that was offered. The model is told. */
export interface MalformedCall {
  readonly id: string;
  readonly name: string;
  /** For the model: what is wrong, and what to send instead. */
  readonly reason: string;
  /** Of a call that could be read and names no tool that was offered. */
  readonly args?: Readonly<Record<string, unknown>>;
}

export type Stop = "end" | "calls" | "length" | "filtered" | "unknown";

export type FailureKind =
  /** Nobody answers at the address, or it is no model server. */
  | "unreachable"
  | "unauthorised"
  | "no_model"
  /** The prompt does not fit the window. */
  | "too_long"
  | "rate_limited"
  /** The server said that it failed; its text is in `reason`. */
  | "server"
  /** What came is not what the API promises. */
  | "garbled"
  /** Too slow: to connect, to begin, or to go on. */
  | "timeout"
  | "out_of_memory"
  /** Nothing visible came, more than once. */
  | "empty"
  /** The reply went on beyond every bound, and was ended here: what came of it is no answer. */
  | "cut"
  | "refused"
  | "cancelled";

export interface ModelFailure {
  readonly kind: FailureKind;
  readonly reason: string;
  /** The next thing to do; empty only when there is none. */
  readonly remedy: string;
}

export type ProviderEvent =
  | { readonly type: "text" | "thinking"; readonly text: string }
  /** A native call in the making, for display only; written calls show nothing until the end. */
  | { readonly type: "call"; readonly index: number; readonly name: string; readonly text: string }
  /** Nothing of an earlier attempt counts from here on. */
  | { readonly type: "waiting"; readonly reason: string; readonly ms: number; readonly attempt: number }
  | {
      readonly type: "finished";
      readonly message: AssistantMessage;
      readonly malformed: readonly MalformedCall[];
      readonly usage: Usage;
      readonly stop: Stop;
      /** Things that went well only by a way around: a prompt that may have been cut, tools that were refused. */
      readonly notes: readonly string[];
    }
  | { readonly type: "failed"; readonly failure: ModelFailure; readonly usage: Usage };

/** What is believed of a model, and why. */
export interface Capabilities {
  /** Tokens; a guess may compact early, and never blocks a request. */
  readonly context: number;
  /** Takes `tools` and answers with calls of its own format. */
  readonly tools: boolean;
  readonly thinking: boolean;
  /** Keeps what it has read of the same prefix. */
  readonly cache: boolean;
  readonly origin: Readonly<
    Record<"context" | "tools" | "thinking" | "cache", "user" | "server" | "probe" | "table" | "guess">
  >;
}

export interface Provider {
  /**
   * Ends with exactly one `finished` or `failed`, and nothing after it. Never throws and never hangs; aborting ends it at
   * once as `cancelled`. Texts joined are the message's text.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ProviderEvent>;
  capabilities(model: string, signal: AbortSignal): Promise<Capabilities>;
}
