import type { ClientRequest, IncomingMessage } from "node:http";
import { formatDuration } from "../../core/bounds.ts";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { endless, LONGEST_BODY, WireFailure } from "../model-api.ts";
import { type Fields, parsedJson } from "../json-text.ts";
import type { Concessions } from "./http-concessions.ts";
import { type Asked, failureOf, type Refusal, refusalIn } from "./http-refusals.ts";

interface Question {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body: unknown;
  readonly signal: AbortSignal;
  /** For the connection; all later time is bounded by the signal alone. */
  readonly connectMs: number;
}

/**
 * One POST, up to the head of its response; all that can go wrong on the way throws a `WireFailure`. Not fetch: that
 * gives up on a body that is silent for five minutes, as a server that reads a long prompt is, and follows redirects
 * with every header of its own, `x-api-key` too. Here no redirect is followed.
 */
async function post(question: Question): Promise<IncomingMessage> {
  const json = JSON.stringify(question.body);
  try {
    question.signal.throwIfAborted();
    return await attempt(question, json, true);
  } catch (thrown) {
    if (!(thrown instanceof StaleSocket)) throw networkFailure(thrown, question);
  }
  try {
    return await attempt(question, json, false);
  } catch (thrown) {
    throw networkFailure(thrown, question);
  }
}

/** A kept connection that the server had closed meanwhile: nothing was read of the request. */
class StaleSocket extends Error {
  override readonly name = "StaleSocket";
}

async function attempt(question: Question, json: string, reuse: boolean): Promise<IncomingMessage> {
  const { url, headers, signal } = question;
  const { request } = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: "POST",
        headers: {
          accept: "text/event-stream, application/json",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(json),
          ...headers,
        },
        signal,
        ...(reuse ? {} : { agent: false }),
      },
      resolve,
    );
    const timer = watch(sent, question);
    sent.on("error", (error) => {
      clearTimeout(timer);
      const stale = reuse && sent.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(errorCode(error) ?? "");
      reject(stale && !signal.aborted ? new StaleSocket() : error);
    });
    sent.end(json);
  });
}

/** Ends a request that gets no connection in time. */
function watch(sent: ClientRequest, { connectMs, url }: Question): NodeJS.Timeout {
  const late = new WireFailure(
    "timeout",
    `${originOf(url)}: no connection within ${formatDuration(connectMs)}`,
    {
      remedy: START,
      passing: true,
    },
  );
  const timer = setTimeout(() => sent.destroy(late), connectMs);
  const connected = (): void => clearTimeout(timer);
  sent.on("socket", (socket) => {
    if (!socket.connecting) return connected();
    socket.once(url.startsWith("https:") ? "secureConnect" : "connect", connected);
  });
  return timer;
}

interface Mishap {
  readonly code: RegExp;
  readonly reason: string;
  readonly remedy: string;
  readonly passing?: boolean;
}

const START = "start the server, or name another: harness config set base_url URL";
const ADDRESS = "harness config set base_url URL";

/** By the system's code; OpenSSL's codes name what is wrong with a certificate. */
const MISHAPS: readonly Mishap[] = [
  { code: /^ECONNREFUSED$/, reason: "nobody listens there", remedy: START },
  { code: /^ENOTFOUND$/, reason: "the host is not known", remedy: ADDRESS },
  { code: /^EAI_AGAIN$/, reason: "names cannot be resolved", remedy: "check the network", passing: true },
  {
    code: /^(?:EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/,
    reason: "no way leads there",
    remedy: "check the network",
    passing: true,
  },
  { code: /^ETIMEDOUT$/, reason: "the connection timed out", remedy: START, passing: true },
  {
    code: /^(?:ECONNRESET|EPIPE|ECONNABORTED)$/,
    reason: "the server hung up without an answer",
    remedy: "check the server's log, and whether the address asks for https",
    passing: true,
  },
  {
    code: /SELF_SIGNED|UNABLE_TO_|CERT_UNTRUSTED|INVALID_CA/,
    reason: "its certificate is signed by nobody that this machine trusts",
    remedy: "set NODE_EXTRA_CA_CERTS to the file of the signing certificate",
  },
  {
    code: /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/,
    reason: "its certificate is out of date",
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
  { code: /^ERR_INVALID_(?:URL|PROTOCOL)$/, reason: "it is no address", remedy: ADDRESS },
];

/** What a failed connection means. The reason names the origin only: paths and user names may be private. */
function networkFailure(thrown: unknown, { url, signal }: Pick<Question, "url" | "signal">): WireFailure {
  if (thrown instanceof WireFailure) return thrown;
  if (signal.aborted) return new WireFailure("cancelled", "cancelled");
  const code = errorCode(thrown) ?? "";
  if (code === "ERR_INVALID_CHAR")
    return new WireFailure("unauthorised", "the key holds characters that cannot be sent", {
      remedy: "set the key again, without line breaks or quotes",
    });
  const mishap = MISHAPS.find((row) => row.code.test(code));
  const reason = mishap?.reason ?? reasonOf(thrown);
  return new WireFailure("unreachable", `${originOf(url)}: ${reason}${code === "" ? "" : ` (${code})`}`, {
    remedy: mishap?.remedy ?? START,
    passing: mishap?.passing ?? false,
  });
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "base_url");

/** Bytes that are read of a refusal; what it says stands at its beginning. */
const LONGEST_REFUSAL = 2 ** 20;
const MAX_WAIT_MS = 24 * 3_600_000;

/** The body, and what came of one that broke off; one that is longer than any answer throws. */
export async function wholeText(response: IncomingMessage): Promise<string> {
  const { text, whole } = await textWithin(response, LONGEST_BODY);
  if (!whole) throw endless("the server's answer has no end: it was ended at its bound");
  return text;
}

async function textWithin(
  response: IncomingMessage,
  most: number,
): Promise<{ readonly text: string; readonly whole: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > most) break;
    }
  } catch (thrown) {
    if (chunks.length === 0) throw brokenOff(reasonOf(thrown));
  }
  return { text: Buffer.concat(chunks).toString("utf8"), whole: length <= most };
}

