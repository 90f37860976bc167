import {
  type ClientRequest,
  type IncomingMessage,
  request as sendRequest,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { errorCode, reasonOf } from "../../core/errors.ts";
import type { OpenLine } from "./egress-ledger.ts";
import { type EgressDenial, METHOD_OVERRIDES } from "./judge-host.ts";
import type { ByteMeter } from "./tunnel.ts";

/** One request, made anew for its server, and the answer's way back. */

/** Headers are limited to this many bytes on both sides. */
export const MAX_HEAD_LENGTH = 32 * 1024;

/** Headers that concern one connection and not the request; headers that `Connection` names are removed with them. */
const HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "expect",
]);

/** Names and values in turn, as in node:http. */
type RawHeaders = readonly string[];

export function* pairsOf(raw: RawHeaders): Generator<readonly [name: string, value: string]> {
  for (let at = 0; at + 1 < raw.length; at += 2) yield [raw[at] ?? "", raw[at + 1] ?? ""];
}

/** Every value of a header, in order. */
export const valuesOf = (raw: RawHeaders, name: string): readonly string[] =>
  Array.from(pairsOf(raw)).flatMap(([each, value]) => (each.toLowerCase() === name ? [value] : []));

/** Leaves out the headers of one connection, and these. */
function endToEndHeaders(raw: RawHeaders, without: ReadonlySet<string> = new Set()): string[] {
  const named = valuesOf(raw, "connection").flatMap((value) => value.toLowerCase().split(","));
  const hop = new Set(named.map((name) => name.trim()));
  return Array.from(pairsOf(raw)).flatMap(([name, value]) => {
    // Servers that hand headers to programs as variables take _ for -.
    const lower = name.toLowerCase().replaceAll("_", "-");
    return HOP.has(lower) || hop.has(lower) || without.has(lower) ? [] : [name, value];
  });
}

/** An error of the parser, not a client that left or was too slow. */
export function isMalformed(thrown: unknown): boolean {
  const code = errorCode(thrown) ?? "";
  return code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE";
}

/** Lengths are written anew; node's parser has refused a request with two lengths, or with a length and chunks. */
function framing(request: IncomingMessage, body: Buffer | null): readonly string[] {
  if (body !== null) return ["Content-Length", String(body.length)];
  if (request.headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];
  const length = request.headers["content-length"];
  if (length !== undefined) return ["Content-Length", length];
  return BODILESS.has(request.method ?? "") ? [] : ["Content-Length", "0"];
}

const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "DELETE"]);

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** Judges a whole request before it is sent on. */
export function judgeFraming(request: IncomingMessage): EgressDenial | undefined {
  const coding = request.headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return { rule: "malformed", reason: "a transfer coding other than chunked" };
  if (request.method === "TRACE") return { rule: "method", reason: "TRACE is never forwarded" };
  return undefined;
}

/** How a request and its answer are changed on their way. */
export interface Rewriting {
  readonly requestHeaders: (raw: readonly string[]) => string[];
  readonly requestTarget: (target: string) => string;
  /** For small text bodies; others stay as they are. */
  readonly requestBody: (request: IncomingMessage, body: Buffer) => Buffer;
  readonly responseHeaders: (raw: readonly string[]) => string[];
  readonly responseBody: (response: IncomingMessage) => readonly Transform[];
}

interface Forwarding {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query, or the whole URL if another proxy is asked. */
  readonly target: string;
  /** The value of `Host` for the server. */
  readonly host: string;
  readonly connection: Pick<RequestOptions, "agent" | "createConnection">;
  readonly extra?: readonly string[];
  readonly meter: ByteMeter;
  readonly line: OpenLine;
  readonly idleMs: number;
  readonly rewriting?: Rewriting;
}

/**
 * Sends one request, made anew from what was read of it, and passes the answer back. Data from the client and data from
 * the server each wait while the other side does not read. Resolves to how the request ended, or to null if it ended
 * well.
 */
export async function forwardRequest(forwarding: Forwarding): Promise<EgressDenial | null> {
  try {
    const body = await smallBody(forwarding);
    await attempt(forwarding, body, true);
    return null;
  } catch (thrown) {
    const denial = forwarding.meter.denial;
    if (denial !== undefined) return denial;
    return { rule: "unreachable", reason: reasonOf(thrown) };
  } finally {
    const { request, idleMs } = forwarding;
    if (!request.complete) request.setTimeout(idleMs, () => request.socket.destroy());
  }
}

