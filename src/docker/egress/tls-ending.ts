import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { bytesOf, isDenial, mayBePrivate, authorityText } from "./judge-host.ts";
import { type EgressGate, isErrorReply, type AllowedRequest } from "./egress-gate.ts";
import {
  answerInWords,
  FLOODED,
  forwardRequest,
  isMalformed,
  MAX_HEAD_LENGTH,
  RequestQueue,
} from "./forward-request.ts";
import { verifiedTls } from "./reach-host.ts";
import { secretSwap } from "./secret-swap.ts";

/** A tunnel whose TLS ends here, and the connections to the host that its requests share. */
interface EndedTunnel {
  readonly judged: AllowedRequest;
  /** For requests that may go to a private address, and for the others. */
  readonly agents: { readonly inside: HostAgent; readonly outside: HostAgent };
  isIdle: boolean;
}

/**
 * Tunnels to hosts for which only some methods are granted, or to which secrets are bound: TLS ends here, each request
 * is judged separately and goes to the real host over the proxy's own TLS connection, which verifies the host.
 */
export class TlsEnding {
  readonly #gate: EgressGate;
  readonly #authority: SessionAuthority;
  readonly #server: Server;
  readonly #turns: RequestQueue;
  readonly #tunnels = new WeakMap<Socket, EndedTunnel>();

  constructor(gate: EgressGate, authority: SessionAuthority) {
    this.#gate = gate;
    this.#authority = authority;
    this.#turns = new RequestQueue(() => gate.denyUnread(null, "connections", FLOODED));
    this.#server = createServer({
      maxHeaderSize: MAX_HEAD_LENGTH,
      requireHostHeader: true,
      insecureHTTPParser: false,
      headersTimeout: gate.limits.idleMs,
      // A request that moves may take as long as it wants; the tunnel's own timer ends one that does not.
      requestTimeout: 0,
      keepAliveTimeout: 0,
      connectionsCheckingInterval: 5000,
    });
    // node:http checks the times of heads only in a server that listens, and this one is given its connections.
    this.#server.emit("listening");
    this.#server.on("connect", (request, socket) => this.#nested(request, socket));
    this.#server.on(
      "request",
      (request, response) =>
        void this.#turns.take(response, () => this.#serve(request, response)).catch(() => response.destroy()),
    );
    this.#server.on("clientError", (thrown, socket) => {
      if (isMalformed(thrown)) gate.denyUnread(null, "malformed", "a request that is malformed or ambiguous");
      socket.destroy();
    });
  }

  close(): void {
    this.#server.close();
  }

  /** `hello` is what the client has sent so far. */
  serve(client: Socket, hello: Buffer, judged: AllowedRequest): void {
    client.pause();
    client.unshift(hello);
    const tls = new TLSSocket(client, {
      isServer: true,
      secureContext: this.#authority.contextFor(judged.authority.host),
      ALPNProtocols: ["http/1.1"],
    });
    const agents = {
      inside: new HostAgent(this.#gate, judged, true),
      outside: new HostAgent(this.#gate, judged, false),
    };
    const tunnel: EndedTunnel = { judged, agents, isIdle: false };
    this.#tunnels.set(tls, tunnel);
    let isAgreed = false;
    tls.on("error", () => undefined).once("secure", () => (isAgreed = true));
    tls.once("close", () => {
      if (!isAgreed) this.#notAgreed(judged);
      agents.inside.destroy();
      agents.outside.destroy();
      client.destroy();
    });
    tls.setTimeout(this.#gate.limits.idleMs, () => {
      tunnel.isIdle = true;
      tls.destroy();
    });
    this.#server.emit("connection", tls);
  }

  /** Most often the program did not know the session's authority. */
  #notAgreed({ requestedHost }: AllowedRequest): void {
    const reason =
      "the program closed the connection before TLS was established: it may not trust this session's certificates";
    this.#gate.ledger.allowed(requestedHost).end("client-tls", reason);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const tunnel = this.#tunnels.get(request.socket);
    if (tunnel === undefined) return void response.destroy();
    const method = request.method ?? "";
    const judged = this.#gate.judge(authorityText(tunnel.judged.authority), null, method);
    if (isDenial(judged)) return answerInWords(response, 403, judged.reason);
    this.#gate.hold(request.socket, judged);
    const target = request.url ?? "";
    const denial = target.startsWith("/")
      ? this.#gate.judgeRequest(request, target, judged, 443)
      : this.#gate.deny(judged.requestedHost, PATHLESS);
    if (denial !== undefined) return answerInWords(response, 403, denial.reason);
    await this.#passOn(request, response, judged, tunnel);
  }

  /** A tunnel in the tunnel. */
  #nested(request: IncomingMessage, socket: Duplex): void {
    const tunnel = this.#tunnels.get(request.socket);
    if (tunnel !== undefined)
      this.#gate.deny({ ...tunnel.judged.requestedHost, method: request.method ?? "" }, PATHLESS);
    socket.destroy();
  }

  async #passOn(
    request: IncomingMessage,
    response: ServerResponse,
    judged: AllowedRequest,
    tunnel: EndedTunnel,
  ): Promise<void> {
    const { authority, allowance, requestedHost } = judged;
    const [method, path] = [request.method ?? "", (request.url ?? "").replace(/\?.*$/s, "")];
    const agent = tunnel.agents[mayBePrivate(allowance, method, path) ? "inside" : "outside"];
    const line = this.#gate.ledger.allowed(requestedHost);
    const ended = await forwardRequest({
      request,
      response,
      target: request.url ?? "",
      host: authority.port === 443 ? authorityText(authority).replace(/:443$/, "") : authorityText(authority),
      connection: { agent },
      meter: this.#gate.meter,
      line,
      idleMs: this.#gate.limits.idleMs,
      ...(allowance.secrets.length === 0 ? {} : { rewriting: secretSwap(allowance.secrets) }),
    });
    const idleS = this.#gate.limits.idleMs / 1000;
    if (tunnel.isIdle) return line.end("idle", `nothing was sent or received for ${idleS} s`);
    line.end(ended?.rule, ended?.reason);
    if (ended !== null) answerInWords(response, ended.rule === "budget" ? 403 : agent.status, ended.reason);
  }
}

