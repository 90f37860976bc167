/** How Ollama is reached: the official client over the transport of all servers, and the server's address. */

import type { IncomingMessage } from "node:http";
import type { Ollama } from "ollama/browser";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { asFields, parsedJson } from "../../core/raw-data.ts";
import {
  type HttpAnswer,
  askJson,
  errorWords,
  linesOf,
  redirectOrigin,
  releaseConnection,
  send,
  textWithin,
} from "../http-request.ts";
import { MAX_BODY_LENGTH } from "../model-api.ts";

/**
 * The official client, over the transport that all servers share. One client serves one request. Its fetch adds what
 * the client lacks: the request's own signal, which most of its calls do not accept; no limit on silence; refusals
 * thrown before the client sees them, because it prints to stdout if one is not JSON; and whole JSON lines, because it
 * skips others. The client's own headers are left out: they describe this machine, and for one host they contain a key
 * from the environment.
 */
export async function ollamaClient(
  baseUrl: string,
  answer: (url: string, json: string | undefined) => Promise<Response>,
): Promise<Ollama> {
  // Loaded only when Ollama is asked.
  const client = await import("ollama/browser");
  return new client.Ollama({
    host: baseUrl,
    fetch: (url, init) => answer(url as string, init?.body as string | undefined),
  });
}

/** All that the client reads of a response. A real `Response` loads the whole of Node's fetch, 13 MB. */
export const jsonResponse = (value: unknown): Response =>
  ({ ok: true, json: () => Promise.resolve(value) }) as Response;

const streamResponse = (lines: AsyncGenerator<Uint8Array, void>): Response => {
  const reader = { read: () => lines.next(), releaseLock: () => undefined };
  return { ok: true, body: { getReader: () => reader } } as unknown as Response;
};

/** One call of the client that is answered by one JSON value; every failure is an arm of the answer. */
export async function askOllama(
  baseUrl: string,
  signal: AbortSignal,
  ask: (client: Ollama) => Promise<unknown>,
): Promise<HttpAnswer> {
  const client = await ollamaClient(baseUrl, async (url, json) => {
    const answer = await askJson({ url, signal, ...(json === undefined ? {} : { json }) });
    if (answer.kind !== "json") throw new Unanswered(answer);
    return jsonResponse(answer.value);
  });
  try {
    return { kind: "json", value: await ask(client) };
  } catch (thrown) {
    if (thrown instanceof Unanswered) return thrown.answer;
    throw thrown;
  }
}

class Unanswered extends Error {
  readonly answer: HttpAnswer;

  constructor(answer: HttpAnswer) {
    super(answer.kind);
    this.answer = answer;
  }
}

/** The server's error, either in place of a stream or in the middle of one. */
export class Refused extends Error {
  /** 500 for an error in the middle of a stream: the head was already sent. */
  readonly status: number;
  readonly words: string;
  /** Its Retry-After header. */
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  /** The target of a redirect that was not followed. */
  readonly redirect: string | undefined;

  constructor(
    status: number,
    words: string,
    more: {
      readonly retryAfter?: string | undefined;
      readonly date?: string | undefined;
      readonly redirect?: string;
    } = {},
  ) {
    super(words);
    this.status = status;
    this.words = words;
    this.retryAfter = more.retryAfter;
    this.date = more.date;
    this.redirect = more.redirect;
  }
}

interface StreamRequest {
  readonly baseUrl: string;
  readonly signal: AbortSignal;
  readonly connectMs?: number;
  readonly ask: (client: Ollama) => Promise<AsyncIterable<unknown>>;
  /** Sent in place of the client's own body. */
  readonly json?: string;
  /** UTF-16 units of one line; `longest`: bytes of all lines. */
  readonly longestLine: number;
  readonly longest?: number;
  /**
   * Error texts for a line that is not a JSON object, and for a stream that ends before the server says that it is
   * done.
   */
  readonly strange: string;
  readonly unfinished: string;
}

/** Time for anything that follows a complete stream. */
const LINGER_MS = 200;

interface Progress {
  response?: IncomingMessage;
  /** The server has said that it is done. */
  done: boolean;
}

/**
 * One call of the client that is answered by a stream; resolves once the server has begun to answer. Both the call and
 * the stream reject with `Refused` or with the system's error. Leaving the stream early ends the connection.
 */
export async function ollamaStream(request: StreamRequest): Promise<AsyncGenerator<unknown, void>> {
  const { baseUrl, signal, connectMs } = request;
  const progress: Progress = { done: false };
  const client = await ollamaClient(baseUrl, async (url, json = "") => {
    const bound = connectMs === undefined ? {} : { connectMs };
    const response = await send({ url, signal, json: request.json ?? json, ...bound });
    if (response.statusCode !== 200) throw await refusalOf(response);
    progress.response = response;
    return streamResponse(checkedLines(response, request, progress));
  });
  return closeAtEnd(await request.ask(client), progress);
}

async function* closeAtEnd(lines: AsyncIterable<unknown>, progress: Progress): AsyncGenerator<unknown, void> {
  try {
    yield* lines;
  } finally {
    const { response, done } = progress;
    if (response !== undefined && done) releaseConnection(response, LINGER_MS);
    else response?.destroy();
  }
}

