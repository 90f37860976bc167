import type { EventBody } from "../core/events.ts";
import type {
  AssistantMessage,
  JsonSchema,
  MalformedCall,
  ModelFailure,
  ModelRequest,
  PromptParts,
  ProviderEvent,
  Stop,
  TextEdges,
  ToolOffer,
  Usage,
} from "../core/model-provider.ts";
import { pause, realClock } from "../models/model-api.ts";
import type { AgentContext } from "./agent-context.ts";

export type ModelReply =
  | {
      readonly kind: "replied";
      readonly message: AssistantMessage;
      readonly malformed: readonly MalformedCall[];
      readonly stop: Stop;
      readonly edges?: TextEdges;
    }
  | { readonly kind: "failed"; readonly failure: ModelFailure };

/** Sends one request of the main loop and emits what streams in. Retries when the server breaks off. */
export async function ask(
  agent: AgentContext,
  { building, format, instead }: AskOptions,
  signal: AbortSignal,
): Promise<ModelReply> {
  const names = agent.offers.map(({ name }) => name);
  const request =
    instead === undefined
      ? { ...requestOf(agent, format), ...agent.next.take(names) }
      : { ...requestOf(agent, undefined), ...instead.request, tools: [] };
  const build_ms = Math.max(0, agent.now() - building);
  const patience = new ModelPatience(agent.limits.turns > 1);
  for (let attempt = 2; ; attempt += 1) {
    const { reply, ...broken } = await attemptRequest(agent, { request, build_ms, instead }, signal);
    if (reply.kind === "replied" || reply.failure.kind === "cancelled") return reply;
    const ms = patience.after(reply.failure, broken);
    if (ms === undefined) {
      agent.emit({ type: "model.failed", ...reply.failure });
      return reply;
    }
    agent.emit({ type: "model.waiting", reason: reply.failure.reason, ms, attempt });
    await pause(realClock, ms, signal);
  }
}

/** A request sent in place of the conversation. Constraints that were set for the next reply do not apply to it. */
export interface ReplacementRequest {
  readonly request: Pick<ModelRequest, "messages" | "maxTokens" | "stop" | "temperature">;
  /** Converts the reply to the message that counts. */
  readonly read: (message: AssistantMessage, stop: Stop) => AssistantMessage;
}

interface AskOptions {
  readonly building: number;
  readonly format: JsonSchema | undefined;
  readonly instead?: ReplacementRequest;
}

interface AttemptResult {
  readonly reply: ModelReply;
  /** Whether part of a reply had arrived; none of it counts. */
  readonly shown: boolean;
  /** Whether the server says, or its failure means, that another attempt may help. */
  readonly passing?: boolean;
}

interface AttemptInput {
  readonly instead: ReplacementRequest | undefined;
  readonly request: ModelRequest;
  readonly build_ms: number;
}

async function attemptRequest(
  agent: AgentContext,
  { request, build_ms, instead }: AttemptInput,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const began = agent.now();
  const first = new FirstPiece(agent.now);
  let shown = false;
  for await (const event of agent.provider.stream(request, signal)) {
    first.take(event);
    switch (event.type) {
      case "text":
      case "thinking":
        shown = true;
        agent.emit({ type: event.type, text: event.text });
        break;
      case "waiting":
        shown = false;
        agent.emit({ type: "model.waiting", reason: event.reason, ms: event.ms, attempt: event.attempt });
        break;
      case "call":
        shown = true;
        break;
      case "failed":
        spend(agent, request, event);
        return {
          reply: { kind: "failed", failure: event.failure },
          shown,
          passing: event.passing === true,
        };
      case "finished": {
        const { stop, usage, notes, edges } = event;
        const message = instead?.read(event.message, stop) ?? event.message;
        const malformed = instead === undefined ? event.malformed : [];
        spend(agent, request, event);
        for (const text of notes) agent.emit({ type: "notice", text });
        const calls = message.calls.length + malformed.length;
        const figures = { calls, usage, ms: agent.now() - began, build_ms, ...first.ms };
        const prompt = partsOf(agent, request, usage);
        agent.emit({ type: "model.finished", text: event.message.text, ...figures, prompt });
        for (const { id, name, missed, nearest = [] } of malformed)
          if (missed !== undefined)
            agent.emit({ type: "call.missed", call: id, tool: name, kind: missed, nearest });
        const around = edges === undefined || instead !== undefined ? {} : { edges };
        return { reply: { kind: "replied", message, malformed, stop, ...around }, shown };
      }
    }
  }
  throw new Error("a provider's stream ended without an ending");
}

interface SideRequest {
  readonly messages: ModelRequest["messages"];
  /** Sends the same prefix with its tools, which must not be called. Left out, the question is sent by itself. */
  readonly format?: JsonSchema;
  readonly maxTokens?: number;
  readonly purpose: Extract<EventBody, { readonly type: "model.aside" }>["purpose"];
}

