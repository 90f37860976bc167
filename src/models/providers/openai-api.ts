import type { JsonSchema, Stop } from "../../core/model-provider.ts";
import { asCount, asFields, asList, asText, type Fields } from "../../core/raw-data.ts";
import { replyBrokeOff, notModelServer, OTHER_JSON, type RequestContext } from "./api-refusals.ts";
import {
  type Concession,
  Concessions,
  openReply,
  replyEvents,
  unstreamed,
  valueIn,
  withoutField,
} from "./api-request.ts";
import { functionTool, type ModelWire, type WireEvent, type WireRequest } from "../model-api.ts";
import {
  type RequestTranscript,
  conversationOf,
  fittedId,
  type IdShape,
  MISTRAL_ID,
  type Turn,
  USUAL_ID,
} from "../request-history.ts";

export interface OpenAiOptions {
  /** Ends in /v1, or in the server's equivalent. */
  readonly baseUrl: string;
  /** Self-hosted servers need none. */
  readonly key?: string;
  /** Requests replies that are not streamed: some servers and proxies break streams, or calls in streams. */
  readonly whole?: boolean;
}

/**
 * The chat API of OpenAI, LM Studio, vLLM, llama.cpp's server, OpenRouter and every other server that speaks it. Does
 * not use the official client, which costs 50 ms and 19 MB and parses only what OpenAI itself would send.
 */
export class OpenAiWire implements ModelWire {
  readonly #url: string;
  readonly #key: string;
  readonly #dialect: Dialect;
  readonly #whole: boolean;
  readonly holds: "at_once" | "after_thinking";
  readonly #concessions = new Concessions(OPENAI_CONCESSIONS);

  constructor({ baseUrl, key = "", whole = false }: OpenAiOptions) {
    this.#whole = whole;
    this.#url = `${baseUrl.replace(/\/+$/, "")}/chat/completions`;
    this.#key = key.trim();
    this.#dialect = dialectOf(baseUrl);
    this.holds = this.#dialect === "local" ? "at_once" : "after_thinking";
  }

