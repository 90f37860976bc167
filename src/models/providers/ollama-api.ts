import type { ChatRequest } from "ollama/browser";
import { z } from "zod";
import { errorCode, reasonOf } from "../../core/errors.ts";
import type { FailureKind, Message, Stop } from "../../core/model-provider.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { parseRetryAfter, isBusy } from "../../core/server-wait.ts";
import {
  functionTool,
  MAX_LINE_LENGTH,
  MAX_STREAM_LENGTH,
  type ModelWire,
  type WireEvent,
  WireFailure,
  type WireRequest,
} from "../model-api.ts";
import { ollamaStream, Refused } from "./ollama-client.ts";
import {
  type ModelInForce,
  ollamaLine,
  OllamaSession,
  OTHER_ADDRESS,
  type SessionOptions,
  UPDATE_OLLAMA,
} from "./ollama-server.ts";

/** Ollama's /api/chat. */
export class OllamaWire implements ModelWire {
  readonly #options: SessionOptions;
  readonly #session: OllamaSession;
  /**
   * A thinking model is constrained only after its thoughts; without them, some of its parsers do not constrain it at
   * all.
   */
  readonly holds = "after_thinking";

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#session = new OllamaSession(options);
  }

  /** The facts behind every request for the model; throws a WireFailure if they cannot be found out. */
  modelInForce(model: string, signal: AbortSignal): Promise<ModelInForce> {
    return this.#session.modelInForce(model, signal);
  }

  async *send(request: WireRequest, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const context = {
      baseUrl: this.#options.baseUrl,
      model: request.model,
      hasSchema: request.replySchema !== undefined,
    };
    let begun = false;
    try {
      if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
      const facts = await this.#session.modelInForce(request.model, signal);
      const [lines, used] = await this.#open(request, facts, signal);
      begun = true;
      for (const text of notesOnOmissions(request, used)) yield { type: "note", text };
      yield* replyOf(lines, new ReplyReader(used), signal);
    } catch (thrown) {
      throw failureIn(thrown, context, begun, signal);
    }
  }

  /**
   * Sends the request. If it turns out that the model cannot think, repeats it, and from then on asks without thinking.
   */
  async #open(
    request: WireRequest,
    facts: ModelInForce,
    signal: AbortSignal,
  ): Promise<readonly [AsyncIterable<unknown>, ModelInForce]> {
    const body = chatBody(request, facts);
    try {
      const lines = await ollamaStream({
        baseUrl: this.#options.baseUrl,
        signal,
        connectMs: request.connectMs,
        // The client's types lack `truncate`, `shift` and the ids of calls.
        ...(this.#options.whole === true ? { json: JSON.stringify({ ...body, stream: false }) } : {}),
        ask: (client) => client.chat({ ...body } as unknown as ChatRequest & { stream: true }),
        longestLine: MAX_LINE_LENGTH,
        longest: MAX_STREAM_LENGTH,
        strange: OTHER_LINES,
        unfinished: UNFINISHED,
      });
      return [lines, facts];
    } catch (thrown) {
      if (body.think === undefined || !(thrown instanceof Refused) || !refusesThinking(thrown)) throw thrown;
      return this.#open(request, this.#session.cannotThink(request.model, facts), signal);
    }
  }
}

const OTHER_LINES = "the server sends unexpected lines";
const UNFINISHED = "the server ended the reply without saying that it is done";

async function* replyOf(
  lines: AsyncIterable<unknown>,
  reader: ReplyReader,
  signal: AbortSignal,
): AsyncGenerator<WireEvent> {
  for await (const line of lines) {
    if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
    yield* reader.read(line);
    if (reader.done) return;
  }
  throw new WireFailure("garbled", UNFINISHED, { passing: true });
}

interface ChatBody {
  readonly model: string;
  readonly messages: readonly object[];
  readonly tools?: readonly object[];
  readonly format?: object;
  readonly think?: boolean | "low";
  readonly stream: true;
  readonly keep_alive: string;
  readonly truncate: false;
  readonly shift: false;
  readonly options: Readonly<Record<string, number>>;
}

/** Longer than the server's default of five minutes: a command in the box may take that long. */
const KEEP_ALIVE = "30m";

