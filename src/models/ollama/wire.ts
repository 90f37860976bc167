import type { IncomingMessage } from "node:http";
import {
  LONGEST_LINE,
  LONGEST_STREAM,
  type Wire,
  WireFailure,
  type WireEvent,
  type WireRequest,
} from "../wire.ts";
import { chatBody, leftOut } from "./body.ts";
import { type Asked, failureIn, failureOf, type Refusal, refusesThinking } from "./failures.ts";
import { ask, bodyOf, jsonIn, wordsIn } from "./http.ts";
import { letGo, linesOf } from "./lines.ts";
import { ReplyReader } from "./reply.ts";
import { type ModelInForce, OllamaSession, type SessionOptions } from "./session.ts";

/**
 * Ollama's /api/chat. Not through the official client (0.6.4): it takes no signal for one request, and none at all
 * before the head has come; it skips lines that are no JSON; it writes to stdout when a refusal is no JSON; and
 * fetch, below it, gives up after five silent minutes, which a long prompt on a slow machine takes. Its types know
 * neither `truncate` nor `shift`.
 */
export class OllamaWire implements Wire {
  readonly #options: SessionOptions;
  readonly #session: OllamaSession;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#session = new OllamaSession(options);
  }

  /** What every request for the model is made with; a failure to find out is thrown as a WireFailure. */
  modelInForce(model: string, signal: AbortSignal): Promise<ModelInForce> {
    return this.#session.modelInForce(model, signal);
  }

  async *send(request: WireRequest, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const asked = { baseUrl: this.#options.baseUrl, model: request.model };
    let begun = false;
    try {
      if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
      const facts = await this.#session.modelInForce(request.model, signal);
      const [response, used] = await this.#post(request, facts, signal);
      begun = true;
      for (const text of leftOut(request, used)) yield { type: "note", text };
      yield* replyOf(response, new ReplyReader(used), asked, signal);
    } catch (thrown) {
      throw failureIn(thrown, asked, begun, signal);
    }
  }

  /** Asks; a model that does not think after all is asked once more, and from then on, without. */
  async #post(
    request: WireRequest,
    facts: ModelInForce,
    signal: AbortSignal,
  ): Promise<readonly [IncomingMessage, ModelInForce]> {
    const { baseUrl } = this.#options;
    const body = chatBody(request, facts);
    const response = await ask(`${baseUrl}/api/chat`, {
      signal,
      body,
      connectMs: request.connectMs,
    });
    if (response.statusCode === 200) return [response, facts];
    const refusal = await refusalOf(response);
    if (body.think !== undefined && refusesThinking(refusal))
      return this.#post(request, this.#session.cannotThink(request.model, facts), signal);
    throw failureOf(refusal, { baseUrl, model: request.model });
  }
}

async function* replyOf(
  response: IncomingMessage,
  reader: ReplyReader,
  asked: Asked,
  signal: AbortSignal,
): AsyncGenerator<WireEvent> {
  try {
    for await (const line of linesOf(response, { longest: LONGEST_LINE, whole: LONGEST_STREAM })) {
      if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
      const value = jsonIn(line);
      const words = wordsIn(value);
      // The head has gone out by then, so that the status stays 200.
      if (words !== undefined) throw failureOf({ status: 500, words }, asked);
      yield* reader.read(value);
      if (reader.done) return letGo(response);
    }
  } finally {
    if (!reader.done) response.destroy();
  }
  throw new WireFailure("garbled", "the server ended the reply without saying that it is done", {
    passing: true,
  });
}

async function refusalOf(response: IncomingMessage): Promise<Refusal> {
  const body = (await bodyOf(response)) ?? "";
  return {
    status: response.statusCode ?? 0,
    words: wordsIn(jsonIn(body)) ?? "",
    retryAfter: response.headers["retry-after"],
  };
}