  async *send(request: WireRequest, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const context = this.#contextOf(request);
    const { response, notes } = await openReply({
      context,
      headers: this.#key === "" ? {} : { authorization: `Bearer ${this.#key}` },
      body: unstreamed(chatBody(request, this.#dialect), this.#whole),
      concessions: this.#concessions,
      signal,
      connectMs: request.connectMs,
    });
    for (const text of notes) yield { type: "note", text };
    const reader = new ChatReader();
    let done = false;
    for await (const events of replyEvents({
      response,
      context,
      signal,
      done: () => done,
      complete: () => done || reader.stopped,
    })) {
      for (const event of events) {
        done ||= event.data.trim() === "[DONE]";
        if (!done) yield* reader.read(valueIn(event, context));
      }
    }
    if (!reader.stopped && !done) throw reader.begun ? replyBrokeOff() : notModelServer(context, OTHER_JSON);
  }

  #contextOf({ model, nativeTools, tools, replySchema }: WireRequest): RequestContext {
    return {
      url: this.#url,
      model,
      key: this.#key,
      keyName: "OPENAI_API_KEY",
      tools: nativeTools && tools.length > 0,
      hasSchema: replySchema !== undefined,
    };
  }
}

/** The kind of server; kinds differ in how a limit and thinking are written. `local` is every self-hosted server. */
export type Dialect = "openai" | "openrouter" | "local";

export function dialectOf(baseUrl: string): Dialect {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";
  if (host === "api.openai.com" || host.endsWith(".openai.azure.com")) return "openai";
  return host === "openrouter.ai" || host.endsWith(".openrouter.ai") ? "openrouter" : "local";
}

const CLAUDE = /claude/i;
const MISTRAL = /mi[sx]tral|devstral|codestral|ministral|magistral|pixtral/i;

/** The whole body of a chat request. The same request gives the same bytes. */
export function chatBody(request: WireRequest, dialect: Dialect): Fields {
  const { model, messages, tools, maxTokens, stop, temperature, think, format } = request;
  const offered = request.nativeTools ? tools : [];
  return {
    model,
    messages: chatMessages(conversationOf(messages), model, dialect),
    ...(offered.length === 0 ? {} : { tools: offered.map(functionTool) }),
    // llama.cpp's server gives one call per reply unless asked for more.
    ...(offered.length > 0 && dialect === "local" ? { parallel_tool_calls: true } : {}),
    stream: true,
    stream_options: { include_usage: true },
    ...(maxTokens === undefined
      ? {}
      : { [dialect === "openai" ? "max_completion_tokens" : "max_tokens"]: maxTokens }),
    ...(stop === undefined ? {} : { stop }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(think === undefined ? {} : thinkingOf(think, dialect)),
    ...(format === undefined ? {} : responseFormat({ name: "answer", schema: format })),
    ...(request.replySchema === undefined ? {} : responseFormat(heldFormat(request.replySchema, dialect))),
  };
}

const responseFormat = (json_schema: Fields): Fields => ({
  response_format: { type: "json_schema", json_schema },
});

const HELD = "call_or_answer";

/** OpenAI requires an object around the choice, and accepts optional arguments only if the schema is not strict. */
function heldFormat(schema: JsonSchema, dialect: Dialect): Fields {
  if (dialect !== "openai") return { name: HELD, strict: true, schema };
  const around = {
    type: "object",
    properties: { reply: schema },
    required: ["reply"],
    additionalProperties: false,
  };
  return { name: HELD, strict: false, schema: around };
}

/** vLLM, SGLang and llama.cpp pass `chat_template_kwargs` to the model's template. */
function thinkingOf(think: boolean, dialect: Dialect): Fields {
  if (dialect === "openai") return { reasoning_effort: think ? "medium" : "none" };
  if (dialect === "openrouter") return { reasoning: { enabled: think } };
  return { chat_template_kwargs: { enable_thinking: think } };
}

function chatMessages(
  { system, turns }: RequestTranscript,
  model: string,
  dialect: Dialect,
): readonly Fields[] {
  const claude = CLAUDE.test(model);
  const shape = MISTRAL.test(model) ? MISTRAL_ID : USUAL_ID;
  const marked = claude ? markedTurns(turns) : new Set<Turn>();
  const head = system === "" ? [] : [{ role: "system", content: contentOf(system, claude) }];
  const own = { claude, shape, thoughts: !claude && dialect !== "openai" };
  return [...head, ...turns.flatMap((turn) => turnOf(turn, own, marked.has(turn)))];
}

interface TurnOptions {
  readonly claude: boolean;
  readonly shape: IdShape;
  /** Whether a turn with calls is sent back together with its thoughts. */
  readonly thoughts: boolean;
}

function turnOf(turn: Turn, { claude, shape, thoughts }: TurnOptions, mark: boolean): readonly Fields[] {
  if (turn.role === "user") return [{ role: "user", content: contentOf(turn.text, mark) }];
  if (turn.role === "results")
    return turn.results.map(({ call, text }, index) => ({
      role: "tool",
      tool_call_id: fittedId(call, shape),
      content: contentOf(text, mark && index === turn.results.length - 1),
    }));
  if (turn.calls.length === 0) return [{ role: "assistant", content: turn.text }];
  return [
    {
      role: "assistant",
      // If the content is absent, templates fail when they append it to text; Anthropic refuses an empty text.
      content: turn.text === "" && claude ? null : turn.text,
      ...(thoughts && turn.thinking !== "" ? { reasoning_content: turn.thinking } : {}),
      tool_calls: turn.calls.map(({ id, name, args }) => ({
        id: fittedId(id, shape),
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      })),
    },
  ];
}

/** Adds a breakpoint: routers pass it on to Claude, which caches only what precedes one. */
const contentOf = (text: string, breakpoint: boolean): unknown =>
  breakpoint && text !== "" ? [{ type: "text", text, cache_control: { type: "ephemeral" } }] : text;

/** The last two turns of the user's side: the first of them was the end of the previous request. */
function markedTurns(turns: readonly Turn[]): ReadonlySet<Turn> {
  const asking = turns.filter(({ role }, index) => role !== "assistant" && turns[index + 1]?.role !== "user");
  return new Set(asking.slice(-2));
}

/** Fields that some servers are known to refuse, recognized by the text of the refusal. */
const OPENAI_CONCESSIONS: readonly Concession[] = [
  {
    name: "stream_options",
    says: /stream_options|include_usage/i,
    without: (body) => withoutField(body, "stream_options"),
  },
  {
    name: "max_tokens",
    says: /max_completion_tokens['"`]? instead|max_tokens['"`]? is not supported/i,
    without: (body) => renamed(body, "max_tokens", "max_completion_tokens"),
  },
  {
    name: "max_completion_tokens",
    says: /max_completion_tokens[^.]{0,60}(?:extra|not (?:permitted|supported|allowed))|un(?:known|recognized|supported|expected)[^.]{0,60}max_completion_tokens/i,
    without: (body) => renamed(body, "max_completion_tokens", "max_tokens"),
  },
  {
    name: "parallel_tool_calls",
    says: /parallel_tool_calls|parallel tool calls/i,
    without: (body) => withoutField(body, "parallel_tool_calls"),
  },
  {
    name: "temperature",
    says: /\btemperature\b/i,
    without: (body) => withoutField(body, "temperature"),
    note: "the server does not accept a temperature for this model",
  },
  // Thinking models refuse this parameter. Text after the stop is then ignored here.
  { name: "stop", says: /['"`]stop['"`]/i, without: (body) => withoutField(body, "stop") },
  ...["reasoning_effort", "reasoning", "chat_template_kwargs"].map((field) => ({
    name: field,
    says: new RegExp(`\\b${field}\\b|enable_thinking`, "i"),
    without: (body: Fields) => withoutField(body, field),
    note: "thinking cannot be set on this server",
  })),
  { name: "cache_control", says: /cache_control/i, without: withoutBreakpoints },
  { name: "reasoning_content", says: /reasoning_content/i, without: withoutThoughts },
  {
    name: "response_format",
    says: /response_format|json_schema|structured output|custom grammar|guided|grammar constraint/i,
    without: (body) => (hasHeldSchema(body) ? undefined : withoutField(body, "response_format")),
    note: "the server does not accept a schema for the answer",
  },
];

/** Whether the body contains the schema of a held reply; the caller drops such a schema, not this table. */
const hasHeldSchema = (body: Fields): boolean =>
  asFields(asFields(body["response_format"])?.["json_schema"])?.["name"] === HELD;

function renamed(body: Fields, from: string, to: string): Fields | undefined {
  if (!(from in body) || to in body) return undefined;
  return Object.fromEntries(Object.entries(body).map(([key, value]) => [key === from ? to : key, value]));
}

function withoutBreakpoints(body: Fields): Fields | undefined {
  return withMessagesChanged(body, (message) => {
    const parts = asList(message["content"]).map(asFields);
    const marked = parts.length === 1 && parts[0]?.["cache_control"] !== undefined;
    return marked ? { ...message, content: parts[0]?.["text"] } : message;
  });
}

function withoutThoughts(body: Fields): Fields | undefined {
  return withMessagesChanged(body, (message) => withoutField(message, "reasoning_content") ?? message);
}

function withMessagesChanged(body: Fields, change: (message: Fields) => Fields): Fields | undefined {
  const before = asList(body["messages"]);
  const after = before.map((message) => change(asFields(message) ?? {}));
  return after.some((message, index) => message !== before[index]) ? { ...body, messages: after } : undefined;
}

const STOPS: Readonly<Record<string, Stop>> = {
  stop: "end",
  eos: "end",
  eos_token: "end",
  end_turn: "end",
  stop_sequence: "end",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  tool_calls: "calls",
  function_call: "calls",
  tool_use: "calls",
  content_filter: "filtered",
};

/** Turns chunks of a chat completion, or a whole one, into events. Reads only the first choice. */
export class ChatReader {
  readonly #calls = new CallParts();
  /** The server has said why the reply ends; its token counts may still follow. */
  stopped = false;
  /** Something that a chat API sends has arrived. */
  begun = false;

  read(value: unknown): WireEvent[] {
    const chunk = asFields(value) ?? {};
    this.begun ||= "choices" in chunk || "usage" in chunk;
    const choice = asList(chunk["choices"])
      .map(asFields)
      .find((each) => (each?.["index"] ?? 0) === 0);
    const events: WireEvent[] = [];
    if (choice !== undefined) this.#choice(choice, events);
    const usage = usageIn(asFields(chunk["usage"]) ?? asFields(asFields(chunk["x_groq"])?.["usage"]));
    if (usage !== undefined) events.push(usage);
    return events;
  }

  #choice(choice: Fields, events: WireEvent[]): void {
    const delta = asFields(choice["delta"]) ?? asFields(choice["message"]);
    if (delta !== undefined) this.#delta(delta, events);
    const reason = asText(choice["finish_reason"]);
    if (reason === undefined || this.stopped) return;
    this.stopped = true;
    events.push({ type: "stop", stop: STOPS[reason] ?? "unknown" });
  }

  #delta(delta: Fields, events: WireEvent[]): void {
    const thought = asText(delta["reasoning_content"]) ?? asText(delta["reasoning"]);
    if (thought !== undefined) events.push({ type: "thinking", text: thought });
    contentIn(delta["content"], events);
    contentIn(delta["refusal"], events);
    for (const call of listIn(delta["tool_calls"])) this.#calls.read(asFields(call) ?? {}, events);
    const legacy = asFields(delta["function_call"]);
    if (legacy !== undefined) this.#calls.read({ index: "legacy", function: legacy }, events);
  }
}

/** Some servers send a single call without the list around it. */
const listIn = (calls: unknown): readonly unknown[] =>
  Array.isArray(calls) ? calls : calls === undefined || calls === null ? [] : [calls];

function contentIn(content: unknown, events: WireEvent[]): void {
  const text = asText(content);
  if (text !== undefined) events.push({ type: "text", text });
  for (const part of asList(content)) partOf(asFields(part) ?? {}, events);
}

/** Mistral's own API sends parts, with thoughts among them. */
function partOf(part: Fields, events: WireEvent[]): void {
  const text = asText(part["text"]);
  if (text !== undefined) events.push({ type: "text", text });
  for (const thought of asList(part["thinking"])) {
    const text = asText(asFields(thought)?.["text"]);
    if (text !== undefined) events.push({ type: "thinking", text });
  }
}

/** DeepSeek reports cached tokens in a field of its own. */
function usageIn(usage: Fields | undefined): WireEvent | undefined {
  if (usage === undefined) return undefined;
  const prompt = asCount(usage["prompt_tokens"]);
  const completion = asCount(usage["completion_tokens"]);
  const cached =
    asCount(asFields(usage["prompt_tokens_details"])?.["cached_tokens"]) ??
    asCount(usage["prompt_cache_hit_tokens"]);
  if (prompt === undefined && completion === undefined) return undefined;
  return {
    type: "usage",
    ...(prompt === undefined ? {} : { prompt }),
    ...(completion === undefined ? {} : { completion }),
    ...(cached === undefined ? {} : { cached }),
  };
}

interface Part {
  /** The server's index of the call. */
  readonly key: unknown;
  readonly index: number;
  id: string | undefined;
  name: string | undefined;
  /** The arguments have begun. */
  begun: boolean;
}

/**
 * Assigns the parts of calls an index of our own. Servers count from 0, leave the index out, or give every call the
 * same one; some send id and name once, some with every part, some a new id with every part. A part begins a new call
 * if it is the first of its index, or if it brings both a name and an id other than that of its index.
 */
class CallParts {
  readonly #parts: Part[] = [];

  read(call: Fields, events: WireEvent[]): void {
    const made = asFields(call["function"]) ?? call;
    const [id, name] = [asText(call["id"]), asText(made["name"])];
    const args = argumentText(made["arguments"]);
    const part = this.#partOf(call["index"], id, name) ?? this.#begin(call["index"]);
    const fresh = freshIn(part, id, name);
    part.id ??= id;
    part.name ??= name;
    part.begun ||= args !== "";
    const whole = args === "" ? fresh : { ...fresh, args };
    if (Object.keys(whole).length > 0) events.push({ type: "call", index: part.index, ...whole });
  }

  #begin(key: unknown): Part {
    const part = { key, index: this.#parts.length, id: undefined, name: undefined, begun: false };
    this.#parts.push(part);
    return part;
  }

  #partOf(key: unknown, id: string | undefined, name: string | undefined): Part | undefined {
    const nameless = key === undefined || key === null;
    const last = nameless ? this.#parts.at(-1) : this.#parts.findLast((part) => part.key === key);
    if (last === undefined || name === undefined) return last;
    if (id === undefined) return nameless && last.name !== undefined ? undefined : last;
    return last.id === undefined || last.id === id ? last : undefined;
  }
}

/** Only what is new: a name may arrive in pieces until the arguments begin. */
function freshIn(
  part: Part,
  id: string | undefined,
  name: string | undefined,
): { id?: string; name?: string } {
  return {
    ...(part.id === undefined && id !== undefined ? { id } : {}),
    ...(name !== undefined && name !== part.name && !part.begun ? { name } : {}),
  };
}

/** Some servers send an object where the API requires text. */
function argumentText(args: unknown): string {
  if (args === undefined || args === null) return "";
  return typeof args === "string" ? args : JSON.stringify(args);
}