function chatBody(request: WireRequest, facts: ModelInForce): ChatBody {
  const { model, messages, maxTokens, temperature } = request;
  const think = thinkSetting(request, facts.thinks);
  return {
    model,
    messages: asOllama(messages),
    ...(sendsTools(request) ? { tools: request.tools.map(functionTool) } : {}),
    ...formatOf(request),
    ...(think === undefined ? {} : { think }),
    stream: true,
    keep_alive: KEEP_ALIVE,
    // Without both, the server silently cuts a prompt that is too long. Changing `shift` reloads the model.
    truncate: false,
    shift: false,
    // No `stop`: it would replace the model's own stops, without which some models never end (ollama#4524).
    options: {
      num_ctx: facts.window.tokens,
      ...(maxTokens === undefined ? {} : { num_predict: maxTokens }),
      ...(temperature === undefined ? {} : { temperature }),
    },
  };
}

/**
 * A schema for the answer would keep the model from calling tools; a schema of calls does not, no matter who reads
 * them.
 */
function formatOf({ replySchema, format, tools }: WireRequest): { readonly format?: object } {
  if (replySchema !== undefined) return { format: replySchema };
  return format === undefined || tools.length > 0 ? {} : { format };
}

/** Notes for the user about parts of the request that are not in the body. */
function notesOnOmissions(request: WireRequest, facts: ModelInForce): readonly string[] {
  const notes: string[] = [];
  if (request.format !== undefined && request.tools.length > 0)
    notes.push("the schema of the answer was not sent: with it the model would call no tools");
  if (request.think === true && facts.thinks === false)
    notes.push(`${request.model} does not think, so it was not asked to`);
  return notes;
}

const sendsTools = ({ nativeTools, tools }: WireRequest): boolean => nativeTools && tools.length > 0;

/** Set explicitly whenever the model can think: the default differs between server versions. */
function thinkSetting({ model, think }: WireRequest, thinks: boolean | null): boolean | "low" | undefined {
  if (thinks === false) return undefined;
  const wanted = think ?? (thinks === true ? true : undefined);
  // gpt-oss cannot switch thinking off, only keep it short.
  return wanted === false && /(?:^|\/)gpt-oss/i.test(model) ? "low" : wanted;
}

/** Templates name the tool of a result, so each result gets the tool name of its call. */
function asOllama(messages: readonly Message[]): readonly object[] {
  const names = new Map<string, string>();
  return messages.map((message) => {
    if (message.role === "tool") {
      const name = names.get(message.call);
      return {
        role: "tool",
        content: message.text,
        ...(name === undefined ? {} : { tool_name: name }),
        tool_call_id: message.call,
      };
    }
    if (message.role !== "assistant") return { role: message.role, content: message.text };
    for (const { id, name } of message.calls) names.set(id, name);
    return {
      role: "assistant",
      content: message.text,
      ...(message.thinking === undefined ? {} : { thinking: message.thinking }),
      ...(message.calls.length === 0 ? {} : { tool_calls: message.calls.map(asCall) }),
    };
  });
}

const asCall = ({ id, name, args }: { id: string; name: string; args: object }, index: number): object => ({
  id,
  function: { index, name, arguments: args },
});

const count = z.number().int().nonnegative().nullish().catch(null);
const text = z.string().nullish();

const chatLine = z.object({
  message: z
    .object({
      content: text,
      thinking: text,
      tool_calls: z
        .array(
          z.object({ id: text, function: z.object({ name: z.string(), arguments: z.unknown().optional() }) }),
        )
        .nullish(),
    })
    .nullish(),
  done: z.boolean().nullish(),
  done_reason: text,
  prompt_eval_count: count,
  eval_count: count,
});
type ChatLine = z.infer<typeof chatLine>;

/** This version counts only the part of a prompt that it had not cached from the previous one. */
const MISCOUNTING_VERSION = /^0\.30\.0(?:$|-)/;

class ReplyReader {
  readonly #facts: Pick<ModelInForce, "window" | "version">;
  #calls = 0;
  /** The server has said that it is done. */
  done = false;

  constructor(facts: Pick<ModelInForce, "window" | "version">) {
    this.#facts = facts;
  }

  /** The events of a line without an error. */
  *read(value: unknown): Generator<WireEvent> {
    const { data: line } = chatLine.safeParse(value);
    if (line === undefined) throw new WireFailure("garbled", OTHER_LINES, { passing: true });
    yield* this.#message(line);
    if (line.done === true) yield* this.#end(line);
  }

