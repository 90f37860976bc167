import type { ClientRequest, IncomingMessage } from "node:http";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { endless } from "../model-api.ts";

interface Question {
  /** The only bound in time, so it must have one. */
  readonly signal: AbortSignal;
  /** Sent as JSON by POST; without it the request is a GET. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Longest wait for the connection alone; it ends as ETIMEDOUT. */
  readonly connectMs?: number;
}

/** How one request ended. `refused` carries the server's own words, empty when it gave none. */
export type Answer =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly error: string }
  | { readonly kind: "foreign"; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string };

/** The reason of a request whose time was over. */
export const NO_ANSWER = "no answer in time";

const NO_TLS = /^(?:EPROTO$|ERR_SSL|ERR_TLS)/;
const MAX_BODY = 16 * 2 ** 20;
const MAX_ERROR = 500;

/**
 * One request, up to the head of its response. Redirects are not followed: neither a key nor a prompt
 * goes anywhere but where it was sent. Not fetch, which gives up on a body that is silent for five
 * minutes; hashing or loading a large model is. Not the official client, which writes to stdout when
 * an answer is no JSON and takes no signal for most calls.
 */
export async function ask(url: string, question: Question, reuse = true): Promise<IncomingMessage> {
  const { signal, body, headers, connectMs } = question;
  signal.throwIfAborted();
  const { request } = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  const json = body === undefined ? undefined : JSON.stringify(body);
  const described = json === undefined ? {} : { "content-type": "application/json" };
  const length = json === undefined ? {} : { "content-length": Buffer.byteLength(json) };
  return new Promise((resolve, reject) => {
    const state = { answered: false };
    const sent = request(
      url,
      {
        method: json === undefined ? "GET" : "POST",
        headers: { accept: "application/json", ...described, ...length, ...headers },
        signal,
        ...(reuse ? {} : { agent: false }),
      },
      (response) => {
        state.answered = true;
        resolve(response);
      },
    );
    // A server may close a connection in the moment in which it is used again.
    const again = (error: Error): boolean =>
      reuse &&
      sent.reusedSocket &&
      !(state.answered || signal.aborted) &&
      /^(?:ECONNRESET|EPIPE)$/.test(errorCode(error) ?? "");
    sent.on("error", (error) => (again(error) ? resolve(ask(url, question, false)) : reject(error)));
    if (connectMs !== undefined) boundConnecting(sent, connectMs);
    sent.end(json);
  });
}

function boundConnecting(sent: ClientRequest, connectMs: number): void {
  sent.once("socket", (socket) => {
    if (!socket.connecting) return;
    const late = Object.assign(new Error("no connection in time"), { code: "ETIMEDOUT" });
    const timer = setTimeout(() => sent.destroy(late), connectMs);
    const end = (): void => clearTimeout(timer);
    socket.once("connect", end).once("close", end);
  });
}

/** One request and its whole answer, as a value. */
export async function askJson(url: string, question: Question): Promise<Answer> {
  try {
    return await answerIn(await ask(url, question));
  } catch (thrown) {
    if (question.signal.aborted) return { kind: "unreachable", reason: endedBy(question.signal) };
    const code = errorCode(thrown) ?? "";
    if (code.startsWith("HPE_")) return { kind: "foreign", reason: "what answers there does not speak HTTP" };
    // OpenSSL's own text has several lines, and a place in its sources.
    if (NO_TLS.test(code)) return { kind: "foreign", reason: `it does not speak TLS (${code})` };
    return { kind: "unreachable", reason: reasonOf(thrown) };
  }
}

/** What ended a request whose signal fired. */
const endedBy = (signal: AbortSignal): string =>
  signal.reason instanceof DOMException && signal.reason.name === "TimeoutError" ? NO_ANSWER : "cancelled";

/** The message of an answer that is no success. The body is read to its bound and ended. */
export async function refusalIn(response: IncomingMessage): Promise<Answer> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) {
    response.destroy();
    return { kind: "foreign", reason: `it redirects to ${originOf(response.headers.location)}` };
  }
  return { kind: "refused", status, error: errorIn(jsonIn(await bodyOf(response))) ?? "" };
}

/** The `error` of an Ollama answer or stream line, cut to what can be shown, or undefined when it has none. */
export const errorIn = (value: unknown): string | undefined => wordsIn(value)?.slice(0, MAX_ERROR);

/** The same, whole. */
export function wordsIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("error" in value)) return undefined;
  const { error } = value;
  if (error === null || error === undefined) return undefined;
  return typeof error === "string" ? error : JSON.stringify(error);
}

/** The value of a JSON text; undefined, which JSON cannot say, when it is none. */
export function jsonIn(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

async function answerIn(response: IncomingMessage): Promise<Answer> {
  if (response.statusCode !== 200) return refusalIn(response);
  const value = jsonIn(await bodyOf(response));
  if (value !== undefined) return { kind: "json", value };
  const type = response.headers["content-type"]?.split(";")[0] ?? "no content type";
  return { kind: "foreign", reason: `it answers with ${type} that is no JSON` };
}

/** The body, or undefined when it is longer than any answer of these servers. */
export async function bodyOf(response: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BODY) return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}

const originOf = (location: string | undefined): string =>
  location !== undefined && URL.canParse(location) ? new URL(location).origin : "another page";

interface LineBounds {
  /** UTF-16 units of one line. */
  readonly longest: number;
  /** Bytes of all of them; without a bound when left out. */
  readonly whole?: number;
}

/**
 * The lines of a stream, blank ones left out. Throws where the connection is cut or a line has no end. Bytes that are
 * no UTF-8 become U+FFFD, as Ollama makes it of what a model cut short. Whoever stops early ends the response.
 */
export async function* linesOf(
  response: IncomingMessage,
  { longest, whole = Number.POSITIVE_INFINITY }: LineBounds,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let length = 0;
  let came = 0;
  const chunks = response.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    came += chunk.length;
    if (came > whole) throw endless("the server's reply has no end: it was ended at its bound");
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    parts.push(first);
    length += first.length;
    for (const other of others) {
      yield* unlessBlank(parts);
      parts = [other];
      length = other.length;
    }
    if (length > longest) throw endless("the server sends a line without an end");
  }
  parts.push(decoder.decode());
  yield* unlessBlank(parts);
}

/** For what may come behind a reply that is complete. */
const LINGER_MS = 200;

/** Lets a reply that has said all come to its end, so that its connection serves the next request too. */
export function letGo(response: IncomingMessage): void {
  const late = setTimeout(() => response.destroy(), LINGER_MS);
  late.unref();
  response.once("close", () => clearTimeout(late));
  response.on("error", () => undefined).resume();
}

function* unlessBlank(parts: readonly string[]): Generator<string> {
  const line = parts.join("");
  if (line.trim() !== "") yield line;
}
