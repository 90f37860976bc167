import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import path from "node:path";
import { EGRESS_SOCKET } from "../../boxes/network-relay.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Connection, Grant, SecretBinding } from "../../core/network.ts";
import { ACCESS_DENIED, awaitHello, judgeHello, type ReceivedHello, SecondHello, splice } from "./tunnel.ts";
import {
  EGRESS_LIMITS,
  EgressGate,
  type EgressLimits,
  isErrorReply,
  type AllowedRequest,
} from "./egress-gate.ts";
import type { Ledger } from "./egress-ledger.ts";
import {
  answerInWords,
  FLOODED,
  forwardRequest,
  isMalformed,
  MAX_HEAD_LENGTH,
  RequestQueue,
} from "./forward-request.ts";
import { isDenial, mustSeeInto, authorityText } from "./judge-host.ts";
import {
  type Dial,
  dialDirectly,
  type HostConnection,
  type Resolve,
  resolveOnHost,
  upstreamFrom,
} from "./reach-host.ts";
import { placeholderIn } from "./secret-swap.ts";
import { makeSessionAuthority, type SessionAuthority, TlsEnding } from "./tls-ending.ts";
import { makeFolder } from "../../platform/folders.ts";

export interface EgressOptions {
  /** Made if missing; everybody may pass through the folder to the socket, and nobody may list it. */
  readonly folder: string;
  readonly grants: readonly Grant[];
  /** In the form of `Grant.host`: hosts that no grant opens. */
  readonly denied?: readonly string[];
  readonly secrets?: readonly SecretBinding[];
  /** PEM certificates that real servers are verified against if the proxy ends TLS; Node's own roots when left out. */
  readonly roots?: string;
  /** The host's environment: if it names proxies (`HTTPS_PROXY`, `NO_PROXY` …), connections go through them. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly limits?: Partial<EgressLimits>;
  /** Gets every line of the ledger when it is written: a denial at once, a connection when it has ended. */
  readonly onConnection?: (connection: Connection) => void;
  readonly resolve?: Resolve;
  readonly dial?: Dial;
}

/** The one way out of a box: a proxy on a unix socket of the host that judges every connection. */
export interface EgressProxy extends AsyncDisposable {
  /** The socket that the box's bridge must use. */
  readonly socket: string;
  /** PEM that the box must trust if the proxy ends TLS; null while no grant has methods and there is no secret. */
  readonly authority: string | null;
  /**
   * Adds grants for connections that begin later, until the returned function is called, which ends the connections
   * that nothing else allows.
   */
  readonly grant: (more: readonly Grant[]) => () => void;
  readonly ledger: () => Ledger;
}

/** The kernel's limit for a socket's path, to which it adds a NUL. */
const MAX_PATH_LENGTH = 107;

export async function openEgress(options: EgressOptions): Promise<EgressProxy> {
  const socket = path.join(options.folder, EGRESS_SOCKET);
  if (Buffer.byteLength(socket) > MAX_PATH_LENGTH)
    throw new HarnessError(
      EXIT.sandbox,
      `the path of the egress proxy's socket has more than ${MAX_PATH_LENGTH} bytes: ${socket}`,
      "choose a shorter folder for temporary files: TMPDIR=/tmp",
    );
  makeFolder(options.folder, 0o777);
  await chmod(options.folder, 0o711);
  await rm(socket, { force: true });
  const proxy = new Proxy(options);
  await proxy.listen(socket);
  // The commands of a box run under another user id than the proxy.
  await chmod(socket, 0o666);
  return {
    socket,
    get authority() {
      return proxy.authority;
    },
    grant: (more) => proxy.grant(more),
    ledger: () => proxy.gate.ledger.read(),
    [Symbol.asyncDispose]: async () => {
      await proxy.close();
      await rm(socket, { force: true });
    },
  };
}

/** As many connections may wait as the kernel allows; beyond that a unix socket refuses at once (EAGAIN). */
const BACKLOG = 4096;

/** A shorter value occurs too often in answers to be taken out of them. */
const MIN_SECRET_LENGTH = 6;

function checkSecrets(secrets: readonly SecretBinding[]): void {
  const short = secrets.find(({ value }) => value.length < MIN_SECRET_LENGTH);
  if (short === undefined) return;
  const message = `the secret ${short.name} has fewer than ${MIN_SECRET_LENGTH} characters: it could not be kept from the box`;
  throw new HarnessError(
    EXIT.usage,
    message,
    `give ${short.name} a longer value, or leave --secret ${short.name} out`,
  );
}

