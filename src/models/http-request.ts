import type { ClientRequest, IncomingMessage } from "node:http";
import { errorCode, reasonOf } from "../core/errors.ts";
import { parsedJson } from "../core/raw-data.ts";
import { endlessReply } from "./model-api.ts";
import { afterWaiting } from "../platform/waits.ts";

/**
 * The one transport to every model server: Ollama's client, OpenAI's and Anthropic's API, model lists and embeddings.
 */

export interface HttpRequest {
  readonly url: string;
  /** Bounds everything after the connection: the caller times the first byte, silence and the whole request. */
  readonly signal: AbortSignal;
  /** Body of a POST; without it the request is a GET. */
  readonly json?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Longest wait for the connection, TLS included; after that the request fails with `NoConnection`. */
  readonly connectMs?: number;
}

export class NoConnection extends Error {
  override readonly name = "NoConnection";
  override readonly message = "no connection in time";
  readonly code = "ETIMEDOUT";
}

/**
 * Sends one request and returns at the head of its response. Not fetch: fetch gives up on a body that is silent for
 * five minutes (a server may load a model or read a long prompt that long), and follows redirects with every header,
 * `x-api-key` included. No redirect is followed here: a key or prompt goes only where it was sent. A proxy is used when
 * Node itself is told to (NODE_USE_ENV_PROXY). If the server closed a kept connection just as it was reused, the
 * request is sent once more on a new one; nothing else is repeated.
 */
export async function send(request: HttpRequest): Promise<IncomingMessage> {
  request.signal.throwIfAborted();
  try {
    return await attempt(request, true);
  } catch (thrown) {
    if (!(thrown instanceof StaleSocket)) throw thrown;
  }
  return attempt(request, false);
}

/** A kept connection that the server had already closed: the server read nothing of the request. */
class StaleSocket extends Error {
  override readonly name = "StaleSocket";
}

async function attempt(question: HttpRequest, reuse: boolean): Promise<IncomingMessage> {
  const { url, headers, signal, json, connectMs } = question;
  const { request } = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: json === undefined ? "GET" : "POST",
        headers: { accept: "application/json", ...bodyHeaders(json), ...headers },
        signal,
        ...(reuse ? {} : { agent: false }),
      },
      resolve,
    );
    const connected = connectMs === undefined ? undefined : boundConnecting(sent, url, connectMs);
    sent.on("error", (error) => {
      connected?.();
      const stale = reuse && sent.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(errorCode(error) ?? "");
      reject(stale && !signal.aborted ? new StaleSocket() : error);
    });
    sent.on("socket", (socket) => socket.off("error", ignore).on("error", ignore));
    sent.end(json);
  });
}

/**
 * Between the end of a response and the return of its connection to the pool nobody else listens for errors of the
 * connection, so a signal that fires then would end the whole process.
 */
const ignore = (): void => undefined;

const bodyHeaders = (json: string | undefined): Readonly<Record<string, string | number>> =>
  json === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(json) };

/** Returns what ends the wait. */
function boundConnecting(sent: ClientRequest, url: string, connectMs: number): () => void {
  const connected = afterWaiting(connectMs, () => sent.destroy(new NoConnection()));
  sent.on("socket", (socket) => {
    if (!socket.connecting) return connected();
    socket.once(url.startsWith("https:") ? "secureConnect" : "connect", connected);
  });
  return connected;
}

/** The body up to `most` bytes, and whether that is the whole body; if the body broke off, the part that arrived. */
export async function textWithin(
  response: IncomingMessage,
  most: number,
): Promise<{ readonly text: string; readonly whole: boolean; readonly broken: unknown }> {
  const chunks: Buffer[] = [];
  let length = 0;
  let broken: unknown;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > most) break;
    }
  } catch (thrown) {
    broken = thrown;
  }
  return { text: Buffer.concat(chunks).toString("utf8"), whole: length <= most, broken };
}

interface LineBounds {
  /** UTF-16 units of one line. */
  readonly longest: number;
  /** Bytes of all lines together; unbounded if left out. */
  readonly whole?: number;
}

/**
 * The lines of a stream, without blank ones. Throws if the connection is cut or a line exceeds its bound. Bytes that
 * are not UTF-8 become U+FFFD, as in Ollama when a model cuts a character short. A caller that stops early must end the
 * response.
 */