/** The server had closed a kept connection meanwhile: it read nothing of the request. */
class StaleConnection extends Error {
  override readonly name = "StaleConnection";
}

async function attempt(forwarding: Forwarding, body: Buffer | null, again: boolean): Promise<void> {
  const { request, response, line, rewriting } = forwarding;
  const raw = [
    "Host",
    forwarding.host,
    ...endToEndHeaders(request.rawHeaders, REBUILT),
    ...(forwarding.extra ?? []),
  ];
  const sent = sendRequest({
    ...forwarding.connection,
    method: request.method ?? "GET",
    path: rewriting?.requestTarget(forwarding.target) ?? forwarding.target,
    headers: [...(rewriting?.requestHeaders(raw) ?? raw), ...framing(request, body)],
    setHost: false,
    insecureHTTPParser: false,
    maxHeaderSize: MAX_HEAD_LENGTH,
  });
  forwarding.meter.take("up", headLength(forwarding.target, raw), line);
  sent.setTimeout(forwarding.idleMs, () =>
    sent.destroy(new Error(`nothing came for ${forwarding.idleMs / 1000} s`)),
  );
  const left = (): void => void sent.destroy(new Error("the client left"));
  response.once("close", left);
  try {
    const answer = answerOf(sent);
    sendBody(forwarding, body, sent);
    await giveBack(forwarding, await answer);
    // A server may answer before it has read everything; then the rest is not sent.
    if (!sent.writableFinished) sent.destroy();
  } catch (thrown) {
    sent.destroy();
    const unread = again && thrown instanceof StaleConnection && (body !== null || !hasBody(request));
    if (!unread || response.headersSent || response.destroyed) throw thrown;
    await attempt(forwarding, body, false);
  } finally {
    response.off("close", left);
  }
}

/** Bodies up to this size are changed as a whole. */
const SMALL_BYTES = 256 * 1024;
const TEXTUAL = /^(?:text\/|application\/(?:[\w.+-]*json|x-www-form-urlencoded|[\w.+-]*xml|graphql)\b)/i;

async function smallBody({ request, rewriting, meter, line, idleMs }: Forwarding): Promise<Buffer | null> {
  const { headers } = request;
  const length = Number(headers["content-length"] ?? Number.NaN);
  const isPacked = !/^(?:identity)?$/i.test(headers["content-encoding"] ?? "");
  if (
    rewriting === undefined ||
    isPacked ||
    !(length <= SMALL_BYTES) ||
    !TEXTUAL.test(headers["content-type"] ?? "")
  )
    return null;
  const body = await readBodyInTime(request, idleMs);
  if (!meter.take("up", body.length, line)) throw new Error("over the budget");
  return rewriting.requestBody(request, body);
}