const PATHLESS = { rule: "authority", reason: "a request in a tunnel names a path" };

/** One verified connection to a host, kept between a tunnel's requests; a new connection is judged like the first. */
class HostAgent extends Agent {
  readonly #gate: EgressGate;
  readonly #judged: AllowedRequest;
  /** The status of the answer to a request whose connection failed. */
  status: 403 | 502 = 502;

  constructor(gate: EgressGate, judged: AllowedRequest, isPrivate: boolean) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#gate = gate;
    this.#judged = { ...judged, allowance: { ...judged.allowance, private: isPrivate } };
  }

  override createConnection(_: object, made?: (failure: Error | null, stream: Duplex) => void): undefined {
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
    this.#secured(resolve, reject).catch(reject);
    promise.then(
      (stream) => made?.(null, stream),
      (thrown: unknown) => (made as ((failure: unknown) => void) | undefined)?.(thrown),
    );
  }

  async #secured(resolve: (stream: Duplex) => void, reject: (thrown: Error) => void): Promise<void> {
    this.status = 502;
    const reached = await this.#gate.reach(this.#judged, "https");
    if (isErrorReply(reached)) {
      this.status = reached.status;
      return reject(new Error(reached.words));
    }
    const { roots, limits } = this.#gate;
    const { host } = this.#judged.authority;
    resolve(await verifiedTls(reached.socket, host, { roots, connectMs: limits.connectMs }));
  }
}

/**
 * Certificates for the hosts of one session, signed by an authority that is made for it: its key exists only in the
 * memory of this process and ends with it. Only the box is told to trust the authority.
 */
export interface SessionAuthority {
  /** The authority's own certificate. */
  readonly pem: string;
  /** For a server that acts as this host; kept, because every handshake asks for it. */
  readonly contextFor: (host: string) => SecureContext;
}

const DAY_MS = 86_400_000;
/** Longer than any run; short enough for every verifier. */
const LIFETIME_MS = 30 * DAY_MS;
const MAX_KEPT = 1000;

