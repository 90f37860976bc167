import type { ToolCall } from "../../core/model-provider.ts";
import { asFields, asList, type Fields } from "../../core/raw-data.ts";
import type { ModelWire, WireEvent, WireRequest } from "../model-api.ts";
import { conversationOf, fittedId, type Turn, USUAL_ID } from "../request-history.ts";
import { MessageReader } from "./anthropic-stream.ts";
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

interface AnthropicOptions {
  /** Must not end in /v1. */
  readonly baseUrl: string;
  readonly key?: string;
  /** Requests replies that are not streamed. */
  readonly whole?: boolean;
}

/** The version that proxies and self-hosted servers know, and the last one that accepts a temperature. */
const VERSION = "2023-06-01";

/**
 * Anthropic's Messages API. It does not use the official client, of which only JSON and a URL would remain in use:
 * - its fetch follows redirects and sends the key to another host; it would have to be replaced by ours;
 * - it hides an abort: an aborted stream looks like a complete one, as does one without `message_stop`;
 * detecting that and bounding events needs the raw bytes, so its reader would go too;
 * - it reads the environment: headers, tokens and credential files of other programs; ANTHROPIC_LOG prints requests to
 * stdout, which here belongs to the answer; and it prints warnings about models on its own;
 * - its current version speaks an API version that proxies do not know and that has no temperature;
 * - loading it costs 85 ms and 25 MB, half of what a start and a fifth of what a run may take.
 * A test compares this wire and its loopback server with the client instead, and the requests with its types.
 */
export class AnthropicWire implements ModelWire {
  readonly #url: string;
  readonly #key: string;
  readonly #whole: boolean;
  readonly #concessions = new Concessions(ANTHROPIC_CONCESSIONS);
  readonly #replies = new Replies();

  constructor({ baseUrl, key = "", whole = false }: AnthropicOptions) {
    this.#whole = whole;
    this.#url = `${baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1/messages`;
    this.#key = key.trim();
  }

