import { once } from "node:events";
import { chmod, mkdir, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Connection, Grant, SecretBinding } from "../../core/network.ts";
import { type Authority, isUnreadable, parseAuthority } from "./authority.ts";
import { judgeHello } from "./client-hello.ts";
import { type Asked, EgressLedger, type Ledger } from "./egress-ledger.ts";
import {
  answerInWords,
  forwardRequest,
  hasBody,
  judgeFraming,
  LONGEST_HEAD,
  valuesOf,
} from "./forward-request.ts";
import {
  type Allowance,
  type Denial,
  isDenial,
  isMethodAllowed,
  judgeHost,
  mustSeeInto,
  shown,
} from "./judge-host.ts";
import {
  type Dial,
  dialDirectly,
  isUnreachable,
  reachHost,
  type Resolve,
  resolveOnHost,
} from "./reach-host.ts";
import { ACCESS_DENIED, awaitHello, ByteMeter, splice } from "./tunnel.ts";

/** What a run may use of the network in all, and how long it may keep what it does not use. */
interface EgressLimits {
  /** Connections of the box at one time; more are not taken. */
  readonly connections: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** In which nothing moved. */
  readonly idleMs: number;
  readonly connectMs: number;
  readonly helloMs: number;
  /** For the head of a request. */
  readonly headMs: number;
}

const EGRESS_LIMITS: EgressLimits = {
  connections: 1024,
  bytesUp: 50 * 2 ** 20,
  bytesDown: 2 * 2 ** 30,
  idleMs: 120_000,
  connectMs: 15_000,
  helloMs: 10_000,
  headMs: 10_000,
};

export interface EgressOptions {
  /** Made where it is not there; everybody may pass through it to the socket and nobody may list it. */
  readonly folder: string;
  readonly grants: readonly Grant[];
  /** In the form of `Grant.host`: what no grant opens. */
  readonly denied?: readonly string[];
  readonly secrets?: readonly SecretBinding[];
  /** PEM of what real servers are verified against where the proxy ends TLS; Node's own roots when left out. */
  readonly roots?: string;
  readonly limits?: Partial<EgressLimits>;
  /** Every line of the ledger as it is written: a denial at once, a connection when it has ended. */
  readonly onConnection?: (connection: Connection) => void;
  readonly resolve?: Resolve;
  readonly dial?: Dial;
}

/** The one way out of a box: a proxy on a unix socket of the host that judges every connection. */
export interface EgressProxy extends AsyncDisposable {
  /** The socket that the box's bridge is to be pointed at. */
  readonly socket: string;
  /** PEM that the box has to trust where the proxy ends TLS; null while nothing granted needs that. */
  readonly authority: string | null;
  /** From now on these count, too: for connections that begin later. */
  readonly grant: (more: readonly Grant[]) => void;
  readonly ledger: () => Ledger;
}

/** The kernel's bound for a socket's path, with the NUL behind it. */
const LONGEST_PATH = 107;

export async function openEgress(options: EgressOptions): Promise<EgressProxy> {
  const socket = path.join(options.folder, "egress.sock");
  if (Buffer.byteLength(socket) > LONGEST_PATH)
    throw new HarnessError(
      EXIT.sandbox,
      `the path of the egress proxy's socket has more than ${LONGEST_PATH} bytes: ${socket}`,
      "choose a shorter folder for temporary files: TMPDIR=/tmp",
    );
  await mkdir(options.folder, { recursive: true });
  await chmod(options.folder, 0o711);
  await rm(socket, { force: true });
  const proxy = new Proxy(options);
  await proxy.listen(socket);
  // The commands of a box have another user's id than the proxy.
  await chmod(socket, 0o666);
  return {
    socket,
    authority: null,
    grant: (more) => proxy.grant(more),
    ledger: () => proxy.ledger.read(),
    [Symbol.asyncDispose]: async () => {
      await proxy.close();
      await rm(socket, { force: true });
    },
  };
}

class Proxy {
  readonly ledger: EgressLedger;
  readonly #options: EgressOptions;
  readonly #limits: EgressLimits;
  readonly #meter: ByteMeter;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #grants: readonly Grant[];