class Proxy {
  readonly gate: EgressGate;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #turns = new RequestQueue(() => this.gate.denyUnread(null, "connections", FLOODED));
  #ending: { readonly authority: SessionAuthority; readonly tls: TlsEnding } | null = null;

  constructor(options: EgressOptions) {
    const { grants, denied = [], secrets = [], roots, env = {} } = options;
    const { resolve = resolveOnHost, dial = dialDirectly, onConnection = () => undefined } = options;
    const limits = { ...EGRESS_LIMITS, ...options.limits };
    checkSecrets(secrets);
    this.gate = new EgressGate({
      grants,
      denied,
      secrets,
      limits,
      reaching: { resolve, dial, connectMs: limits.connectMs, upstream: upstreamFrom(env), roots },
      tell: onConnection,
    });
    if (secrets.length > 0 || grants.some(({ methods }) => methods !== null)) this.#tlsEnding();
    this.#server = createServer({
      maxHeaderSize: MAX_HEAD_LENGTH,
      headersTimeout: limits.headMs,
      requestTimeout: 0,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: 5000,
      requireHostHeader: false,
      insecureHTTPParser: false,
      noDelay: true,
    });
    this.#server.maxConnections = limits.connections;
    this.#attach(limits);
  }

  #attach({ connections }: EgressLimits): void {
    this.#server.on("connection", (socket: Socket) => this.#keep(socket));
    this.#server.on("drop", () =>
      this.gate.denyUnread(null, "connections", `more than ${connections} connections at a time`),
    );
    this.#server.on("clientError", (thrown, socket) => {
      if (isMalformed(thrown)) this.#malformed(socket as Socket);
      else socket.destroy();
    });
    this.#server.on(
      "request",
      (request, response) =>
        void this.#turns
          .take(response, () => servePlain(this.gate, request, response))
          .catch(() => response.destroy()),
    );
    this.#server.on(
      "connect",
      (request, socket, head) =>
        void this.#tunnel(request.url ?? "", socket as Socket, head).catch(() => socket.destroy()),
    );
  }

  get authority(): string | null {
    return this.#ending?.authority.pem ?? null;
  }

  #tlsEnding(): TlsEnding {
    if (this.#ending === null) {
      const authority = makeSessionAuthority();
      this.#ending = { authority, tls: new TlsEnding(this.gate, authority) };
    }
    return this.#ending.tls;
  }

  async listen(socket: string): Promise<void> {
    this.#server.listen({ path: socket, backlog: BACKLOG });
    await once(this.#server, "listening");
    this.#server.unref();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#ending?.tls.close();
    this.gate.ledger.endAll();
  }

  grant(more: readonly Grant[]): () => void {
    if (more.some(({ methods }) => methods !== null)) this.#tlsEnding();
    return this.gate.grant(more);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => this.#sockets.delete(socket));
  }

  #malformed(socket: Socket): void {
    const reason = "the request is malformed or ambiguous";
    this.gate.denyUnread(null, "malformed", reason);
    if (socket.writable) refuse(socket, 400, reason);
    else socket.destroy();
  }

  async #tunnel(url: string, client: Socket, head: Buffer): Promise<void> {
    client.pause();
    // Two answers would be mixed, and a grant that ends would end only one of the two connections.
    if (this.#turns.isTaken(client)) return this.#malformed(client);
    const judged = this.gate.judge(url, null, null);
    if (isDenial(judged)) return refuse(client, 403, judged.reason);
    this.gate.hold(client, judged);
    if (mustSeeInto(judged.allowance) || (await this.gate.isForRequests(judged)))
      return this.#tunnelWithTls(client, head, judged);
    const reached = await this.gate.reach(judged, "https");
    if (isErrorReply(reached)) return refuse(client, reached.status, reached.words);
    const hello = await this.#hello(client, head, judged);
    if (hello === null) return void reached.socket.destroy();
    const { host, literal } = judged.authority;
    const second = new SecondHello((again) => judgeHello(again, host, literal));
    const line = this.gate.ledger.allowed(judged.requestedHost);
    this.gate.meter.take("up", hello.bytes.length, line);
    reached.socket.write(hello.bytes);
    if (hello.rest.length > 0) client.unshift(hello.rest);
    const why = await splice({ client, server: reached.socket }, this.gate.meter, line, {
      idleMs: this.gate.limits.idleMs,
      second,
    });
    line.end(why?.rule, why?.reason);
  }

  async #tunnelWithTls(client: Socket, head: Buffer, judged: AllowedRequest): Promise<void> {
    const hello = await this.#hello(client, head, judged);
    if (hello !== null) this.#tlsEnding().serve(client, Buffer.concat([hello.bytes, hello.rest]), judged);
  }

  /** Opens the tunnel towards the client and judges its first message; null if nothing may follow. */
  async #hello(client: Socket, head: Buffer, judged: AllowedRequest): Promise<ReceivedHello | null> {
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    const received = await awaitHello(client, head, this.gate.limits.helloMs);
    if (received === null) {
      client.destroy();
      return null;
    }
    const { host, literal } = judged.authority;
    const denial = isDenial(received) ? received : judgeHello(received.hello, host, literal);
    if (denial === undefined && !isDenial(received)) return received;
    if (denial !== undefined) this.gate.deny(judged.requestedHost, denial);
    client.end(ACCESS_DENIED, () => client.destroy());
    return null;
  }
}