  async *send(request: WireRequest, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const context = this.#contextOf(request);
    const { response, notes } = await openReply({
      context,
      headers: {
        "anthropic-version": VERSION,
        ...(this.#key === "" ? {} : { "x-api-key": this.#key }),
      },
      body: unstreamed(messagesBody(request, this.#replies.of), this.#whole),
      concessions: this.#concessions,
      signal,
      connectMs: request.connectMs,
    });
    for (const text of notes) yield { type: "note", text };
    const reader = new MessageReader();
    for await (const events of replyEvents({
      response,
      context,
      signal,
      done: () => reader.done,
      complete: () => reader.stopped,
    })) {
      for (const event of events) if (!reader.done) yield* reader.read(valueIn(event, context));
    }
    if (!reader.stopped && !reader.done)
      throw reader.begun ? replyBrokeOff() : notModelServer(context, OTHER_JSON);
    this.#replies.keep(reader.content ?? []);
  }

  #contextOf({ model, nativeTools, tools }: WireRequest): RequestContext {
    return {
      url: this.#url,
      model,
      key: this.#key,
      keyName: "ANTHROPIC_API_KEY",
      tools: nativeTools && tools.length > 0,
    };
  }
}

/** A reply block for block, including signed thoughts; undefined if it is not kept. */
type ReplyOf = (text: string, calls: readonly ToolCall[]) => readonly Fields[] | undefined;

/**
 * The API has no default limit. If a model's limit is lower, its refusal names it, and the request is repeated with
 * that.
 */
const MAX_TOKENS = 32_000;
const MIN_THOUGHT = 1024;
/** These models take a thinking budget and do not choose one themselves. */
const BUDGETED = /claude-(?:3-7|sonnet-4(?:-5)?(?:-2\d{7})?$|opus-4(?:-[015])?(?:-2\d{7})?$|haiku-4-5)/;
const BREAKPOINT = { cache_control: { type: "ephemeral" } } as const;

/** The whole body of a request. The same request gives the same bytes. */
export function messagesBody(request: WireRequest, replyOf: ReplyOf): Fields {
  const { model, messages, maxTokens = MAX_TOKENS, stop } = request;
  const tools = request.nativeTools ? request.tools : [];
  const { system, turns } = conversationOf(messages);
  return {
    model,
    max_tokens: maxTokens,
    ...(stop === undefined ? {} : { stop_sequences: stop }),
    stream: true,
    ...(system === "" ? {} : { system: [{ type: "text", text: system, ...BREAKPOINT }] }),
    ...(tools.length === 0 ? {} : { tools: tools.map(toolOf) }),
    messages: withBreakpoints(blocksOf(turns, replyOf)),
    ...samplingOptions(request, thinkingOf(request, maxTokens, isKnown(turns, replyOf))),
  };
}

/** A model that is thinking accepts no temperature. */
function samplingOptions({ temperature, format }: WireRequest, thinking: Fields | undefined): Fields {
  const thinks = thinking !== undefined && thinking["type"] !== "disabled";
  return {
    ...(temperature === undefined || thinks ? {} : { temperature }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(format === undefined ? {} : { output_config: { format: { type: "json_schema", schema: format } } }),
  };
}

/** The last tool carries the breakpoint that ends the cached prefix of all tools. */
function toolOf(
  { name, description, schema }: WireRequest["tools"][number],
  index: number,
  all: WireRequest["tools"],
): Fields {
  const tool = { name, description, input_schema: schema };
  return index === all.length - 1 ? { ...tool, ...BREAKPOINT } : tool;
}

/**
 * With a budget, a reply whose calls were just answered has to be sent back beginning with its thoughts. If those are
 * not known, the request cannot ask for thinking.
 */
function thinkingOf({ think, model }: WireRequest, maxTokens: number, known: boolean): Fields | undefined {
  if (think === undefined) return undefined;
  if (!think) return { type: "disabled" };
  if (!BUDGETED.test(model)) return { type: "adaptive", display: "summarized" };
  const budget = Math.min(16_000, Math.floor(maxTokens / 2));
  return known && budget >= MIN_THOUGHT ? { type: "enabled", budget_tokens: budget } : undefined;
}

function isKnown(turns: readonly Turn[], replyOf: ReplyOf): boolean {
  const [called, last] = turns.slice(-2);
  if (last?.role !== "results" || called?.role !== "assistant") return true;
  return replyOf(called.text, called.calls) !== undefined;
}

interface ApiMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly Fields[];
}

/** Merges results and the user's next text into one message, because roles must alternate. */
function blocksOf(turns: readonly Turn[], replyOf: ReplyOf): readonly ApiMessage[] {
  const result: ApiMessage[] = [];
  for (const turn of turns) {
    const role = turn.role === "assistant" ? "assistant" : "user";
    const content = contentOf(turn, replyOf);
    const last = result.at(-1);
    if (last?.role === role) result.splice(-1, 1, { role, content: [...last.content, ...content] });
    else result.push({ role, content });
  }
  const opens = result[0]?.role === "assistant";
  return opens ? [{ role: "user", content: [{ type: "text", text: "Go on." }] }, ...result] : result;
}

function contentOf(turn: Turn, replyOf: ReplyOf): readonly Fields[] {
  if (turn.role === "user") return [{ type: "text", text: turn.text }];
  if (turn.role === "results")
    return turn.results.map(({ call, text }) => ({
      type: "tool_result",
      tool_use_id: fittedId(call, USUAL_ID),
      // The API refuses a text of only white space.
      ...(text.trim() === "" ? {} : { content: text }),
    }));
  return replyOf(turn.text, turn.calls) ?? blocksFromTurn(turn);
}

const blocksFromTurn = ({
  text,
  calls,
}: Extract<Turn, { readonly role: "assistant" }>): readonly Fields[] => [
  ...(text.trim() === "" ? [] : [{ type: "text", text }]),
  ...calls.map(({ id, name, args }) => ({
    type: "tool_use",
    id: fittedId(id, USUAL_ID),
    name,
    input: args,
  })),
];

/**
 * Sets breakpoints at the ends of the last two user messages: the first of them was the end of the previous request.
 */
function withBreakpoints(turns: readonly ApiMessage[]): readonly Fields[] {
  const places = turns.flatMap(({ role }, index) => (role === "user" ? [index] : []));
  const ends = new Set(places.slice(-2));
  return turns.map(({ role, content }, index) => ({
    role,
    content: ends.has(index)
      ? content.map((block, at) => (at === content.length - 1 ? { ...block, ...BREAKPOINT } : block))
      : content,
  }));
}

const isThought = (block: unknown): boolean =>
  /^(?:redacted_)?thinking$/.test(String(asFields(block)?.["type"]));

const withoutCacheControl = (blocks: unknown): readonly Fields[] =>
  asList(blocks).map((block) => {
    const fields = asFields(block) ?? {};
    return withoutField(fields, "cache_control") ?? fields;
  });

/** What some models or proxies are known to refuse, recognized by the text of the refusal. */
const ANTHROPIC_CONCESSIONS: readonly Concession[] = [
  {
    name: "max_tokens",
    says: /max_tokens: \d+ > \d+/,
    without: (body, text) => {
      const most = Number(/max_tokens: \d+ > (\d+)/.exec(text)?.[1]);
      return most > 0 && Number(body["max_tokens"]) > most ? withTokenLimit(body, most) : undefined;
    },
  },
  // Something before the thoughts has changed: the history was compacted or comes from elsewhere.
  {
    name: "thoughts",
    says: /\bsignature\b|bound to a different|thinking[^]{0,80}cannot be modified/i,
    without: withoutThoughts,
  },
  { name: "budget", says: /adaptive thinking|thinking[^]{0,40}adaptive/i, without: otherThinking },
  {
    name: "thinking",
    says: /\bthinking\b/i,
    without: (body) => withoutField(body, "thinking"),
    note: "thinking cannot be set for this model",
  },
  {
    name: "temperature",
    says: /\btemperature\b/i,
    without: (body) => withoutField(body, "temperature"),
    note: "the server does not accept a temperature for this model",
  },
  {
    name: "output_config",
    says: /output_config|output_format|structured output|json_schema/i,
    without: (body) => withoutField(body, "output_config"),
    note: "the server does not accept a schema for the answer",
  },
  { name: "cache_control", says: /cache_control/i, without: withoutBreakpoints },
];

/** Keeps the thinking budget below the reply's limit. */
function withTokenLimit(body: Fields, most: number): Fields {
  const thinking = asFields(body["thinking"]);
  const budget = Number(thinking?.["budget_tokens"]);
  const less = budget >= most ? { thinking: { ...thinking, budget_tokens: Math.floor(most / 2) } } : {};
  return { ...body, max_tokens: most, ...less };
}

/** Newer models choose how long to think, older ones need a budget. */
function otherThinking(body: Fields): Fields | undefined {
  const type = asFields(body["thinking"])?.["type"];
  if (type === "enabled") return { ...body, thinking: { type: "adaptive", display: "summarized" } };
  if (type !== "adaptive") return undefined;
  const budget = Math.min(16_000, Math.floor(Number(body["max_tokens"]) / 2));
  return budget < 1024 ? undefined : { ...body, thinking: { type: "enabled", budget_tokens: budget } };
}

function withoutThoughts(body: Fields): Fields | undefined {
  const messages = asList(body["messages"]).map((message) => asFields(message) ?? {});
  if (!messages.some(({ content }) => asList(content).some(isThought))) return undefined;
  const without = messages.map((message) => ({
    ...message,
    content: asList(message["content"]).filter((block) => !isThought(block)),
  }));
  return { ...body, messages: without };
}

function withoutBreakpoints(body: Fields): Fields | undefined {
  if (!JSON.stringify(body).includes('"cache_control"')) return undefined;
  return {
    ...body,
    ...("system" in body ? { system: withoutCacheControl(body["system"]) } : {}),
    ...("tools" in body ? { tools: withoutCacheControl(body["tools"]) } : {}),
    messages: asList(body["messages"]).map((message) => {
      const fields = asFields(message) ?? {};
      return { ...fields, content: withoutCacheControl(fields["content"]) };
    }),
  };
}

const MAX_REPLIES = 500;

/**
 * Replies with signed thoughts, block for block as received. A transcript cannot hold signatures, and the API accepts
 * thoughts only if they are complete, unchanged and in their places. A reply that differs in the transcript is not
 * found here; after a restart none is.
 */
class Replies {
  readonly #kept = new Map<string, readonly Fields[]>();

  keep(content: readonly Fields[]): void {
    if (!content.some(({ type }) => type === "thinking" || type === "redacted_thinking")) return;
    if (content.some(({ id = "_" }) => !USUAL_ID.fits.test(String(id)))) return;
    const key = keyOf(
      content.map(({ text }) => (typeof text === "string" ? text : "")).join(""),
      content.filter(({ type }) => type === "tool_use").map(({ id, name, input }) => [id, name, input]),
    );
    this.#kept.delete(key);
    this.#kept.set(key, content);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_REPLIES) break;
      this.#kept.delete(oldest);
    }
  }

  readonly of = (text: string, calls: readonly ToolCall[]): readonly Fields[] | undefined =>
    this.#kept.get(
      keyOf(
        text,
        calls.map(({ id, name, args }) => [id, name, args]),
      ),
    );
}

const keyOf = (text: string, calls: readonly unknown[]): string => JSON.stringify([text, calls]);