  constructor(options: EgressOptions) {
    this.#options = options;
    this.#limits = { ...EGRESS_LIMITS, ...options.limits };
    this.#grants = options.grants;
    this.#meter = new ByteMeter({ up: this.#limits.bytesUp, down: this.#limits.bytesDown });
    this.ledger = new EgressLedger(options.onConnection ?? (() => undefined));
    this.#server = createServer({
      maxHeaderSize: LONGEST_HEAD,
      headersTimeout: this.#limits.headMs,
      requestTimeout: 0,
      keepAliveTimeout: this.#limits.idleMs,
      connectionsCheckingInterval: 5000,
      requireHostHeader: false,
      noDelay: true,
    });
    this.#server.maxConnections = this.#limits.connections;
    this.#server.on("connection", (socket: Socket) => this.#keep(socket));
    this.#server.on("drop", () =>
      this.#denyUnread("connections", `more than ${this.#limits.connections} at a time`),
    );
    this.#server.on("clientError", (_, socket) => this.#malformed(socket as Socket));
    this.#server.on("request", (request, response) => void this.#plain(request, response));
    this.#server.on(
      "connect",
      (request, socket, head) => void this.#tunnel(request.url ?? "", socket as Socket, head),
    );
  }

  async listen(socket: string): Promise<void> {
    this.#server.listen(socket);
    await once(this.#server, "listening");
    this.#server.unref();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    await new Promise((resolve) => void setImmediate(resolve));
  }

  grant(more: readonly Grant[]): void {
    this.#grants = [...this.#grants, ...more];
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => this.#sockets.delete(socket));
  }

  #denyUnread(rule: string, reason: string): void {
    this.ledger.denied({ host: "", port: 0, method: null }, rule, reason);
  }

  #malformed(socket: Socket): void {
    this.#denyUnread("malformed", "a request that cannot be read, or in more than one way");
    if (socket.writable) refuse(socket, 400, "the request cannot be read, or in more than one way");
    else socket.destroy();
  }

  /** What stands in a request for the host, judged as far as no address is needed. */
  #judged(text: string, defaultPort: number | null, method: string | null): Judged | Denial {
    const over = this.#meter.denial;
    const read = parseAuthority(utf8(text), defaultPort);
    const asked = isUnreadable(read) ? { host: text, port: 0, method } : { ...read, method };
    const deny = (denial: Denial): Denial => {
      this.ledger.denied(asked, denial.rule, denial.reason);
      return denial;
    };
    if (isUnreadable(read))
      return deny({ rule: "authority", reason: `the host cannot be judged: ${read.unreadable}` });
    if (over !== undefined) return deny(over);
    const { denied = [], secrets = [] } = this.#options;
    const verdict = judgeHost(read, { grants: this.#grants, denied, secrets });
    return isDenial(verdict) ? deny(verdict) : { authority: read, asked, allowance: verdict };
  }

  async #reached({ authority, asked, allowance }: Judged): Promise<Socket | Answered> {
    const { resolve = resolveOnHost, dial = dialDirectly } = this.#options;
    const found = await reachHost(authority, allowance, { resolve, dial, connectMs: this.#limits.connectMs });
    if (isDenial(found)) {
      this.ledger.denied(asked, found.rule, found.reason);
      return { status: 403, words: found.reason };
    }
    if (isUnreachable(found)) {
      this.ledger.allowed(asked).end("unreachable", found.unreachable);
      return { status: 502, words: found.unreachable };
    }
    found.on("error", () => undefined);
    return found;
  }

  async #tunnel(url: string, client: Socket, head: Buffer): Promise<void> {
    client.pause();
    const judged = this.#judged(url, null, null);
    if (isDenial(judged)) return refuse(client, 403, judged.reason);
    if (mustSeeInto(judged.allowance)) {
      const reason = `only some methods of ${judged.authority.host} are granted, which cannot be seen inside TLS`;
      this.ledger.denied(judged.asked, "method", reason);
      return refuse(client, 403, reason);
    }
    const server = await this.#reached(judged);
    if (isAnswered(server)) return refuse(client, server.status, server.words);
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    const came = await awaitHello(client, head, this.#limits.helloMs);
    const { host, literal } = judged.authority;
    const denial = came === null || isDenial(came) ? came : (judgeHello(came.hello, host, literal) ?? null);
    if (came === null || isDenial(came) || denial !== null) {
      server.destroy();
      if (denial === null) return void client.destroy();
      this.ledger.denied(judged.asked, denial.rule, denial.reason);
      return void client.end(ACCESS_DENIED, () => client.destroy());
    }
    const line = this.ledger.allowed(judged.asked);
    this.#meter.take("up", came.bytes.length, line);
    server.write(came.bytes);
    const why = await splice({ client, server }, this.#meter, line, this.#limits.idleMs);
    line.end(why?.rule, why?.reason);
  }

  async #plain(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const method = request.method ?? "";
    const match = /^http:\/\/([^/?#]*)(.*)$/is.exec(request.url ?? "");
    if (match === null) return this.#misdirected(request, response);
    const [, named = "", rest = ""] = match;
    const judged = this.#judged(named, 80, method);
    if (isDenial(judged)) return answerInWords(response, 403, judged.reason);
    const target = rest.startsWith("/") ? rest : `/${rest}`;
    const denial = judgePlain(request, judged, target);
    if (denial !== undefined) {
      this.ledger.denied(judged.asked, denial.rule, denial.reason);
      return answerInWords(response, 403, denial.reason);
    }
    const server = await this.#reached(judged);
    if (isAnswered(server)) return answerInWords(response, server.status, server.words);
    const line = this.ledger.allowed(judged.asked);
    const { authority } = judged;
    const ended = await forwardRequest({
      request,
      response,
      target,
      host: authority.port === 80 ? shown(authority).replace(/:80$/, "") : shown(authority),
      connection: { createConnection: () => server },
      meter: this.#meter,
      line,
      idleMs: this.#limits.idleMs,
    });
    server.destroy();
    line.end(ended?.rule, ended?.reason);
    if (ended !== null) answerInWords(response, ended.rule === "budget" ? 403 : 502, ended.reason);
  }

  #misdirected(request: IncomingMessage, response: ServerResponse): void {
    const reason = /^https:/i.test(request.url ?? "")
      ? "a request for https has to come through CONNECT"
      : "this is a proxy: a request names http://host/path, or comes through CONNECT";
    this.ledger.denied({ host: "", port: 0, method: request.method ?? "" }, "authority", reason);
    answerInWords(response, 403, reason);
  }
}

interface Judged {
  readonly authority: Authority;
  readonly asked: Asked;
  readonly allowance: Allowance;
}

/** What the client is told in place of a connection. */
interface Answered {
  readonly status: 403 | 502;
  readonly words: string;
}

const isAnswered = (found: Socket | Answered): found is Answered => "words" in found;

function judgePlain(
  request: IncomingMessage,
  { authority, allowance }: Judged,
  target: string,
): Denial | undefined {
  const hosts = valuesOf(request.rawHeaders, "host");
  const read = hosts.map((host) => parseAuthority(utf8(host), 80));
  if (hosts.length > 1 || !read.every((host) => !isUnreadable(host) && shown(host) === shown(authority)))
    return { rule: "host", reason: `the Host header is not the host that is asked for, ${authority.host}` };
  return judgeFraming(request) ?? judgeMethod(request, authority, allowance, target);
}

/** Of a host of which only some methods are granted, those that read carry nothing. */
function judgeMethod(
  request: IncomingMessage,
  { host }: Authority,
  { methods }: Allowance,
  target: string,
): Denial | undefined {
  const { method = "" } = request;
  const granted = isMethodAllowed(methods, method, target.replace(/\?.*$/s, ""));
  if (!granted)
    return { rule: "method", reason: `${method} is not granted for ${host}; ${methods?.join(", ")} are` };
  return methods !== null && /^(?:GET|HEAD|OPTIONS)$/.test(method) && hasBody(request)
    ? { rule: "method", reason: `a ${method} with a body is not granted for ${host}` }
    : undefined;
}

/** Bytes of a head, which node:http gives as Latin-1; what is no UTF-8 stays unreadable. */
function utf8(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text;
  return Buffer.from(text, "latin1").toString("utf8").replaceAll("\uFFFD", "\0");
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
