/** One request to an API like OpenAI's or Anthropic's. */
import type { IncomingMessage } from "node:http";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { asFields, type Fields, parsedJson } from "../../core/raw-data.ts";
import { parseRetryAfter } from "../../core/server-wait.ts";
import { formatDuration } from "../../core/wording.ts";
import {
  chunksOf,
  NoConnection,
  redirectOrigin,
  releaseConnection,
  send,
  textWithin,
} from "../http-request.ts";
import {
  endlessReply,
  MAX_BODY_LENGTH,
  MAX_LINE_LENGTH,
  MAX_STREAM_LENGTH,
  WireFailure,
} from "../model-api.ts";
import {
  replyBrokeOff,
  failureOf,
  unexpectedAnswer,
  notModelServer,
  originOf,
  type ApiRefusal,
  refusalIn,
  type RequestContext,
  quoteText,
} from "./api-refusals.ts";

interface ApiRequest {
  readonly context: RequestContext;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Limits the connection only; after that only the signal limits the time. */
  readonly connectMs: number;
}

interface OpenedReply {
  readonly response: IncomingMessage;
  /** Notes on fields that had to be left out. */
  readonly notes: readonly string[];
}

/**
 * Sends a request and repeats it without each field that the server refuses; throws a `WireFailure` if that does not
 * help.
 */
export async function openReply(
  request: ApiRequest & { readonly body: Fields; readonly concessions: Concessions },
): Promise<OpenedReply> {
  const { context, concessions } = request;
  for (;;) {
    const { body, notes } = concessions.applied(context.model, request.body);
    const answered = await post(request, JSON.stringify(body));
    if ("response" in answered) return { ...answered, notes };
    if (!concessions.learn(context.model, body, answered.refusal)) throw failureOf(answered.refusal, context);
  }
}

/** One POST of a JSON text that has no optional fields; throws a refusal as a `WireFailure`. */
export async function postJson(request: ApiRequest, json: string): Promise<IncomingMessage> {
  const answered = await post(request, json);
  if ("response" in answered) return answered.response;
  throw failureOf(answered.refusal, request.context);
}

type PostResult = { readonly response: IncomingMessage } | { readonly refusal: ApiRefusal };

async function post({ context, headers, signal, connectMs }: ApiRequest, json: string): Promise<PostResult> {
  const { url } = context;
  const accepting = { accept: "text/event-stream, application/json", ...headers };
  let response: IncomingMessage;
  try {
    response = await send({ url, headers: accepting, json, signal, connectMs });
  } catch (thrown) {
    throw networkFailure(thrown, { url, signal, connectMs });
  }
  const refusal = await unlessCancelled(refusalTo(response, context), signal);
  return refusal === undefined ? { response } : { refusal };
}

async function unlessCancelled<T>(pending: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await pending;
  } catch (thrown) {
    throw signal.aborted ? new WireFailure("cancelled", "cancelled") : thrown;
  }
}

/** Bytes read of a refusal; its message is at the beginning. */
const MAX_REFUSAL_LENGTH = 2 ** 20;

/** The body, or the part of it that arrived before it broke off. Throws if the body is longer than any answer. */
export async function wholeText(response: IncomingMessage): Promise<string> {
  const { text, whole, broken } = await textWithin(response, MAX_BODY_LENGTH);
  if (broken !== undefined && text === "") throw replyBrokeOff(reasonOf(broken));
  if (!whole) throw endlessReply("the server's answer is endless: it was cut off at the limit");
  return text;
}

/** The server's refusal; undefined if it answered. Throws if it is not a model server. */
async function refusalTo(
  response: IncomingMessage,
  context: RequestContext,
): Promise<ApiRefusal | undefined> {
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return undefined;
  if (status < 400) {
    response.destroy();
    throw notModelServer(context, `it redirects to ${redirectOrigin(response, context.url)}`);
  }
  const { text, broken } = await textWithin(response, MAX_REFUSAL_LENGTH);
  if (broken !== undefined && text === "") throw replyBrokeOff(reasonOf(broken));
  const refusal = refusalIn(parsedJson(text), status, retryAfter(response));
  if (refusal !== undefined) return refusal;
  const page = isPage(response, text);
  // A page means something only if a proxy sends it on behalf of the server behind it.
  if (page && status < 500 && status !== 401 && status !== 429)
    throw notModelServer(context, `it answers with a web page (HTTP ${status})`);
  return {
    status,
    late: false,
    code: "",
    text: page ? titleIn(text) : text,
    retryAfterMs: retryAfter(response),
    raw: null,
  };
}

