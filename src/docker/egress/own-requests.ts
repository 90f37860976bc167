import { type ClientRequest, type IncomingMessage, request as sendRequest } from "node:http";
import { errorCode, reasonOf } from "../../core/errors.ts";
import type { Grant, OwnAnswer, OwnRequest, OwnRequests } from "../../core/network.ts";
import { isDenial, authorityText } from "./judge-host.ts";
import { EGRESS_LIMITS, EgressGate, isErrorReply, type AllowedRequest } from "./egress-gate.ts";
import type { OpenLine } from "./egress-ledger.ts";
import type { EgressOptions } from "./egress-proxy.ts";
import { MAX_HEAD_LENGTH, pairsOf } from "./forward-request.ts";
import { dialDirectly, type HostConnection, resolveOnHost, upstreamFrom, verifiedTls } from "./reach-host.ts";

type OwnOptions = Omit<EgressOptions, "folder" | "secrets">;

/**
 * Requests of the harness itself, through the same gate as a box's proxy: the same grants, addresses, trust, budgets
 * and ledger. Only the rules are shared with a box: the bytes are counted separately, and no secret is put in.
 */
export class GrantedRequests implements OwnRequests, AsyncDisposable {
  readonly #gate: EgressGate;
  readonly #ending = new AbortController();

