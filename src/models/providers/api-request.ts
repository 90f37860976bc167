import type { IncomingMessage } from "node:http";
import { formatDuration } from "../../core/text/bounds.ts";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { askedToWait } from "../../core/server-wait.ts";
import { type Fields, parsedJson } from "../../core/text/json-values.ts";
import { NoConnection, redirectOrigin, send, textWithin } from "../http-request.ts";
import { endless, MAX_BODY_LENGTH, WireFailure } from "../model-api.ts";
import {
  brokenOff,
  failureOf,
  notModelServer,
  originOf,
  type Refusal,
  refusalIn,
  type RequestContext,
} from "./api-refusals.ts";

/** One request to an API like OpenAI's or Anthropic's. */

interface ApiRequest {
  readonly asked: RequestContext;
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
  const { asked, concessions } = request;
  for (;;) {
    const { body, notes } = concessions.applied(asked.model, request.body);
    const answered = await post(request, JSON.stringify(body));
    if ("response" in answered) return { ...answered, notes };
    if (!concessions.learn(asked.model, body, answered.refusal)) throw failureOf(answered.refusal, asked);
  }
}

/** One POST of a JSON text that has no optional fields; throws a refusal as a `WireFailure`. */
export async function postJson(request: ApiRequest, json: string): Promise<IncomingMessage> {
  const answered = await post(request, json);
  if ("response" in answered) return answered.response;
  throw failureOf(answered.refusal, request.asked);
}

type PostResult = { readonly response: IncomingMessage } | { readonly refusal: Refusal };

async function post({ asked, headers, signal, connectMs }: ApiRequest, json: string): Promise<PostResult> {
  const { url } = asked;
  const accepting = { accept: "text/event-stream, application/json", ...headers };
  let response: IncomingMessage;
  try {
    response = await send({ url, headers: accepting, json, signal, connectMs });
  } catch (thrown) {
    throw networkFailure(thrown, { url, signal, connectMs });
  }
  const refusal = await unlessCancelled(refusalTo(response, asked), signal);
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
  if (broken !== undefined && text === "") throw brokenOff(reasonOf(broken));
  if (!whole) throw endless("the server's answer is endless: it was cut off at the limit");
  return text;
}

/** The server's refusal; undefined if it answered. Throws if it is not a model server. */
async function refusalTo(response: IncomingMessage, context: RequestContext): Promise<Refusal | undefined> {
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return undefined;
  if (status < 400) {
    response.destroy();
    throw notModelServer(context, `it redirects to ${redirectOrigin(response, context.url)}`);
  }
  const { text, broken } = await textWithin(response, MAX_REFUSAL_LENGTH);
  if (broken !== undefined && text === "") throw brokenOff(reasonOf(broken));
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
    ? askedToWait(String(Number(exact) / 1000), Date.now())
    : askedToWait(headers["retry-after"], Date.now(), headers.date);
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
  learn(model: string, body: Fields, { status, code, text }: Refusal): boolean {
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