  *#message({ message }: ChatLine): Generator<WireEvent> {
    if (message?.thinking) yield { type: "thinking", text: message.thinking };
    if (message?.content) yield { type: "text", text: message.content };
    // Each call arrives whole. Many versions give all of them the index 0.
    for (const { id, function: called } of message?.tool_calls ?? []) {
      const args = argumentsText(called.arguments);
      yield { type: "call", index: this.#calls, name: called.name, args, ...(id ? { id } : {}) };
      this.#calls += 1;
    }
  }

  *#end(line: ChatLine): Generator<WireEvent> {
    if (line.done_reason === "load" || line.done_reason === "unload")
      throw new WireFailure("server", `the server only ${line.done_reason}ed the model`, {
        passing: true,
      });
    this.done = true;
    const { window, version } = this.#facts;
    const prompt = MISCOUNTING_VERSION.test(version ?? "") ? null : line.prompt_eval_count;
    yield {
      type: "usage",
      ...countIfKnown("prompt", prompt),
      ...countIfKnown("completion", line.eval_count),
    };
    if ((prompt ?? 0) >= window.tokens)
      yield {
        type: "note",
        text: `the prompt may have been cut: it fills the window of ${window.tokens} tokens`,
      };
    yield { type: "stop", stop: this.#stop(line.done_reason) };
  }

  #stop(reason: string | null | undefined): Stop {
    if (reason === "length") return "length";
    if (reason !== "stop") return "unknown";
    return this.#calls > 0 ? "calls" : "end";
  }
}

const countIfKnown = (name: "prompt" | "completion", value: number | null | undefined): object =>
  typeof value === "number" ? { [name]: value } : {};

/** Proxies in front of other servers send the arguments as JSON text. */
function argumentsText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "{}" : JSON.stringify(value);
}

/** The server and model of a request, for remedies. */
interface OllamaContext {
  readonly baseUrl: string;
  readonly model: string;
  /** The request contained a schema for the reply. */
  readonly hasSchema?: boolean;
}

interface Refusal {
  readonly status: number;
  /** The server's own words. */
  readonly words: string;
  /** Its Retry-After header. */
  readonly retryAfter?: string | undefined;
  /** The answer's date, by the server's clock. */
  readonly date?: string | undefined;
}

interface Row {
  readonly statuses: readonly number[] | null;
  readonly words: RegExp;
  readonly kind: FailureKind;
  readonly remedy: (context: OllamaContext) => string;
  readonly passing?: true;
  readonly refusesTools?: true;
}

const noRemedy = (): string => "";
const otherModel = (): string => "harness config set chat_model NAME";
const update = (): string => UPDATE_OLLAMA;
const ANY = /(?:)/;
const MAX_REASON_LENGTH = 500;