  constructor({ grants, denied = [], roots, env = {}, ...options }: OwnOptions) {
    const { resolve = resolveOnHost, dial = dialDirectly, onConnection = () => undefined } = options;
    const limits = { ...EGRESS_LIMITS, ...options.limits };
    this.#gate = new EgressGate({
      grants,
      denied,
      secrets: [],
      limits,
      reaching: { resolve, dial, connectMs: limits.connectMs, upstream: upstreamFrom(env), roots },
      tell: onConnection,
    });
  }

  /** Adds grants until the returned function is called. */
  grant(more: readonly Grant[]): () => void {
    return this.#gate.grant(more);
  }

  async send(request: OwnRequest, signal: AbortSignal): Promise<OwnAnswer> {
    const ending = AbortSignal.any([signal, this.#ending.signal]);
    const prepared = this.#judge(request);
    if ("kind" in prepared) return prepared;
    try {
      return await this.#sendJudged(request, prepared, ending);
    } catch (thrown) {
      return { kind: "unreachable", reason: ending.aborted ? "it was ended" : reasonOf(thrown) };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    this.#gate.ledger.endAll();
    return Promise.resolve();
  }

  #judge({ url: text, method, body }: OwnRequest): JudgedRequest | Refused {
    const url = URL.parse(text);
    const scheme = url?.protocol;
    if (url === null || (scheme !== "http:" && scheme !== "https:"))
      return refused("url", "only complete http and https addresses can be requested");
    if (url.username !== "" || url.password !== "")
      return refused("url", "an address with a user name or a password in it cannot be requested");
    const by = scheme === "https:" ? "https" : "http";
    const judged = this.#gate.judge(url.host, by === "https" ? 443 : 80, method);
    if (isDenial(judged)) return refused(judged.rule, judged.reason);
    const target = url.pathname + url.search;
    const denial = this.#gate.judgeOwn({ method, carries: body !== undefined, target }, judged);
    return denial === undefined ? { judged, by, target } : refused(denial.rule, denial.reason);
  }

  async #sendJudged(
    request: OwnRequest,
    { judged, by, target }: JudgedRequest,
    signal: AbortSignal,
  ): Promise<OwnAnswer> {
    const reaching = this.#gate.reach(judged, by, { method: request.method, target });
    const reached = await unlessAborted(signal, reaching, (late) => {
      if (!isErrorReply(late)) late.socket.destroy();
    });
    if (isErrorReply(reached))
      return reached.status === 403
        ? refused("address", reached.words)
        : { kind: "unreachable", reason: reached.words };
    const line = this.#gate.ledger.allowed(judged.requestedHost);
    const cut = (): void => void reached.socket.destroy();
    signal.addEventListener("abort", cut, { once: true });
    reached.socket.once("close", () => {
      signal.removeEventListener("abort", cut);
      line.end();
    });
    this.#gate.hold(reached.socket, judged);
    try {
      if (reached.socket.destroyed) throw new Error("its grant has ended");
      const way = { reached, judged, by, target, line };
      const answer = await this.#answer(request, way, signal);
      return {
        kind: "answered",
        status: answer.statusCode ?? 0,
        headers: Array.from(
          pairsOf(answer.rawHeaders),
          ([name, value]) => [name.toLowerCase(), value] as const,
        ),
        body: this.#body(answer, way),
      };
    } catch (thrown) {
      line.end("unreachable", reasonOf(thrown));
      reached.socket.destroy();
      throw thrown;
    }
  }

  async #answer(request: OwnRequest, way: RequestWay, signal: AbortSignal): Promise<IncomingMessage> {
    const { reached, judged, by, target, line } = way;
    const { limits, roots, meter } = this.#gate;
    const { host: name, port } = judged.authority;
    const host = authorityText(judged.authority).replace(by === "https" ? /:443$/ : /:80$/, "");
    const stream =
      by === "https"
        ? await verifiedTls(reached.socket, name, { roots, connectMs: limits.connectMs })
        : reached.socket;
    signal.throwIfAborted();
    const { proxy } = reached;
    const headers = {
      ...request.headers,
      host,
      ...(proxy?.authorization ? { "proxy-authorization": proxy.authorization } : {}),
      connection: "close",
    };
    const path = proxy === null ? target : `http://${host}${target}`;
    const head = Object.entries(headers).reduce((sum, pair) => sum + pair.join(": ").length + 2, path.length);
    const up = head + Buffer.byteLength(request.body ?? "");
    if (!meter.take("up", up, line)) throw new Error(meter.denial?.reason ?? OVER_BUDGET);
    const sent = sendRequest({
      createConnection: () => stream,
      host: name,
      port,
      method: request.method,
      path,
      headers,
      setHost: false,
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HEAD_LENGTH,
    });
    sent.setTimeout(limits.idleMs, () =>
      sent.destroy(new Error(`nothing came for ${limits.idleMs / 1000} s`)),
    );
    sent.end(request.body);
    return answerOf(sent);
  }

  /** Leaving the iteration ends the connection, even before anything was read. */
  #body(answer: IncomingMessage, { reached, line }: RequestWay): AsyncIterable<Uint8Array> {
    const leave = (): void => {
      line.end();
      answer.destroy();
      reached.socket.destroy();
    };
    const pieces = this.#pieces(answer, line);
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          try {
            const next = await pieces.next();
            if (next.done === true) leave();
            return next;
          } catch (thrown) {
            leave();
            throw thrown;
          }
        },
        return: (value: unknown) => {
          leave();
          return Promise.resolve({ done: true, value });
        },
      }),
    };
  }

  async *#pieces(answer: IncomingMessage, line: OpenLine): AsyncGenerator<Uint8Array, void> {
    const { meter } = this.#gate;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      if (!meter.take("down", chunk.length, line)) {
        line.end("budget", meter.denial?.reason);
        throw new Error(meter.denial?.reason ?? OVER_BUDGET);
      }
      yield chunk;
    }
  }
}

const OVER_BUDGET = "more than this run may transfer";

interface JudgedRequest {
  readonly judged: AllowedRequest;
  readonly by: "https" | "http";
  readonly target: string;
}

interface RequestWay extends JudgedRequest {
  readonly reached: HostConnection;
  readonly line: OpenLine;
}

type Refused = Extract<OwnAnswer, { readonly kind: "refused" }>;

const refused = (rule: string, reason: string): Refused => ({ kind: "refused", rule, reason });

function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent.once("response", resolve).on("error", (thrown) => {
    const code = errorCode(thrown) ?? "";
    reject(code.startsWith("HPE_") ? new Error(`its answer cannot be read (${code})`) : thrown);
  });
  sent.once("upgrade", () => reject(new Error("it answered with another protocol")));
  return promise;
}

/** A result that comes when nobody waits for it any more is handed to `late`. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>, late: (came: T) => void): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(new Error("it was ended"));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } catch (thrown) {
    void work.then(late, () => undefined);
    throw thrown;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