export async function* linesOf(
  response: IncomingMessage,
  { longest, whole = Number.POSITIVE_INFINITY }: LineBounds,
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response, whole)) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    parts.push(first);
    length += first.length;
    for (const other of others) {
      yield* unlessBlank(parts);
      parts = [other];
      length = other.length;
    }
    if (length > longest) throw endlessReply("the server sends an endless line");
  }
  parts.push(decoder.decode());
  yield* unlessBlank(parts);
}

function* unlessBlank(parts: readonly string[]): Generator<string> {
  const line = parts.join("");
  if (line.trim() !== "") yield line;
}

/** The bytes of a reply as they arrive, up to a bound. Stopping early leaves the response open. */
export async function* chunksOf(response: IncomingMessage, most: number): AsyncGenerator<Uint8Array, void> {
  let came = 0;
  for await (const chunk of response.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    came += chunk.length;
    if (came > most) throw endlessReply("the server's reply is endless: it was cut off at the limit");
    yield chunk;
  }
}

/** Frees the connection of a complete reply for the next request, or destroys it if the reply does not end in time. */
export function releaseConnection(response: IncomingMessage, lingerMs: number): void {
  if (response.destroyed || response.readableEnded) return;
  const timer = setTimeout(() => response.destroy(), lingerMs);
  timer.unref();
  response.once("close", () => clearTimeout(timer));
  response.on("error", () => undefined).resume();
}

/** The outcome of one request for a JSON value. `refused` carries the server's own words, empty if it gave none. */
export type HttpAnswer =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly error: string }
  | { readonly kind: "foreign"; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string };

/**
 * Bytes of one answer: a list of hundreds of models takes one million. Bounded because several are read side by side.
 */
const MAX_ANSWER_LENGTH = 2 ** 22;

/** The reason reported for a request that timed out. */
export const NO_ANSWER = "no answer in time";

const NO_TLS = /^(?:EPROTO$|ERR_SSL|ERR_TLS)/;
const MAX_ERROR = 500;

/** Sends one request and returns the whole answer as a value; never throws. */
export async function askJson(request: HttpRequest): Promise<HttpAnswer> {
  try {
    return await answerIn(await send(request));
  } catch (thrown) {
    if (request.signal.aborted) return { kind: "unreachable", reason: endedBy(request.signal) };
    const code = errorCode(thrown) ?? "";
    if (code.startsWith("HPE_")) return { kind: "foreign", reason: "what answers there does not speak HTTP" };
    // OpenSSL's own text has several lines and names a place in its sources.
    if (NO_TLS.test(code)) return { kind: "foreign", reason: `it does not speak TLS (${code})` };
    return { kind: "unreachable", reason: reasonOf(thrown) };
  }
}

/** The reason why a request ended whose signal fired. */
const endedBy = (signal: AbortSignal): string =>
  signal.reason instanceof DOMException && signal.reason.name === "TimeoutError" ? NO_ANSWER : "cancelled";

async function answerIn(response: IncomingMessage): Promise<HttpAnswer> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) {
    response.destroy();
    return { kind: "foreign", reason: `it redirects to ${redirectOrigin(response)}` };
  }
  const { text, whole, broken } = await textWithin(response, MAX_ANSWER_LENGTH);
  if (broken !== undefined) throw broken;
  const value = whole ? parsedJson(text) : undefined;
  if (status !== 200) return { kind: "refused", status, error: errorWords(value)?.slice(0, MAX_ERROR) ?? "" };
  if (value !== undefined) return { kind: "json", value };
  const type = response.headers["content-type"]?.split(";")[0] ?? "no content type";
  return { kind: "foreign", reason: `it answers with ${type} that is not JSON` };
}

/** The target of a redirect, origin only: the address of a login page may contain the request. */
export function redirectOrigin({ headers: { location = "" } }: IncomingMessage, base?: string): string {
  return URL.canParse(location, base) ? new URL(location, base).origin : "another page";
}

/** The `error` of an answer or of a stream's line; undefined if there is none. */
export function errorWords(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("error" in value)) return undefined;
  const { error } = value;
  if (error === null || error === undefined) return undefined;
  return typeof error === "string" ? error : JSON.stringify(error);
}
