import type { ServerResponse } from "node:http";
import type { EngineRequest, LlamaEngine, Piece } from "./llama-engine.ts";
import { ANY_OBJECT, grammarOf, SchemaRefused } from "./json-grammar.ts";
import { type FoundCall, TaggedCalls } from "./tagged-calls.ts";

/** Shared by both dialects: the handling of one request. */

/** The model's name, whatever the file is called. */
export const MODEL = "gguf:test";

export type Body = Readonly<Record<string, unknown>>;

/** The parameters of a request, in either dialect. */
export interface ReplyRequest extends Omit<EngineRequest, "grammar"> {
  /** A schema, `"json"` for any object, undefined for free text. */
  readonly format: unknown;
}

export type ReplyPiece = Piece | { readonly type: "call"; readonly call: FoundCall };

export type Route = (body: Body, served: Served) => Promise<void>;

/** An error answer with its HTTP status. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** One request and the model it is for. */
export class Served {
  readonly engine: LlamaEngine;
  readonly response: ServerResponse;
  /** Fires when the client has left. */
  readonly signal: AbortSignal;
  readonly #queue: Queue;

  constructor(engine: LlamaEngine, response: ServerResponse, queue: Queue) {
    this.engine = engine;
    this.response = response;
    this.#queue = queue;
    const left = new AbortController();
    response.once("close", () => void (response.writableFinished || left.abort()));
    this.signal = left.signal;
  }

  /** Runs the work after everything requested before has ended. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.add(work);
  }

  /** The reply, with calls extracted from their tags if tools were offered. */
  async *reply(asked: ReplyRequest): AsyncGenerator<ReplyPiece> {
    const reader = asked.tools.length > 0 && this.engine.callsInTags ? new TaggedCalls() : null;
    for await (const piece of this.engine.reply({ ...asked, grammar: heldTo(asked.format) }, this.signal)) {
      if (reader === null) yield piece;
      else if (piece.type === "text") yield* reader.read(piece.text);
      else {
        yield* reader.end();
        yield piece;
      }
    }
  }

  json(value: unknown, status = 200): void {
    this.response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
    this.response.end(JSON.stringify(value));
  }
}

function heldTo(format: unknown): string | undefined {
  if (format === undefined || format === null || format === "") return undefined;
  if (format === "json") return ANY_OBJECT;
  if (typeof format === "object") return grammarOf(format as Body);
  throw new SchemaRefused("a format is a schema or json");
}

/** Runs work one after the other, in the order of arrival. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  add<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}
