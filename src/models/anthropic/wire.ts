import { Concessions } from "../http/concessions.ts";
import { opened } from "../http/opened.ts";
import type { Asked } from "../http/refusals.ts";
import { brokenOff, OTHER_JSON, stranger } from "../http/garbled.ts";
import { replyEvents, valueIn } from "../http/reply.ts";
import type { Wire, WireEvent, WireRequest } from "../wire.ts";
import { ANTHROPIC_CONCESSIONS } from "./concessions.ts";
import { messagesBody } from "./request.ts";
import { MessageReader } from "./stream.ts";
import { Replies } from "./replies.ts";

export interface AnthropicOptions {
  /** Does not end in /v1. */
  readonly baseUrl: string;
  readonly key?: string;
}

/** The one that proxies and servers of one's own know, and the last that takes a temperature. */
const VERSION = "2023-06-01";

/**
 * Anthropic's Messages API. Not through the official client, of which nothing but JSON and a URL would be left:
 * - its fetch follows redirects and takes the key along to another host; it would have to be replaced by `post`;
 * - it hides an abort: a stream that was ended reads like one that is complete, as does one without `message_stop`;
 *   that and bounds on events need the raw bytes, so its reader goes too;
 * - it reads the environment: headers, tokens and credential files of other programs; ANTHROPIC_LOG prints requests to
 *   stdout, which here belongs to the answer; and it warns of models on its own;
 * - its current version speaks a version of the API that proxies do not know and that has no temperature;
 * - loading it costs 85 ms and 25 MB, half of what a start and a fifth of what a run may take.
 * A test holds this wire and its loopback server against the client instead, and requests against its types.
 */
export class AnthropicWire implements Wire {
  readonly #url: string;
  readonly #key: string;
  readonly #concessions = new Concessions(ANTHROPIC_CONCESSIONS);
  readonly #replies = new Replies();

  constructor({ baseUrl, key = "" }: AnthropicOptions) {
    this.#url = `${baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1/messages`;
    this.#key = key.trim();
  }

  async *send(request: WireRequest, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const asked = this.#asked(request);
    const { response, notes } = await opened({
      asked,
      headers: {
        "anthropic-version": VERSION,
        ...(this.#key === "" ? {} : { "x-api-key": this.#key }),
      },
      body: messagesBody(request, this.#replies.of),
      concessions: this.#concessions,
      signal,
      connectMs: request.connectMs,
    });
    for (const text of notes) yield { type: "note", text };
    const reader = new MessageReader();
    for await (const events of replyEvents({
      response,
      asked,
      signal,
      done: () => reader.done,
      complete: () => reader.stopped,
    })) {
      for (const event of events) if (!reader.done) yield* reader.read(valueIn(event, asked));
    }
    if (!reader.stopped && !reader.done) throw reader.begun ? brokenOff() : stranger(asked, OTHER_JSON);
    this.#replies.keep(reader.content ?? []);
  }

  #asked({ model, nativeTools, tools }: WireRequest): Asked {
    return {
      url: this.#url,
      model,
      key: this.#key,
      keyName: "ANTHROPIC_API_KEY",
      tools: nativeTools && tools.length > 0,
    };
  }
}