async function* checkedLines(
  response: IncomingMessage,
  { longestLine, longest, strange, unfinished }: StreamRequest,
  progress: Progress,
): AsyncGenerator<Uint8Array, void> {
  const bounds = { longest: longestLine, ...(longest === undefined ? {} : { whole: longest }) };
  for await (const line of linesOf(response, bounds)) {
    const value = asFields(parsedJson(line));
    if (value === undefined) throw new Error(strange);
    const words = errorWords(value);
    if (words !== undefined) throw new Refused(500, words);
    progress.done ||= value["done"] === true || value["status"] === "success";
    // The client treats even a null `error` as an error.
    yield Buffer.from(`${"error" in value ? JSON.stringify({ ...value, error: undefined }) : line}\n`);
  }
  throw new Error(unfinished);
}

async function refusalOf(response: IncomingMessage): Promise<Refused> {
  const status = response.statusCode ?? 0;
  if (status >= 300 && status < 400) {
    response.destroy();
    return new Refused(status, "", { redirect: redirectOrigin(response) });
  }
  const { text, whole, broken } = await textWithin(response, MAX_BODY_LENGTH);
  if (broken !== undefined) throw broken;
  const words = whole ? errorWords(parsedJson(text)) : undefined;
  return new Refused(status, words ?? "", {
    retryAfter: response.headers["retry-after"],
    date: response.headers.date,
  });
}

const DEFAULT_PORT = "11434";
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
/** Host with port, then path. No credentials, query or fragment: Ollama accepts none. */
const SHAPE = /^([^/\\?#@\s]*)((?:\/[^/\\?#@\s]+)*\/*)$/;

/**
 * The address for connecting to Ollama, without a trailing slash. `baseUrl` is the setting and wins over OLLAMA_HOST,
 * which may have every form that Ollama itself accepts. As in Ollama, a scheme without a port means the scheme's own
 * port; unlike Ollama, which falls back to its default port, a bad port is an error.
 */
export function ollamaAddress(
  env: Readonly<Record<string, string | undefined>>,
  baseUrl: string | null,
): string {
  if (baseUrl !== null) return parsed(baseUrl.trim()) ?? invalidAddress("base_url", baseUrl);
  const host = env["OLLAMA_HOST"] ?? "";
  return parsed(unquoted(host)) ?? invalidAddress("OLLAMA_HOST", host);
}

/** The address is on this machine, so a server can be started there. */
export const isLoopback = (address: string): boolean =>
  URL.canParse(address) && LOOPBACK.test(new URL(address).hostname);

const unquoted = (text: string): string =>
  text
    .trim()
    .replace(/^["']+|["']+$/g, "")
    .trim();

function parsed(text: string): string | undefined {
  const [scheme, rest] = splitScheme(text);
  const [whole, authority = "", path = ""] = SHAPE.exec(rest) ?? [];
  const place = splitAuthority(authority);
  if (whole === undefined || place === undefined) return undefined;
  if (scheme === undefined)
    return normal(
      `http://${hostToConnect(place.host)}:${place.port || DEFAULT_PORT}${apiRoot(path)}`,
      place.host,
    );
  if (!/^https?$/.test(scheme) || authority === "") return undefined;
  return normal(`${scheme}://${hostToConnect(place.host)}:${place.port}${apiRoot(path)}`, place.host);
}

function splitScheme(text: string): readonly [scheme: string | undefined, rest: string] {
  const cut = text.indexOf("://");
  return cut === -1 ? [undefined, text] : [text.slice(0, cut).toLowerCase(), text.slice(cut + 3)];
}

function normal(address: string, written: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (url.port === "0" || guessedNumber(url.hostname, written)) return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, "")}`;
}

/** Host and port of `h`, `h:p`, `:p`, `[v6]`, `[v6]:p` and the bare `v6`. */
function splitAuthority(authority: string): { readonly host: string; readonly port: string } | undefined {
  if (/^[^[\]]*:[^[\]]*:[^[\]]*$/.test(authority)) return { host: `[${authority}]`, port: "" };
  const [whole, host = "", port = ""] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(authority) ?? [];
  return whole === undefined ? undefined : { host, port };
}

/** "Every interface" is an address to listen on; for connecting it means this machine. */
function hostToConnect(host: string): string {
  if (host === "" || host === "0.0.0.0") return "127.0.0.1";
  return /^\[[0:]+\]$/.test(host) ? "[::1]" : host;
}

/** A `/v1` left over from an OpenAI-style setting means the same server. */
const apiRoot = (path: string): string => (/^\/(?:v1|api)\/*$/.test(path) ? "" : path);

/** URL parsers read `11434` as the host 0.0.44.170, which nobody means. */
const guessedNumber = (hostname: string, written: string): boolean =>
  /^[\d.]+$/.test(hostname) && hostname !== hostToConnect(written);

function invalidAddress(origin: string, value: string): never {
  const shown = value.includes("@") ? "the value (not shown, it may hold a password)" : JSON.stringify(value);
  throw new HarnessError(
    EXIT.usage,
    `${origin}: ${shown} is not an address of an Ollama server; expected host, host:port or http://host:port`,
    origin === "base_url"
      ? `harness config set base_url http://127.0.0.1:${DEFAULT_PORT}`
      : "unset OLLAMA_HOST",
  );
}
