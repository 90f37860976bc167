import type { IncomingMessage } from "node:http";
import { reasonOf } from "../../core/errors.ts";
import { asFields, parsedJson } from "../../core/text/json-values.ts";
import { chunksOf, releaseConnection } from "../http-request.ts";
import { endless, MAX_LINE_LENGTH, MAX_STREAM_LENGTH, WireFailure } from "../model-api.ts";
import {
  brokenOff,
  failureOf,
  notA,
  notModelServer,
  refusalIn,
  type RequestContext,
  shown,
} from "./api-refusals.ts";
import { wholeText } from "./api-request.ts";

/** How long the connection of a complete reply stays open before it is closed. */
const DRAIN_MS = 1000;

interface ReplySource {
  readonly response: IncomingMessage;
  readonly asked: RequestContext;
  readonly signal: AbortSignal;
  /** Whether the server is done: anything that still arrives is discarded. */
  readonly done: () => boolean;
  /** Whether the model is done: from then on a broken connection does no harm. */
  readonly complete: () => boolean;
}

/**
 * The events of an answer as they arrive, until it is done. A whole JSON answer, from a server that does not stream or
 * that fails with HTTP 200, is one event. Throws if there is no event at all, or if the connection breaks.
 */
export async function* replyEvents(reply: ReplySource): AsyncGenerator<readonly SseEvent[], void> {
  const { response, asked, signal, done, complete } = reply;
  const type = response.headers["content-type"] ?? "";
  try {
    if (/\bhtml\b/i.test(type)) throw notModelServer(asked, "it answers with a web page");
    if (/\bjson\b/i.test(type)) yield wholeJson(await wholeText(response));
    else yield* streamed(reply);
  } catch (thrown) {
    if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
    if (thrown instanceof WireFailure) throw thrown;
    if (!complete()) throw brokenOff(reasonOf(thrown));
  } finally {
    if (done() && !signal.aborted) releaseConnection(response, DRAIN_MS);
    else response.destroy();
  }
}

async function* streamed({ response, asked, done }: ReplySource): AsyncGenerator<readonly SseEvent[], void> {
  const reader = new SseReader();
  let any = false;
  const strange = (): WireFailure =>
    any
      ? notA("an event", reader.stray)
      : notModelServer(asked, `it answers with unexpected text: ${shown(reader.stray)}`);
  for await (const chunk of chunksOf(response, MAX_STREAM_LENGTH)) {
    const events = reader.push(chunk);
    any ||= events.length > 0;
    if (events.length > 0) yield events;
    if (done()) return;
    if (reader.stray !== "") throw strange();
  }
  const last = reader.end();
  if (last.length > 0) yield last;
  else if (reader.stray !== "") throw strange();
  else if (!any) throw brokenOff("nothing arrived");
}

/** The parsed data of an event. Throws if the event is an error or is not JSON. */
export function valueIn({ event, data }: SseEvent, context: RequestContext): unknown {
  const value = parsedJson(data);
  const bare = event === "error" && asFields(value)?.["error"] === undefined;
  const refusal = refusalIn(bare ? { error: value ?? data } : value, 200);
  if (refusal !== undefined) throw failureOf(refusal, context);
  if (value === undefined) throw notA("JSON", data);
  return value;
}

/** Some proxies label a stream as JSON. */
function wholeJson(text: string): SseEvent[] {
  if (!/^\s*(?:data|event|id|retry)?:/.test(text)) return [{ event: "", data: text }];
  const reader = new SseReader();
  return [...reader.push(Buffer.from(text)), ...reader.end()];
}

export interface SseEvent {
  /** Empty if the server names none. */
  readonly event: string;
  readonly data: string;
}

/** The standard says to ignore unknown fields. */
const FIELD = /^[A-Za-z][\w-]{0,30}$/;
/** Overhead of a line beside its text: empty lines are kept too. */
const LINE_OVERHEAD = 64;
const BRACE = 0x7b;
const SPACE = 0x20;

/**
 * Parses server-sent events from bytes that may be cut anywhere: inside a character, a line end or a JSON token. Beyond
 * the standard it accepts what servers really send: a last event without its blank line, a bare JSON line for an error,
 * and a field called `error`. Bytes that are not UTF-8 become U+FFFD; an event without an end throws a `WireFailure`.
 */
export class SseReader {
  readonly #decoder = new TextDecoder();
  #line = "";
  #afterCr = false;
  #event = "";
  #data: string[] = [];
  #size = 0;
  /** The first line that cannot belong to an event stream; empty if there is none. */
  stray = "";

  push(bytes: Uint8Array): SseEvent[] {
    return this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The events still open when the connection ended. */
  end(): SseEvent[] {
    return this.#take(`${this.#decoder.decode()}\n\n`);
  }

  #take(text: string): SseEvent[] {
    const found: SseEvent[] = [];
    let start = this.#afterCr && text.startsWith("\n") ? 1 : 0;
    if (text !== "") this.#afterCr = false;
    const returns = text.includes("\r");
    for (;;) {
      const end = returns ? nextEnd(text, start) : text.indexOf("\n", start);
      if (end === -1) break;
      const event = this.#endLine(text.slice(start, end));
      if (event !== undefined) found.push(event);
      start = end + 1;
      if (text[end] !== "\r") continue;
      if (start === text.length) this.#afterCr = true;
      else if (text[start] === "\n") start += 1;
    }
    // Searching only the new text keeps a long line linear: the rope is flattened once, at its end.
    this.#line += text.slice(start);
    if (this.#line.length + this.#size > MAX_LINE_LENGTH) throw endless("the server sends an endless event");
    return found;
  }

  #endLine(rest: string): SseEvent | undefined {
    const line = this.#line === "" ? rest : this.#line + rest;
    this.#line = "";
    if (line !== "") {
      this.#field(line);
      return undefined;
    }
    const event = {
      event: this.#event,
      data: this.#data.length === 1 ? this.#data[0]! : this.#data.join("\n"),
    };
    const empty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    return empty ? undefined : event;
  }

  #field(line: string): void {
    if (line.charCodeAt(0) === BRACE) return this.#add(line);
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value =
      colon === -1 ? "" : line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    if (name === "data") this.#add(value);
    else if (name === "event") this.#event = value;
    else if (name === "error") {
      this.#event = "error";
      this.#add(value);
    } else if (!FIELD.test(name) && this.stray === "") this.stray = line.slice(0, 200);
  }

  #add(data: string): void {
    this.#data.push(data);
    this.#size += data.length + LINE_OVERHEAD;
  }
}

function nextEnd(text: string, start: number): number {
  const feed = text.indexOf("\n", start);
  const carriage = text.indexOf("\r", start);
  return feed === -1 || carriage === -1 ? Math.max(feed, carriage) : Math.min(feed, carriage);
}