/** What the server said instead of an answer; undefined when it answers. Throws when it is no model server. */
async function refusalTo(response: IncomingMessage, asked: Asked): Promise<Refusal | undefined> {
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return undefined;
  if (status < 400) {
    response.destroy();
    throw stranger(asked, `it redirects to ${targetOf(response, asked)}`);
  }
  const { text } = await textWithin(response, LONGEST_REFUSAL);
  const said = refusalIn(parsedJson(text), status, retryAfter(response));
  if (said !== undefined) return said;
  const page = isPage(response, text);
  // Of a page only what a proxy says for the server behind it means anything.
  if (page && status < 500 && status !== 401 && status !== 429)
    throw stranger(asked, `it answers with a web page (HTTP ${status})`);
  return {
    status,
    late: false,
    code: "",
    text: page ? titleIn(text) : text,
    retryAfterMs: retryAfter(response),
    raw: null,
  };
}

/** The origin only: a login page's address may hold what was asked. */
function targetOf({ headers: { location = "" } }: IncomingMessage, { url }: Asked): string {
  return URL.canParse(location, url) ? new URL(location, url).origin : "another page";
}

const isPage = (response: IncomingMessage, text: string): boolean =>
  /\bhtml\b/i.test(response.headers["content-type"] ?? "") || /^\s*<(?:!doctype|html)/i.test(text);

const titleIn = (page: string): string =>
  /<title>([^<]{0,200})/i.exec(page.slice(0, 4000))?.[1]?.trim() ?? "a web page";

/** Seconds or a date; OpenAI says it in milliseconds too. */
function retryAfter({ headers }: IncomingMessage): number | null {
  const exact = headers["retry-after-ms"];
  const said = headers["retry-after"] ?? "";
  const ms = /^\d+(?:\.\d+)?$/.test(said) ? Number(said) * 1000 : Date.parse(said) - Date.now();
  const wait = typeof exact === "string" && /^\d+(?:\.\d+)?$/.test(exact) ? Number(exact) : ms;
  return Number.isNaN(wait) ? null : Math.min(Math.max(Math.ceil(wait), 0), MAX_WAIT_MS);
}

interface Opening {
  readonly asked: Asked;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Fields;
  readonly concessions: Concessions;
  readonly signal: AbortSignal;
  readonly connectMs: number;
}

interface Opened {
  readonly response: IncomingMessage;
  /** What had to be left out. */
  readonly notes: readonly string[];
}

/** Asks, again without a field that the server refuses, until it answers; throws the `WireFailure` otherwise. */
export async function opened(opening: Opening): Promise<Opened> {
  const { asked, headers, concessions, signal, connectMs } = opening;
  for (;;) {
    const { body, notes } = concessions.applied(asked.model, opening.body);
    const response = await post({ url: asked.url, headers, body, signal, connectMs });
    const refusal = await unlessCancelled(refusalTo(response, asked), signal);
    if (refusal === undefined) return { response, notes };
    if (!concessions.learn(asked.model, body, refusal)) throw failureOf(refusal, asked);
  }
}

async function unlessCancelled<T>(pending: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await pending;
  } catch (thrown) {
    throw signal.aborted ? new WireFailure("cancelled", "cancelled") : thrown;
  }
}

/** Failures of servers that answer, but not as any API promises. */

const MAX_SHOWN = 60;
const LOG = "check the server's log and its version";

export const OTHER_JSON = "it answers with JSON of another kind";

/** Something else listens at the address. */
export const stranger = ({ url }: Asked, what: string): WireFailure =>
  new WireFailure("unreachable", `${originOf(url)} is no model server: ${what}`, {
    remedy: "check the address: harness config set base_url URL",
  });

/** The stream ended before the server said that the reply is complete. */
export const brokenOff = (reason = ""): WireFailure =>
  new WireFailure("garbled", `the reply broke off before its end${reason === "" ? "" : ` (${reason})`}`, {
    passing: true,
    remedy: "check the server's log",
  });

/** `what` is the thing that it should be, `text` the one that came. */
export const notA = (what: string, text: string): WireFailure =>
  new WireFailure("garbled", `the server sends what is no ${what}: ${shown(text)}`, {
    passing: true,
    remedy: LOG,
  });

export const shown = (text: string): string => JSON.stringify(text.slice(0, MAX_SHOWN));