/** What Ollama's words mean; the first matching row counts. A stream's error line counts as status 500. */
const ROWS: readonly Row[] = [
  {
    statuses: null,
    words:
      /out of (?:device )?memory|requires more system memory|(?:cuda|hip)malloc failed|failed to allocate|allocation failed|not enough memory|insufficient memory|erroroutofmemory/i,
    kind: "out_of_memory",
    remedy: () => "harness config set max_context_tokens 8192, or choose a smaller model",
  },
  {
    statuses: null,
    words:
      /exceeds? (?:the )?(?:available |maximum |model'?s? )*context|longer than the (?:maximum )?context|exceed_context_size|prompt is too long|input (?:is )?too (?:long|large)/i,
    kind: "too_long",
    remedy: () => "shorten the task, or make more room: harness config set max_context_tokens 65536",
  },
  {
    statuses: [400],
    words: /does not support tools/i,
    kind: "refused",
    remedy: otherModel,
    refusesTools: true,
  },
  { statuses: [400], words: /does not support (?:chat|completion)/i, kind: "refused", remedy: otherModel },
  {
    statuses: null,
    words: /newer version of ollama|no longer compatible with your version/i,
    kind: "refused",
    remedy: update,
  },
  { statuses: [412], words: ANY, kind: "refused", remedy: update },
  { statuses: [401, 403], words: ANY, kind: "unauthorised", remedy: () => "ollama signin" },
  {
    statuses: [404],
    words: /model.*not found|try pulling/i,
    kind: "no_model",
    remedy: ({ baseUrl, model }) => ollamaLine(baseUrl, "pull", model),
  },
  {
    statuses: [400],
    words: /invalid model name|model is required/i,
    kind: "no_model",
    remedy: otherModel,
  },
  {
    statuses: [301, 302, 303, 307, 308, 404, 405],
    words: ANY,
    kind: "unreachable",
    remedy: () => OTHER_ADDRESS,
  },
  { statuses: [429], words: ANY, kind: "rate_limited", remedy: noRemedy, passing: true },
  { statuses: [503], words: /busy|maximum pending/i, kind: "rate_limited", remedy: noRemedy, passing: true },
  {
    statuses: [499, 500, 502, 503, 504],
    words: ANY,
    kind: "server",
    remedy: ({ baseUrl }) => `check Ollama's log, or restart it (${ollamaLine(baseUrl, "serve")})`,
    passing: true,
  },
];
const OTHERWISE: Row = { statuses: null, words: ANY, kind: "refused", remedy: otherModel };

/** From llama-server, on a reply that its grammar cannot parse; the reply follows. */
const UNREAD_REPLY = /Failed to parse input at pos \d+:\s?([\s\S]*)$/;
/** From Ollama's own parsers of calls, which do not return the text that they could not parse. */
const UNREAD_CALL =
  /error parsing tool call|failed to parse|XML syntax error|^invalid (?:format|tool call|argument|function call|object)|^empty (?:function|argument) name|^expected (?:'call:' prefix|'\{' in tool call)|^tool ['"].*['"] (?:not found|is not declared)|mismatched arg_key|failed to produce valid JSON|^required argument .* is missing|^incomplete \w+ tool call|^unterminated string/i;

/** The refusal of a server that accepts no schema, or cannot build a grammar from this one. */
const NO_SCHEMA = /\bformat\b|schema|grammar|structured output/i;

const refusesThinking = ({ status, words }: Refusal): boolean =>
  status === 400 && /does not support thinking/i.test(words);

export function failureOf(refusal: Refusal, context: OllamaContext): WireFailure {
  const words = unwrapped(refusal.words);
  const { kind, remedy, passing, refusesTools } = rowFor(refusal.status, words);
  const raw = unreadIn(words);
  const shown = (raw === null || raw === "" ? words : "the server could not read the model's reply").trim();
  const reason = shown === "" ? `HTTP ${refusal.status}` : shown.slice(0, MAX_REASON_LENGTH);
  return new WireFailure(kind, `Ollama at ${context.baseUrl}: ${reason}`, {
    remedy: remedy(context),
    passing: passing === true,
    busy: isBusy(refusal.status),
    refusesTools: refusesTools === true,
    refusesHold:
      context.hasSchema === true &&
      [400, 422, 500, 501].includes(refusal.status) &&
      raw === null &&
      NO_SCHEMA.test(words),
    retryAfterMs: parseRetryAfter(refusal.retryAfter, Date.now(), refusal.date),
    raw,
  });
}

const unreadIn = (words: string): string | null =>
  UNREAD_REPLY.exec(words)?.[1] ?? (UNREAD_CALL.test(words) ? "" : null);

const rowFor = (status: number, words: string): Row =>
  ROWS.find(({ statuses, words: pattern }) => (statuses?.includes(status) ?? true) && pattern.test(words)) ??
  OTHERWISE;

/** Turns anything thrown on the way into the failure that it stands for. */
function failureIn(
  thrown: unknown,
  context: OllamaContext,
  begun: boolean,
  signal: AbortSignal,
): WireFailure {
  if (signal.aborted) return new WireFailure("cancelled", "cancelled");
  if (thrown instanceof WireFailure) return thrown;
  if (thrown instanceof Refused) return failureOf(thrown, context);
  const code = errorCode(thrown);
  if (begun) {
    const reason =
      code === "ECONNRESET" ? "the connection broke off in the middle of the reply" : reasonOf(thrown);
    return new WireFailure("garbled", reason, { passing: true });
  }
  if (code?.startsWith("HPE_") === true)
    return new WireFailure("unreachable", `what answers at ${context.baseUrl} does not speak HTTP`, {
      remedy: OTHER_ADDRESS,
    });
  const late = code === "ETIMEDOUT";
  return new WireFailure(
    late ? "timeout" : "unreachable",
    `no Ollama answers at ${context.baseUrl}: ${reasonOf(thrown)}`,
    {
      remedy: ollamaLine(context.baseUrl, "serve"),
      passing: late || code === "ECONNRESET" || code === "EPIPE",
    },
  );
}

/** Ollama passes on its runner's answer, JSON included. */
function unwrapped(words: string): string {
  const value = words.trimStart().startsWith("{") ? parsedJson(words) : undefined;
  if (typeof value !== "object" || value === null) return words;
  const { error = value } = value as { readonly error?: unknown };
  if (typeof error === "string") return error;
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? message : words;
}
