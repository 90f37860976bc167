import type { Message, Usage } from "./messages.ts";

/** The port through which a model is asked. Its contract suite runs on every adapter. */

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A tool as a model sees it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
}

/**
 * How a reply may be held to one of the offered tools or an answer: a request without it is never held. Servers that cannot
 * hold a reply leave it out, and with `format` no reply is held. The prefix of the request stays as it is.
 */
export interface Hold {
  /** Hold this reply, whatever is known of how the model calls tools; left out, what is known decides. */
  readonly now?: boolean;
  /**
   * Every file of the workspace, while they are few, or of these the ones that may be the cause where a check fails: what a
   * call may name that reads or edits one that is there.
   */
  readonly paths?: readonly string[];
  /**
   * Of these files the model has the whole text before it: to read one shows nothing new, so no such call is offered, and an
   * edit is of one of these lines, which stand in it once; any text where there are none.
   */
  readonly shown?: Readonly<Record<string, readonly string[]>>;
  /** Of these tools these arguments alone, and all of them: a small model fills in whatever there is. */
  readonly arguments?: Readonly<Record<string, readonly string[]>>;
  /** What a call that writes a file has to name. */
  readonly writes?: string;
  /** It has to be a call: an answer is not among the choices. */
  readonly call?: true;
  /** Tools that this reply may not call: what was repeated. They stay in the prefix of the request. */
  readonly without?: readonly string[];
}

export interface ModelRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  /** Same order and bytes from turn to turn, so that servers can reuse their prompt cache. */
  readonly tools: readonly ToolOffer[];
  /** Most tokens of the reply; the server's own limit when left out. */
  readonly maxTokens?: number;
  /** The reply ends before the first of these. One that does not take them beside its model's own says more. */
  readonly stop?: readonly string[];
  readonly temperature?: number;
  /** The model's default when left out. */
  readonly think?: boolean;
  /** What the reply should fit. */
  readonly format?: JsonSchema;
  readonly hold?: Hold;
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
  /**
   * It could be read, and is none that may be run: `not_offered` names no tool of the request, `not_alone` stands among
   * others in prose. Where it was written as text, the message's text still holds it. Left out of a call that could not be read.
   */
  readonly missed?: "not_offered" | "not_alone" | "other_form";
  /** Offered names that may be meant, the likeliest first. */
  readonly nearest?: readonly string[];
}

/**
 * Whether the text of a reply is no answer, as it holds calls that were not run: nothing of it was run, and what it has
 * are calls that miss.
 */
export const holdsUnrunCalls = ({
  message,
  malformed,
}: {
  readonly message: Pick<AssistantMessage, "calls">;
  readonly malformed: readonly MalformedCall[];
}): boolean => message.calls.length === 0 && malformed.some(({ missed }) => missed !== undefined);

export type Stop = "end" | "calls" | "length" | "filtered" | "unknown";

/** What servers do, and scenarios play. */
export const SERVER_FAILURES = [
  /** No server answers at the address, or it is not a model server. */
  "unreachable",
  "unauthorised",
  "no_model",
  /** The prompt does not fit the window. */
  "too_long",
  "rate_limited",
  /** The server said that it failed; its text is in `reason`. */
  "server",
  /** The response violates the API. */
  "garbled",
  /** Too slow: to connect, to begin, or to go on. */
  "timeout",
  "out_of_memory",
  /** The reply had no visible text or call, more than once. */
  "empty",
  /** The reply exceeded its bounds and was cut off; a cut reply is not an answer. */
  "cut",
  "refused",
] as const;

export type FailureKind = (typeof SERVER_FAILURES)[number] | "cancelled";

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
  /** A new attempt begins: what was streamed before is void. */
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

/** How a model calls tools: by its server's own calls, in its text, or held to a schema of them. */
export const CALL_FORMS = ["native", "text", "held"] as const;
export type CallForm = (typeof CALL_FORMS)[number];

/** The capabilities of a model, each with its source. */
export interface Capabilities {
  /** Tokens; a guess may compact early, and never blocks a request. */
  readonly context: number;
  /** Takes `tools` and answers with calls of its own format. */
  readonly tools: boolean;
  readonly calls: CallForm;
  readonly thinking: boolean;
  /** The server caches the prompt prefix. */
  readonly cache: boolean;
  /** Billions of them, where the server tells. */
  readonly parameters?: number;
  readonly origin: Readonly<
    Record<
      "context" | "tools" | "calls" | "thinking" | "cache",
      "user" | "server" | "probe" | "table" | "guess"
    >
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