/** A side request. It counts against the budget; its reply is not shown, and calls in it are not run. */
export async function askAside(
  agent: AgentContext,
  { messages, format, maxTokens, purpose }: SideRequest,
  signal: AbortSignal,
): Promise<ModelReply> {
  const own = format === undefined ? { tools: [] } : {};
  const most = maxTokens === undefined ? {} : { maxTokens };
  const request = { ...requestOf(agent, format), ...own, ...most, messages };
  const began = agent.now();
  const first = new FirstPiece(agent.now);
  for await (const event of agent.provider.stream(request, signal)) {
    first.take(event);
    if (event.type !== "finished" && event.type !== "failed") continue;
    spend(agent, request, event);
    const { usage, type: outcome } = event;
    const isSaid = event.type === "finished" && purpose === "expectation";
    const words = isSaid ? { text: event.message.text } : {};
    const fields = { purpose, outcome, ...words, usage, ms: agent.now() - began, ...first.ms };
    agent.emit({ type: "model.aside", ...fields, prompt: partsOf(agent, request, usage) });
    if (event.type === "failed") return { kind: "failed", failure: event.failure };
    const { message, malformed, stop } = event;
    return { kind: "replied", message, malformed, stop };
  }
  throw new Error("a provider's stream ended without an ending");
}

/** Tokens of one reply: a small model that repeats itself goes on to the end of its window, at ten tokens a second. */
const SMALL_REPLY = 4096;

const requestOf = (agent: AgentContext, format: JsonSchema | undefined): ModelRequest => ({
  model: agent.model,
  messages: agent.history.view(),
  tools: agent.offers,
  temperature: agent.next.temperature,
  ...(agent.isWeak ? { maxTokens: SMALL_REPLY } : {}),
  ...(format === undefined ? {} : { format }),
});

/** The usage of several attempts together says nothing about one request. */
const partsOf = ({ size }: AgentContext, request: ModelRequest, usage: Usage): PromptParts =>
  size.parts(request.messages, usage.requests === 1 ? usage.prompt_tokens : null, toolsOf(request));

/** Undefined when the request has all offered tools. */
const toolsOf = ({ tools }: ModelRequest): readonly ToolOffer[] | undefined =>
  tools.length === 0 ? [] : undefined;

/** Measures when the first piece of a reply came, counted from the last time the model was asked. */
class FirstPiece {
  readonly #now: () => number;
  #askedAt: number;
  #came: number | undefined;

  constructor(now: () => number) {
    this.#now = now;
    this.#askedAt = now();
  }

  take({ type, ...event }: ProviderEvent): void {
    if (type === "text" || type === "thinking" || type === "call") this.#came ??= this.#now();
    if (!("ms" in event)) return;
    this.#came = undefined;
    this.#askedAt = this.#now() + event.ms;
  }

  get ms(): { readonly first_token_ms?: number } {
    return this.#came === undefined ? {} : { first_token_ms: Math.max(0, this.#came - this.#askedAt) };
  }
}

type Ending = Extract<ProviderEvent, { readonly type: "finished" | "failed" }>;

function spend(agent: AgentContext, request: ModelRequest, ending: Ending): void {
  const { usage } = ending;
  agent.spent.add(usage);
  const { messages } = request;
  const tools = toolsOf(request);
  const completion = ending.type === "finished" ? agent.size.tokens([ending.message], []) : 0;
  agent.limits.used(usage, { prompt: agent.size.tokens(messages, tools), completion });
  if (usage.requests === 1) agent.size.learn(messages, usage.prompt_tokens, tools);
}

/** Milliseconds before each further attempt: enough for a server to be restarted. */
const WAITS: readonly number[] = [500, 2000, 5000];

/**
 * Decides how long one request of the loop puts up with a server that breaks off or fails in the middle of a reply, or
 * that is away after having been there. Permanent failures are not retried. Neither is a reply that broke off before
 * its first piece: the provider has already retried that often enough.
 */
export class ModelPatience {
  #failures = 0;
  #wasThere: boolean;

  constructor(wasThere: boolean) {
    this.#wasThere = wasThere;
  }

  /** Milliseconds to wait before the next attempt; undefined when there is none. */
  after(
    { kind }: Pick<ModelFailure, "kind">,
    { shown, passing = false }: Omit<AttemptResult, "reply">,
  ): number | undefined {
    this.#wasThere ||= shown;
    const brokeOff = shown && (passing || kind === "garbled");
    const passes = brokeOff || (kind === "unreachable" && this.#wasThere);
    this.#failures += 1;
    return passes ? WAITS[this.#failures - 1] : undefined;
  }
}