function refuse(socket: Socket, status: 400 | 403 | 502, reason: string): void {
  const text = `harness: ${reason}\n`;
  const words = { 400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway" }[status];
  const head = [
    `HTTP/1.1 ${status} ${words}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close",
    `X-Harness-Egress: ${status === 403 ? "denied" : "failed"}`,
  ];
  socket.resume();
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`, () => socket.destroySoon());
}

/** Serves a request that names its whole URL: `GET http://host/path`. Each request is judged separately. */
async function servePlain(
  gate: EgressGate,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const method = request.method ?? "";
  const match = /^http:\/\/([^/?#]*)([^#]*)$/is.exec(request.url ?? "");
  if (match === null) return misdirected(gate, request, response);
  const [, named = "", rest = ""] = match;
  const judged = gate.judge(named, 80, method);
  if (isDenial(judged)) return answerInWords(response, 403, judged.reason);
  const target = rest.startsWith("/") ? rest : `/${rest}`;
  const denial = gate.judgeRequest(request, target, judged, 80) ?? judgeOpenly(gate, request, judged);
  if (denial !== undefined) return answerInWords(response, 403, denial.reason);
  gate.hold(request.socket, judged);
  const reached = await gate.reach(judged, "http", { method, target });
  // The client may have left meanwhile, or its grant may have been withdrawn.
  if (response.destroyed) return void (isErrorReply(reached) || reached.socket.destroy());
  if (isErrorReply(reached)) return answerInWords(response, reached.status, reached.words);
  await forwardToTarget(gate, { request, response, target, judged, reached });
}

interface PassedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: string;
  readonly judged: AllowedRequest;
  readonly reached: HostConnection;
}

async function forwardToTarget(
  gate: EgressGate,
  { request, response, target, judged, reached }: PassedRequest,
): Promise<void> {
  const { socket, proxy } = reached;
  const { authority } = judged;
  const host =
    authority.port === 80 ? authorityText(authority).replace(/:80$/, "") : authorityText(authority);
  const line = gate.ledger.allowed(judged.requestedHost);
  const ended = await forwardRequest({
    request,
    response,
    target: proxy === null ? target : `http://${host}${target}`,
    host,
    connection: { createConnection: () => socket },
    extra:
      proxy?.authorization === null || proxy === null ? [] : ["Proxy-Authorization", proxy.authorization],
    meter: gate.meter,
    line,
    idleMs: gate.limits.idleMs,
  });
  socket.destroy();
  line.end(ended?.rule, ended?.reason);
  if (ended !== null) answerInWords(response, ended.rule === "budget" ? 403 : 502, ended.reason);
}

/** A secret's value is not sent where everybody on the way can read it. */
function judgeOpenly(
  gate: EgressGate,
  request: IncomingMessage,
  { requestedHost, allowance }: AllowedRequest,
): { readonly reason: string } | undefined {
  const name = placeholderIn(request, allowance.secrets);
  if (name === undefined) return undefined;
  const reason = `the secret ${name} is put into requests by https only, and this one is http`;
  return gate.deny(requestedHost, { rule: "secret", reason });
}

function misdirected(gate: EgressGate, request: IncomingMessage, response: ServerResponse): void {
  const reason = /^https:/i.test(request.url ?? "")
    ? "a request for https has to come through CONNECT"
    : "this is a proxy: a request names http://host/path, or comes through CONNECT";
  gate.denyUnread(request.method ?? "", "authority", reason);
  answerInWords(response, 403, reason);
}
