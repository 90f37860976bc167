import {
  type ClientRequest,
  type IncomingMessage,
  request as sendRequest,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { reasonOf } from "../../core/errors.ts";
import type { OpenLine } from "./egress-ledger.ts";
import { type Denial, METHOD_OVERRIDES } from "./judge-host.ts";
import type { ByteMeter } from "./tunnel.ts";

/** Headers are held to this many bytes on both sides. */
export const LONGEST_HEAD = 32 * 1024;

/** What concerns one connection and not the request; whatever `Connection` names goes with them. */
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

/** Names and values in turn, as node:http has them. */
type RawHeaders = readonly string[];

function* pairsOf(raw: RawHeaders): Generator<readonly [name: string, value: string]> {
  for (let at = 0; at + 1 < raw.length; at += 2) yield [raw[at] ?? "", raw[at + 1] ?? ""];
}

/** Every value of a header, in its order. */
export const valuesOf = (raw: RawHeaders, name: string): readonly string[] =>
  Array.from(pairsOf(raw)).flatMap(([each, value]) => (each.toLowerCase() === name ? [value] : []));

/** Without what belongs to a connection, and without these. */
function endToEnd(raw: RawHeaders, without: ReadonlySet<string> = new Set()): string[] {
  const named = valuesOf(raw, "connection").flatMap((value) => value.toLowerCase().split(","));
  const hop = new Set(named.map((name) => name.trim()));
  return Array.from(pairsOf(raw)).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    return HOP.has(lower) || hop.has(lower) || without.has(lower) ? [] : [name, value];
  });
}

/** Lengths are told anew; node's parser has refused a request that tells two, or a length and chunks. */
function framing(request: IncomingMessage): readonly string[] {
  if (request.headers["transfer-encoding"] !== undefined) return ["Transfer-Encoding", "chunked"];
  const length = request.headers["content-length"];
  if (length !== undefined) return ["Content-Length", length];
  return BODILESS.has(request.method ?? "") ? [] : ["Content-Length", "0"];
}

const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "DELETE"]);

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** Of a request as a whole, before it is sent on. */
export function judgeFraming(request: IncomingMessage): Denial | undefined {
  const coding = request.headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return { rule: "malformed", reason: "a transfer coding other than chunked" };
  if (request.method === "TRACE") return { rule: "method", reason: "TRACE is never sent on" };
  return undefined;
}

/** How what is sent and what comes back is changed on its way; null where it is not. */
interface Rewriting {
  readonly requestHeaders: (raw: string[]) => string[];
  readonly responseHeaders: (raw: string[]) => string[];
  /** Between the two sides of a body; empty where it stays as it is. */
  readonly requestBody: () => readonly Transform[];
  readonly responseBody: (response: IncomingMessage) => readonly Transform[];
}

export interface Forwarding {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query, or the whole address where another proxy is asked. */
  readonly target: string;
  /** The value of `Host` that the server gets. */
  readonly host: string;
  readonly connection: Pick<RequestOptions, "agent" | "createConnection">;
  readonly extra?: readonly string[];
  readonly meter: ByteMeter;
  readonly line: OpenLine;
  readonly idleMs: number;
  readonly rewriting?: Rewriting;
}

/** How it ended, if not well; whatever is left of the answer is then cut off. */
export interface Ended {
  readonly rule: string;
  readonly reason: string;
  readonly answered: boolean;
}

/**
 * One request, made anew from what was read of it, and its answer. What the client sends and what the server sends is
 * each held up while the other side does not read.
 */
export async function forwardRequest(way: Forwarding): Promise<Ended | null> {
  const { request, response, line, rewriting } = way;
  const headers = ["Host", way.host, ...endToEnd(request.rawHeaders, REBUILT), ...(way.extra ?? [])];
  const sent = sendRequest({
    ...way.connection,
    method: request.method ?? "GET",
    path: way.target,
    headers: [...(rewriting?.requestHeaders(headers) ?? headers), ...framing(request)],
    setHost: false,
    maxHeaderSize: LONGEST_HEAD,
  });
  sent.setTimeout(way.idleMs, () => sent.destroy(new Error(`nothing came for ${way.idleMs / 1000} s`)));
  const left = (): void => void sent.destroy(new Error("the client left"));
  response.once("close", left);
  try {
    const [answer] = await Promise.all([answerOf(sent), sendBody(way, sent)]);
    await giveBack(way, answer);
    return null;
  } catch (thrown) {
    sent.destroy();
    const denial = way.meter.denial;
    if (denial !== undefined) return { ...denial, answered: response.headersSent };
    return { rule: "unreachable", reason: reasonOf(thrown), answered: response.headersSent };
  } finally {
    response.off("close", left);
    line.up += headLength(way.target, headers);
  }
}

/** Told anew, or not the box's to say. */
const REBUILT: ReadonlySet<string> = new Set(["host", "content-length", ...METHOD_OVERRIDES]);

const headLength = (target: string, headers: RawHeaders): number =>
  headers.reduce((sum, each) => sum + each.length + 2, target.length);

function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent.once("response", resolve).on("error", reject);
  return promise;
}

/** A server may answer, and leave, before it has read all. */
async function sendBody({ request, meter, line, rewriting }: Forwarding, sent: ClientRequest): Promise<void> {
  if (!hasBody(request)) return void sent.end();
  const counted = counting((bytes) => meter.take("up", bytes, line));
  await pipeline([request, counted, ...(rewriting?.requestBody() ?? []), sent]);
}

async function giveBack(
  { response, meter, line, rewriting }: Forwarding,
  answer: IncomingMessage,
): Promise<void> {
  const raw = endToEnd(answer.rawHeaders);
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, rewriting?.responseHeaders(raw) ?? raw);
  const counted = counting((bytes) => meter.take("down", bytes, line));
  await pipeline([answer, counted, ...(rewriting?.responseBody(answer) ?? []), response]);
}

function counting(take: (bytes: number) => boolean): Transform {
  return new Transform({
    transform(chunk: Buffer, _, done) {
      if (take(chunk.length)) done(null, chunk);
      else done(new Error("over the budget"));
    },
  });
}

/** An answer of the proxy's own, in words; the connection ends with it. */
export function answerInWords(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent) return void response.destroy();
  const text = `harness: ${reason}\n`;
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    connection: "close",
    "x-harness-egress": status === 403 ? "denied" : "failed",
  });
  response.end(text);
}
