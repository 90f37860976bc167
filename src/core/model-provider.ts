/**
 * The messages of a conversation, and the port through which a model is asked. Provider formats are translated at the
 * edge of models/.
 */

/** What a task wants: an answer, a look at the repository, a change to it, or something from the web. */
export const INTENTS = ["direct", "repo", "change", "web"] as const;
export type Intent = (typeof INTENTS)[number];

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export type Message =
  /** `standing`: length of the part that is the same in every session; what a provider adds goes after it. */
  | { readonly role: "system"; readonly text: string; readonly standing?: number }
  | { readonly role: "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly thinking?: string;
      readonly calls: readonly ToolCall[];
    }
  | { readonly role: "tool"; readonly call: string; readonly text: string };

/** null means that the server did not say, which is not the same as zero. */
export interface Usage {
  readonly requests: number;
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  readonly cached_tokens: number | null;
  readonly cost: number | null;
}

/**
 * Prices per million tokens, for models whose name begins with `model`. Without `cached`, cached tokens cost as much.
 */
export interface Price {
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  /** The first day on which the price applies, such as 2026-03-01 in UTC; left out, it always applied. */
  readonly from?: string;
}

/** A request's tokens by purpose: each count is a share of the whole request, and their sum is its number of tokens. */
export interface PromptParts {
  readonly system: number;
  readonly instructions: number;
  readonly tools: number;
  readonly summary: number;
  readonly requests: number;
  readonly replies: number;
  readonly results: number;
}

/** The port. Its contract suite runs on every adapter. */

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A tool as a model sees it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
}

/**
 * How a reply may be constrained to an offered tool or an answer; a request without it is never constrained. Servers
 * that cannot constrain a reply ignore it, and with `format` no reply is constrained. The prefix of the request stays
 * the same.
 */
export interface Hold {
  /** Constrain this reply, whatever is known about how the model calls tools; left out, that knowledge decides. */
  readonly now?: boolean;
  /**
   * The paths that a call may name to read or edit an existing file: all files of the workspace, while there are few;
   * or, if a check fails, only those that may be the cause.
   */
  readonly paths?: readonly string[];
  /**
   * Files whose whole text the model has before it. Reading one would show nothing new, so no such call is offered. An
   * edit has to replace one of the listed texts, which occur once in the file; any text if none are listed.
   */
  readonly shown?: Readonly<Record<string, readonly string[]>>;
  /** For these tools, exactly these arguments: a small model fills in every argument there is. */
  readonly arguments?: Readonly<Record<string, readonly string[]>>;
  /** The path that a call that writes a file has to name. */
  readonly writes?: string;
  /** The reply has to be a call: an answer is not allowed. */
  readonly call?: true;
  /** Tools that this reply may not call, such as a repeated one. They stay in the prefix of the request. */
  readonly without?: readonly string[];
}

export interface ModelRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  /** Same order and bytes from turn to turn, so that servers can reuse their prompt cache. */
  readonly tools: readonly ToolOffer[];
  /** Most tokens of the reply; the server's own limit when left out. */
  readonly maxTokens?: number;
  /** The reply ends before the first of these. A server that supports only its model's own returns more. */
  readonly stop?: readonly string[];
  readonly temperature?: number;
  /** The model's default when left out. */
  readonly think?: boolean;
  /** The schema that the reply should fit. */
  readonly format?: JsonSchema;
  readonly hold?: Hold;
}

export type AssistantMessage = Extract<Message, { readonly role: "assistant" }>;

/** A call that cannot be run: it was cut off, needs a repair, or names nothing that was offered. The model is told. */
export interface MalformedCall {
  readonly id: string;
  readonly name: string;
  /** For the model: what is wrong, and what to send instead. */
  readonly reason: string;
  /** Arguments of a call that could be read but names no offered tool. */
  readonly args?: Readonly<Record<string, unknown>>;
  /**
   * The call could be read, but may not be run: `not_offered` names no tool of the request, `not_alone` stands among
   * others in prose. A call that was written as text is still part of the message's text. Left out for a call that
   * could not be read.
   */
  readonly missed?: "not_offered" | "not_alone" | "other_form";
  /** Offered names that may be meant, likeliest first. */
  readonly nearest?: readonly string[];
}

/**
 * Whether a reply is not an answer because its text holds calls that were not run: it has no runnable call, and at
 * least one that missed.
 */
export const holdsUnrunCalls = ({
  message,
  malformed,
}: {
  readonly message: Pick<AssistantMessage, "calls">;
  readonly malformed: readonly MalformedCall[];
}): boolean => message.calls.length === 0 && malformed.some(({ missed }) => missed !== undefined);