const isPage = (response: IncomingMessage, text: string): boolean =>
  /\bhtml\b/i.test(response.headers["content-type"] ?? "") || /^\s*<(?:!doctype|html)/i.test(text);

const titleIn = (page: string): string =>
  /<title>([^<]{0,200})/i.exec(page.slice(0, 4000))?.[1]?.trim() ?? "a web page";

/** OpenAI also sends the time in milliseconds. */
function retryAfter({ headers }: IncomingMessage): number | null {
  const exact = headers["retry-after-ms"];
  return typeof exact === "string" && /^\d{1,12}(?:\.\d+)?$/.test(exact)
    ? parseRetryAfter(String(Number(exact) / 1000), Date.now())
    : parseRetryAfter(headers["retry-after"], Date.now(), headers.date);
}

interface NetworkFault {
  readonly code: RegExp;
  readonly reason: string;
  readonly remedy: string;
  readonly passing?: boolean;
}

const START = "start the server, or name another: harness config set base_url URL";
const ADDRESS = "harness config set base_url URL";

/** By the system's code; OpenSSL's codes name what is wrong with a certificate. */
const NETWORK_FAULTS: readonly NetworkFault[] = [
  { code: /^ECONNREFUSED$/, reason: "nothing is listening there", remedy: START },
  { code: /^ENOTFOUND$/, reason: "the host name is unknown", remedy: ADDRESS },
  {
    code: /^EAI_AGAIN$/,
    reason: "host names cannot be resolved",
    remedy: "check the network",
    passing: true,
  },
  {
    code: /^(?:EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/,
    reason: "there is no route to it",
    remedy: "check the network",
    passing: true,
  },
  { code: /^ETIMEDOUT$/, reason: "the connection timed out", remedy: START, passing: true },
  {
    code: /^(?:ECONNRESET|EPIPE|ECONNABORTED)$/,
    reason: "the server closed the connection without an answer",
    remedy: "check the server's log, and whether the address needs https",
    passing: true,
  },
  {
    code: /SELF_SIGNED|UNABLE_TO_|CERT_UNTRUSTED|INVALID_CA/,
    reason: "its certificate is not signed by anyone that this machine trusts",
    remedy: "set NODE_EXTRA_CA_CERTS to the file of the signing certificate",
  },
  {
    code: /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/,
    reason: "its certificate is expired or not yet valid",
    remedy: "renew the server's certificate, and check this machine's clock",
  },
  {
    code: /ALTNAME_INVALID/,
    reason: "its certificate is for another host",
    remedy: "use the name in the certificate: harness config set base_url URL",
  },
  {
    code: /^(?:EPROTO$|ERR_SSL|ERR_TLS)/,
    reason: "it does not speak TLS",
    remedy: "if it has no certificate, use http:// in base_url",
  },
  { code: /^HPE_/, reason: "what answers there does not speak HTTP", remedy: ADDRESS },
  { code: /^ERR_INVALID_(?:URL|PROTOCOL)$/, reason: "it is not a valid address", remedy: ADDRESS },
];

/** What a failed connection means. The reason names only the origin: paths and user names may be private. */
function networkFailure(
  thrown: unknown,
  { url, signal, connectMs }: Pick<ApiRequest, "signal" | "connectMs"> & { readonly url: string },
): WireFailure {
  if (thrown instanceof NoConnection)
    return new WireFailure("timeout", `${originOf(url)}: no connection within ${formatDuration(connectMs)}`, {
      remedy: START,
      passing: true,
    });
  if (signal.aborted) return new WireFailure("cancelled", "cancelled");
  const code = errorCode(thrown) ?? "";
  if (code === "ERR_INVALID_CHAR")
    return new WireFailure("unauthorised", "the key has characters that cannot be sent", {
      remedy: "set the key again, without line breaks or quotes",
    });
  const mishap = NETWORK_FAULTS.find((row) => row.code.test(code));
  const reason = mishap?.reason ?? reasonOf(thrown);
  return new WireFailure("unreachable", `${originOf(url)}: ${reason}${code === "" ? "" : ` (${code})`}`, {
    remedy: mishap?.remedy ?? START,
    passing: mishap?.passing ?? false,
  });
}

/** A field that a server may refuse, and how to send the request without it. */
export interface Concession {
  readonly name: string;
  readonly says: RegExp;
  /** The request without the field; undefined if there is nothing to give up. `text` is the server's refusal. */
  readonly without: (body: Fields, text: string) => Fields | undefined;
  /** A note for the user, repeated each time; left out if the difference does not matter. */
  readonly note?: string;
}

interface ReducedRequest {
  readonly body: Fields;
  readonly notes: readonly string[];
}

/** Which fields of a table each model refuses. Learnt from refusals, kept for the life of the wire. */
export class Concessions {
  readonly #table: readonly Concession[];
  readonly #learnt = new Map<string, Map<Concession, string>>();

  constructor(table: readonly Concession[]) {
    this.#table = table;
  }

  /** The request without everything that `model` is known to refuse. */
  applied(model: string, whole: Fields): ReducedRequest {
    let body = whole;
    const notes: string[] = [];
    for (const [concession, text] of this.#learnt.get(model) ?? []) {
      const less = concession.without(body, text);
      if (less === undefined) continue;
      body = less;
      if (concession.note !== undefined) notes.push(concession.note);
    }
    return { body, notes };
  }

  /** Whether the refusal concerns a field that can be dropped from `body` (as sent). Each field is given up once. */
  learn(model: string, body: Fields, { status, code, text }: ApiRefusal): boolean {
    if (![400, 404, 422, 500, 501].includes(status)) return false;
    const words = `${code} ${text}`.slice(0, 4000);
    const made = this.#learnt.get(model) ?? new Map<Concession, string>();
    const found = this.#table.find(
      (row) => !made.has(row) && row.says.test(words) && row.without(body, words) !== undefined,
    );
    if (found === undefined) return false;
    this.#learnt.set(model, made.set(found, words));
    return true;
  }
}

