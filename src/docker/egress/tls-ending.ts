import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { shown } from "./authority.ts";
import { type EgressGate, isAnswered, type Judged } from "./egress-gate.ts";
import {
  answerInWords,
  FLOODED,
  forwardRequest,
  isMalformed,
  LONGEST_HEAD,
  RequestQueue,
} from "./forward-request.ts";
import { isDenial } from "./judge-host.ts";
import { secretSwap } from "./secret-swap.ts";
import { verifiedTls } from "./reach-host.ts";
import type { SessionAuthority } from "./session-authority.ts";

/** A tunnel whose TLS ends here, and the connection to the host that its requests share. */
interface EndedTunnel {
  readonly judged: Judged;
  readonly agent: HostAgent;
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
      maxHeaderSize: LONGEST_HEAD,
      requireHostHeader: true,
      insecureHTTPParser: false,
      // A request that moves may take as long as it wants; the tunnel's own timer ends one that does not.
      requestTimeout: 0,
      keepAliveTimeout: 0,
    });
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

  /** `hello` is what the client has sent so far. */
  serve(client: Socket, hello: Buffer, judged: Judged): void {
    client.pause();
    client.unshift(hello);
    const tls = new TLSSocket(client, {
      isServer: true,
      secureContext: this.#authority.contextFor(judged.authority.host),
      ALPNProtocols: ["http/1.1"],
    });
    const agent = new HostAgent(this.#gate, judged);
    this.#tunnels.set(tls, { judged, agent });
    let isAgreed = false;
    tls.on("error", () => undefined).once("secure", () => (isAgreed = true));
    tls.once("close", () => {
      if (!isAgreed) this.#notAgreed(judged);
      agent.destroy();
      client.destroy();
    });
    tls.setTimeout(this.#gate.limits.idleMs, () => tls.destroy());
    this.#server.emit("connection", tls);
  }

  /** Most often the program did not know the session's authority. */
  #notAgreed({ asked }: Judged): void {
    const reason =
      "the program closed the connection before TLS was established: it may not trust this session's certificates";
    this.#gate.ledger.allowed(asked).end("client-tls", reason);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const tunnel = this.#tunnels.get(request.socket);
    if (tunnel === undefined) return void response.destroy();
    const method = request.method ?? "";
    const judged = this.#gate.judge(shown(tunnel.judged.authority), null, method);
    if (isDenial(judged)) return answerInWords(response, 403, judged.reason);
    const target = request.url ?? "";
    const denial = target.startsWith("/")
      ? this.#gate.judgeRequest(request, target, judged, 443)
      : this.#gate.deny(judged.asked, { rule: "authority", reason: "a request in a tunnel names a path" });
    if (denial !== undefined) return answerInWords(response, 403, denial.reason);
    await this.#passOn(request, response, judged, tunnel.agent);
  }

  async #passOn(
    request: IncomingMessage,
    response: ServerResponse,
    judged: Judged,
    agent: HostAgent,
  ): Promise<void> {
    const { authority, allowance, asked } = judged;
    const line = this.#gate.ledger.allowed(asked);
    const ended = await forwardRequest({
      request,
      response,
      target: request.url ?? "",
      host: authority.port === 443 ? shown(authority).replace(/:443$/, "") : shown(authority),
      connection: { agent },
      meter: this.#gate.meter,
      line,
      idleMs: this.#gate.limits.idleMs,
      ...(allowance.secrets.length === 0 ? {} : { rewriting: secretSwap(allowance.secrets) }),
    });
    line.end(ended?.rule, ended?.reason);
    if (ended !== null) answerInWords(response, ended.rule === "budget" ? 403 : agent.status, ended.reason);
  }
}

/** One verified connection to a host, kept between a tunnel's requests; a new connection is judged like the first. */
class HostAgent extends Agent {
  readonly #gate: EgressGate;
  readonly #judged: Judged;
  /** The status of the answer to a request whose connection failed. */
  status: 403 | 502 = 502;

  constructor(gate: EgressGate, judged: Judged) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#gate = gate;
    this.#judged = judged;
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
    if (isAnswered(reached)) {
      this.status = reached.status;
      return reject(new Error(reached.words));
    }
    const { roots, limits } = this.#gate;
    const { host } = this.#judged.authority;
    resolve(await verifiedTls(reached.socket, host, { roots, connectMs: limits.connectMs }));
  }
}