export type Stop = "end" | "calls" | "length" | "filtered" | "unknown";

/** Failures of servers, which test scenarios can reproduce. */
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
  /** Too slow: to connect, to begin, or to continue. */
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
  /** Part of a native call, for display only; calls written as text show nothing until the end. */
  | { readonly type: "call"; readonly index: number; readonly name: string; readonly text: string }
  /** A new attempt begins: what was streamed before is void. */
  | { readonly type: "waiting"; readonly reason: string; readonly ms: number; readonly attempt: number }
  | {
      readonly type: "finished";
      readonly message: AssistantMessage;
      readonly malformed: readonly MalformedCall[];
      readonly usage: Usage;
      readonly stop: Stop;
      /**
       * Notes on requests that succeeded only in part or by a workaround: a prompt that may have been cut, tools that
       * were refused.
       */
      readonly notes: readonly string[];
      /** White space around the text of the message, if there is any. A reply that was cut is continued exactly there. */
      readonly edges?: TextEdges;
    }
  | {
      readonly type: "failed";
      readonly failure: ModelFailure;
      readonly usage: Usage;
      /** Another attempt may help; none was made because part of the reply had already been shown. */
      readonly passing?: true;
    };

export interface TextEdges {
  readonly before: string;
  readonly after: string;
}

/** How a model calls tools: with its server's native calls, in its text, or constrained to a schema of them. */
export const CALL_FORMS = ["native", "text", "held"] as const;
export type CallForm = (typeof CALL_FORMS)[number];

/** The capabilities of a model, each with its source. */
export interface Capabilities {
  /** In tokens; a guess may compact early, and never blocks a request. */
  readonly context: number;
  /** The model takes `tools` and answers with calls in its own format. */
  readonly tools: boolean;
  readonly calls: CallForm;
  readonly thinking: boolean;
  /** The server caches the prompt prefix. */
  readonly cache: boolean;
  /** In billions, if the server says. */
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
   * Ends with exactly one `finished` or `failed`, and nothing after it. Never throws and never hangs; aborting ends it
   * at once as `cancelled`. The texts together are the message's text.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ProviderEvent>;
  capabilities(model: string, signal: AbortSignal): Promise<Capabilities>;
}

/*
 * A small model that has lost its thread repeats itself until it is stopped: a word, a paragraph, or a list of twenty
 * files. Only exact repetitions count.
 */

/** Least characters at the end of a text that have to repeat; there must be three rounds. */
const MIN_REPEATED = 1500;
const REPEATED_ROUNDS = 3;
/** Characters that are examined; the longest round is a third of them. */
const MAX_EXAMINED = 6000;

interface Repetition {
  /** Where the first round begins. */
  readonly from: number;
  /** Characters of one round. */
  readonly period: number;
}

/** The repetition that a text ends in. */
export function repetitionIn(text: string): Repetition | undefined {
  const period = periodOf(text.slice(-MAX_EXAMINED));
  if (period === undefined) return undefined;
  let from = text.length - period;
  while (from > 0 && text[from - 1] === text[from - 1 + period]) from -= 1;
  return { from, period };
}

/** The text without all rounds but the first. */
export function withoutRepetition(text: string): string {
  const repetition = repetitionIn(text);
  return repetition === undefined
    ? text
    : `${text.slice(0, repetition.from + repetition.period)}…`.toWellFormed();
}

/** The shortest period, by comparing the end with the text one period before it (the Z function, from the end). */
function periodOf(end: string): number | undefined {
  const { length } = end;
  const at = (place: number): string | undefined => end[length - 1 - place];
  const same = new Uint16Array(length);
  let [left, right] = [0, 0];
  for (let period = 1; period * REPEATED_ROUNDS <= length; period += 1) {
    let count = period < right ? Math.min(right - period, same[period - left] ?? 0) : 0;
    while (period + count < length && at(count) === at(period + count)) count += 1;
    same[period] = count;
    if (period + count > right) [left, right] = [period, period + count];
    if (period + count >= Math.max(MIN_REPEATED, REPEATED_ROUNDS * period)) return period;
  }
  return undefined;
}

/** Characters after which the text is examined again. */
const LOOK_AFTER = 500;

/** Finds repetitions in a text that comes in pieces. */
export class Repetitions {
  #end = "";
  #unseen = 0;

  push(text: string): boolean {
    this.#end = (this.#end + text).slice(-MAX_EXAMINED);
    this.#unseen += text.length;
    if (this.#unseen < LOOK_AFTER || this.#end.length < MIN_REPEATED) return false;
    this.#unseen = 0;
    return periodOf(this.#end) !== undefined;
  }
}
