import type { ClientRequest, IncomingMessage } from "node:http";
import { formatDuration } from "../../core/bounds.ts";
import { errorCode, reasonOf } from "../../core/errors.ts";
import { WireFailure } from "../wire.ts";

export interface Question {
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
export async function post(question: Question): Promise<IncomingMessage> {
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

export const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "base_url");