/** However its bytes trickle in, the whole body must be there in this time. */
async function readBodyInTime(request: IncomingMessage, withinMs: number): Promise<Buffer> {
  const body = buffer(request);
  body.catch(() => undefined);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`the body of the request did not come within ${withinMs / 1000} s`)),
    withinMs,
  );
  try {
    return await Promise.race([body, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Headers that are written anew, or that the box must not set. */
const REBUILT: ReadonlySet<string> = new Set(["host", "content-length", ...METHOD_OVERRIDES]);

const headLength = (target: string, headers: RawHeaders): number =>
  headers.reduce((sum, each) => sum + each.length + 2, target.length);

function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const changed = (): void => reject(new Error("the host answered with another protocol"));
  sent.once("response", (answer) => (answer.statusCode === 101 ? changed() : resolve(answer)));
  sent.once("upgrade", changed).on("error", (thrown) => {
    const isStale = sent.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(errorCode(thrown) ?? "");
    reject(isStale ? new StaleConnection() : thrown);
  });
  sent.once("close", () => reject(new Error("the host closed the connection")));
  return promise;
}

/** What the host does not want is still read from the client, which may not look at the answer before. */
function sendBody({ request, meter, line }: Forwarding, body: Buffer | null, sent: ClientRequest): void {
  if (body !== null) return void sent.end(body);
  if (!hasBody(request)) return void sent.end();
  request.on("data", (chunk: Buffer) => {
    if (sent.destroyed) return;
    if (!meter.take("up", chunk.length, line)) sent.destroy(new Error("over the budget"));
    else if (!sent.write(chunk)) request.pause();
  });
  request.once("end", () => sent.end());
  sent.on("drain", () => request.resume()).once("close", () => request.resume());
}

async function giveBack(
  { response, meter, line, rewriting }: Forwarding,
  answer: IncomingMessage,
): Promise<void> {
  const raw = endToEndHeaders(answer.rawHeaders);
  const changes = carriesNothing(response.req, answer) ? [] : (rewriting?.responseBody(answer) ?? []);
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, rewriting?.responseHeaders(raw) ?? raw);
  const counted = counting((bytes) => meter.take("down", bytes, line));
  await pipeline([answer, counted, ...changes, response], { end: response.shouldKeepAlive });
  if (!response.shouldKeepAlive) endOnceRead(response);
}

/** Such an answer may name a compression all the same, and no bytes are not readable as compressed ones. */
const carriesNothing = ({ method }: IncomingMessage, { statusCode, headers }: IncomingMessage): boolean =>
  method === "HEAD" || statusCode === 204 || statusCode === 304 || headers["content-length"] === "0";

/** How long a client may go on with a body that nobody needs before its connection is closed, and how long pause. */
const LINGER_MS = 10_000;
const PAUSE_MS = 3000;

/** Closing a connection on which the client still sends would take the answer back: the rest is read before. */
function endOnceRead(response: ServerResponse): void {
  const { req: request } = response;
  if (request.complete) return void response.end();
  const end = (): void => void response.end();
  const [late, quiet] = [setTimeout(end, LINGER_MS), setTimeout(end, PAUSE_MS)];
  response.once("close", () => [late, quiet].forEach(clearTimeout));
  request
    .once("end", end)
    .on("data", () => quiet.refresh())
    .resume();
}

function counting(take: (bytes: number) => boolean): Transform {
  return new Transform({
    transform(chunk: Buffer, _, done) {
      if (take(chunk.length)) done(null, chunk);
      else done(new Error("over the budget"));
    },
  });
}

/** Requests of one connection that may wait for the ones before them; apt sends ten at a time. */
export const MAX_WAITING = 100;
export const FLOODED = `more than ${MAX_WAITING} requests in one connection wait for an answer`;

/**
 * Serves the requests of one connection one after the other: node:http hands over all requests that came in one piece,
 * and reads on while there is data. After an answer that ended the connection nothing is served; a connection with too
 * many waiting requests is ended, and reported once to `flooded`.
 */
export class RequestQueue {
  readonly #last = new WeakMap<Socket, { readonly turn: Promise<void>; readonly waiting: Set<object> }>();
  readonly #flooded: (socket: Socket) => void;

  constructor(flooded: (socket: Socket) => void) {
    this.#flooded = flooded;
  }

  /** Whether a request of this connection is served, or waits. */
  isTaken(socket: Socket): boolean {
    return (this.#last.get(socket)?.waiting.size ?? 0) > 0;
  }

  async take(response: ServerResponse, serve: () => Promise<void>): Promise<void> {
    const { req: request } = response;
    const { socket } = request;
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    if (socket.destroyed) return;
    const { turn: before, waiting } = this.#last.get(socket) ?? { turn: undefined, waiting: new Set() };
    if (waiting.size >= MAX_WAITING) {
      this.#flooded(socket);
      return void socket.destroy();
    }
    waiting.add(response);
    const turn = this.#serve(before, response, serve).finally(() => waiting.delete(response));
    this.#last.set(socket, { turn, waiting });
    await turn;
  }

  async #serve(
    before: Promise<void> | undefined,
    response: ServerResponse,
    serve: () => Promise<void>,
  ): Promise<void> {
    const closed = new Promise<void>((resolve) => void response.once("close", resolve));
    await before;
    if (response.destroyed || !response.req.socket.writable) return;
    await serve();
    await closed;
  }
}

/** Sends an answer of the proxy's own as text; the connection ends with it. */
export function answerInWords(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent) return void response.destroy();
  const text = `harness: ${reason}\n`;
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    connection: "close",
    "x-harness-egress": status === 403 ? "denied" : "failed",
  });
  response.write(text);
  endOnceRead(response);
}