export function makeSessionAuthority(now = Date.now()): SessionAuthority {
  const [authority, leaf] = [keyPair(), keyPair()];
  const name = `harness session ${randomBytes(4).toString("hex")}`;
  const issuer: Issuer = { name, key: authority.privateKey, id: keyId(authority.publicKey), now };
  const pem = certificate(issuer, authority.publicKey, name, AUTHORITY);
  const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" });
  const kept = new Map<string, SecureContext>();
  return {
    pem,
    contextFor: (host) => {
      const known = kept.get(host);
      if (known !== undefined) return known;
      if (kept.size >= MAX_KEPT) kept.clear();
      const cert = certificate(issuer, leaf.publicKey, "a host behind the harness proxy", leafFor(host));
      const context = createSecureContext({ key, cert, minVersion: "TLSv1.2" });
      kept.set(host, context);
      return context;
    },
  };
}

const keyPair = (): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

interface Issuer {
  readonly name: string;
  readonly key: KeyObject;
  readonly id: Buffer;
  readonly now: number;
}

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
} as const;

function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x1_00 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const sequence = (...content: readonly Buffer[]): Buffer => der(TAG.sequence, ...content);

/** For identifiers that begin with 0, 1 or 2 and have no number above 2 ** 21. */
function oid(text: string): Buffer {
  const [first = 0, second = 0, ...others] = text.split(".").map(Number);
  const bytes = others.flatMap((number) => [
    ...(number >= 2 ** 14 ? [0x80 | (number >> 14)] : []),
    ...(number >= 2 ** 7 ? [0x80 | ((number >> 7) & 0x7f)] : []),
    number & 0x7f,
  ]);
  return der(TAG.oid, Buffer.from([first * 40 + second, ...bytes]));
}

/** `unused`: how many bits at the end of the last byte do not count. */
const bits = (bytes: Buffer, unused = 0): Buffer => der(TAG.bits, Buffer.from([unused]), bytes);

const commonName = (name: string): Buffer =>
  sequence(der(TAG.set, sequence(oid("2.5.4.3"), der(TAG.utf8, Buffer.from(name)))));

/** Years have two digits: good until 2049. */
const time = (ms: number): Buffer =>
  der(
    TAG.utcTime,
    Buffer.from(
      `${new Date(ms)
        .toISOString()
        .replaceAll(/[-:T]|\..*/g, "")
        .slice(2)}Z`,
    ),
  );

const TRUE = der(TAG.boolean, Buffer.from([0xff]));

const extension = (id: string, value: Buffer, critical = false): Buffer =>
  sequence(oid(id), ...(critical ? [TRUE] : []), der(TAG.octets, value));

/** The authority may sign for hosts, but not for another authority. */
const AUTHORITY: readonly Buffer[] = [
  extension("2.5.29.19", sequence(TRUE, der(TAG.integer, Buffer.from([0]))), true),
  extension("2.5.29.15", bits(Buffer.from([0x04]), 2), true),
];

const leafFor = (host: string): readonly Buffer[] => [
  extension("2.5.29.19", sequence(), true),
  extension("2.5.29.15", bits(Buffer.from([0x80]), 7), true),
  extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1"))),
  extension(
    "2.5.29.17",
    sequence(isIP(host) === 0 ? der(0x82, Buffer.from(host)) : der(0x87, Buffer.from(bytesOf(host)))),
  ),
];

const publicBytes = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });
const keyId = (key: KeyObject): Buffer =>
  createHash("sha256").update(publicBytes(key)).digest().subarray(0, 20);

const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));

/** An X.509 certificate of version 3, as RFC 5280 specifies it. */
function certificate(issuer: Issuer, key: KeyObject, subject: string, own: readonly Buffer[]): string {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const extensions = [
    ...own,
    extension("2.5.29.14", der(TAG.octets, keyId(key))),
    extension("2.5.29.35", sequence(der(0x80, issuer.id))),
  ];
  const signed = sequence(
    der(0xa0, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, serial),
    ECDSA_SHA256,
    commonName(issuer.name),
    sequence(time(issuer.now - DAY_MS), time(issuer.now + LIFETIME_MS)),
    commonName(subject),
    publicBytes(key),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(signed, ECDSA_SHA256, bits(sign("sha256", signed, issuer.key)));
  const lines = whole.toString("base64").replaceAll(/.{1,64}/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`;
}
