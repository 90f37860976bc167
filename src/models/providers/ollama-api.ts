import type { ChatRequest } from "ollama/browser";
import { z } from "zod";
import type { Message, Stop } from "../../core/model-provider.ts";
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
import { failureIn, refusesThinking } from "./ollama-refusals.ts";
import { type ModelInForce, OllamaSession, type SessionOptions } from "./ollama-server.ts";

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
