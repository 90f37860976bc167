import type { IncomingMessage } from "node:http";
import { reasonOf } from "../../core/errors.ts";
import { wholeText } from "./body.ts";
import { asFields, parsedJson } from "./fields.ts";
import { brokenOff, notA, shown, stranger } from "./garbled.ts";
import { type Asked, failureOf, refusalIn } from "./refusals.ts";
import { type SseEvent, SseReader } from "./sse.ts";
import { endless, LONGEST_STREAM, WireFailure } from "../wire.ts";

/** How long a reply that is complete may keep its connection before it is given up. */
const DRAIN_MS = 1000;

export interface Reply {
  readonly response: IncomingMessage;
  readonly asked: Asked;
  readonly signal: AbortSignal;
  /** Whether the server has said its last word: what still comes is let go. */
  readonly done: () => boolean;
  /** Whether the model has: a connection that breaks from here on does no harm. */
  readonly complete: () => boolean;
}

/**
 * The events of an answer, as they come, until it is done. A whole JSON answer, of a server that does not stream or
 * fails under HTTP 200, is one event. An answer without any event throws, as does a connection that breaks.
 */
export async function* replyEvents(reply: Reply): AsyncGenerator<readonly SseEvent[], void> {
  const { response, asked, signal, done, complete } = reply;
  const type = response.headers["content-type"] ?? "";
  try {
    if (/\bhtml\b/i.test(type)) throw stranger(asked, "it answers with a web page");
    if (/\bjson\b/i.test(type)) yield wholeJson(await wholeText(response));
    else yield* streamed(reply);
  } catch (thrown) {
    if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
    if (thrown instanceof WireFailure) throw thrown;
    if (!complete()) throw brokenOff(reasonOf(thrown));
  } finally {
    if (done() && !signal.aborted) release(response);
    else response.destroy();
  }
}

async function* streamed({ response, asked, done }: Reply): AsyncGenerator<readonly SseEvent[], void> {
  const reader = new SseReader();
  let any = false;
  let came = 0;
  const strange = (): WireFailure =>
    any
      ? notA("event", reader.stray)
      : stranger(asked, `it answers with text of another kind: ${shown(reader.stray)}`);
  for await (const chunk of response.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    came += chunk.length;
    if (came > LONGEST_STREAM) throw endless("the server's reply has no end: it was ended at its bound");
    const events = reader.push(chunk);
    any ||= events.length > 0;
    if (events.length > 0) yield events;
    if (done()) return;
    if (reader.stray !== "") throw strange();
  }
  const last = reader.end();
  if (last.length > 0) yield last;
  else if (reader.stray !== "") throw strange();
  else if (!any) throw brokenOff("nothing came");
}

/** The parsed data of an event; throws the failure that it is, and when it is no JSON. */
export function valueIn({ event, data }: SseEvent, asked: Asked): unknown {
  const value = parsedJson(data);
  const bare = event === "error" && asFields(value)?.["error"] === undefined;
  const refusal = refusalIn(bare ? { error: value ?? data } : value, 200);
  if (refusal !== undefined) throw failureOf(refusal, asked);
  if (value === undefined) throw notA("JSON", data);
  return value;
}

/** Some proxies call a stream JSON. */
function wholeJson(text: string): SseEvent[] {
  if (!/^\s*(?:data|event|id|retry)?:/.test(text)) return [{ event: "", data: text }];
  const reader = new SseReader();
  return [...reader.push(Buffer.from(text)), ...reader.end()];
}

/** Lets the connection serve the next request when the server ends the answer soon, and ends it otherwise. */
function release(response: IncomingMessage): void {
  if (response.destroyed || response.readableEnded) return;
  const timer = setTimeout(() => response.destroy(), DRAIN_MS);
  timer.unref();
  response.once("close", () => clearTimeout(timer));
  response.on("error", () => undefined);
  response.resume();
}