/** The body that requests an unstreamed reply, if wanted. */
export function unstreamed(body: Fields, wanted: boolean): Fields {
  return wanted ? { ...(withoutField(body, "stream_options") ?? body), stream: false } : body;
}

/** The body without one field; undefined if the field is missing. */
export function withoutField(body: Fields, name: string): Fields | undefined {
  if (!(name in body)) return undefined;
  return Object.fromEntries(Object.entries(body).filter(([key]) => key !== name));
}

/** How long the connection of a complete reply stays open before it is closed. */
const DRAIN_MS = 1000;

interface ReplySource {
  readonly response: IncomingMessage;
  readonly context: RequestContext;
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
  const { response, context, signal, done, complete } = reply;
  const type = response.headers["content-type"] ?? "";
  try {
    if (/\bhtml\b/i.test(type)) throw notModelServer(context, "it answers with a web page");
    if (/\bjson\b/i.test(type)) yield wholeJson(await wholeText(response));
    else yield* streamed(reply);
  } catch (thrown) {
    if (signal.aborted) throw new WireFailure("cancelled", "cancelled");
    if (thrown instanceof WireFailure) throw thrown;
    if (!complete()) throw replyBrokeOff(reasonOf(thrown));
  } finally {
    if (done() && !signal.aborted) releaseConnection(response, DRAIN_MS);
    else response.destroy();
  }
}

async function* streamed({
  response,
  context,
  done,
}: ReplySource): AsyncGenerator<readonly SseEvent[], void> {
  const reader = new SseReader();
  let any = false;
  const strange = (): WireFailure =>
    any
      ? unexpectedAnswer("an event", reader.stray)
      : notModelServer(context, `it answers with unexpected text: ${quoteText(reader.stray)}`);
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
  else if (!any) throw replyBrokeOff("nothing arrived");
}

/** The parsed data of an event. Throws if the event is an error or is not JSON. */
export function valueIn({ event, data }: SseEvent, context: RequestContext): unknown {
  const value = parsedJson(data);
  const bare = event === "error" && asFields(value)?.["error"] === undefined;
  const refusal = refusalIn(bare ? { error: value ?? data } : value, 200);
  if (refusal !== undefined) throw failureOf(refusal, context);
  if (value === undefined) throw unexpectedAnswer("JSON", data);
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
    if (this.#line.length + this.#size > MAX_LINE_LENGTH)
      throw endlessReply("the server sends an endless event");
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
