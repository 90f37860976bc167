import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import type { Connection, Grant, SecretBinding } from "../../core/network.ts";
import {
  type Allowance,
  asGranted,
  type Authority,
  type EgressDenial,
  isDenial,
  isMethodAllowed,
  isUnreadable,
  judgeHost,
  mayBePrivate,
  parseAuthority,
  authorityText,
} from "./judge-host.ts";
import { type RequestedHost, EgressLedger } from "./egress-ledger.ts";
import { hasBody, judgeFraming, valuesOf } from "./forward-request.ts";
import {
  type HostConnection,
  isUnreachable,
  leadsInside,
  reachHost,
  type ReachOptions,
} from "./reach-host.ts";
import { ByteMeter } from "./tunnel.ts";

/** The most that a run may use of the network, and how long it may keep what it does not use. */
export interface EgressLimits {
  /** Connections of the box at the same time; more are refused. */
  readonly connections: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Time without any traffic. */
  readonly idleMs: number;
  readonly connectMs: number;
  readonly helloMs: number;
  /** Time for the head of a request. */
  readonly headMs: number;
}

export const EGRESS_LIMITS: EgressLimits = {
  connections: 1024,
  bytesUp: 50 * 2 ** 20,
  bytesDown: 2 * 2 ** 30,
  idleMs: 120_000,
  connectMs: 15_000,
  helloMs: 10_000,
  headMs: 10_000,
};

export interface GateOptions {
  readonly grants: readonly Grant[];
  readonly denied: readonly string[];
  readonly secrets: readonly SecretBinding[];
  readonly limits: EgressLimits;
  readonly reaching: ReachOptions;
  readonly tell: (connection: Connection) => void;
}

/** A request that is allowed. */
export interface AllowedRequest {
  readonly authority: Authority;
  readonly requestedHost: RequestedHost;
  readonly allowance: Allowance;
  /** How many grants had been withdrawn when it was judged. */
  readonly withdrawn: number;
}

/** What the client is told instead of getting a connection. */
export interface ErrorReply {
  readonly status: 403 | 502;
  readonly words: string;
}

export const isErrorReply = (found: object): found is ErrorReply => "words" in found;

/** What all connections of a run share: rules, ledger and budget. Every denial is in the ledger when it is returned. */
export class EgressGate {
  readonly ledger: EgressLedger;
  readonly meter: ByteMeter;
  readonly limits: EgressLimits;
  readonly #options: GateOptions;
  readonly #grants = new Set<readonly Grant[]>();
  readonly #open = new Map<Duplex, AllowedRequest>();
  #withdrawn = 0;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#grants.add(options.grants);
    this.limits = options.limits;
    this.meter = new ByteMeter({ up: options.limits.bytesUp, down: options.limits.bytesDown });
    this.ledger = new EgressLedger(options.tell);
  }

  get roots(): string | undefined {
    return this.#options.reaching.roots;
  }

  /** Adds grants until the returned function is called, which also ends connections that are no longer allowed. */
  grant(more: readonly Grant[]): () => void {
    const added = [...more];
    this.#grants.add(added);
    return () => {
      if (!this.#grants.delete(added)) return;
      this.#withdrawn += 1;
      for (const [stream, judged] of this.#open) if (!this.#stands(judged)) stream.destroy();
    };
  }

  /** Remembers this judgement of an open stream until the stream closes. Ends the stream if it no longer stands. */
  hold(stream: Duplex, judged: AllowedRequest): void {
    if (stream.destroyed) return;
    if (judged.withdrawn !== this.#withdrawn && !this.#stands(judged)) return void stream.destroy();
    if (!this.#open.has(stream)) stream.once("close", () => this.#open.delete(stream));
    this.#open.set(stream, judged);
  }

  #stands({ authority, allowance }: AllowedRequest): boolean {
    return isDeepStrictEqual(this.#verdict(authority), allowance);
  }

  #verdict(authority: Authority): Allowance | EgressDenial {
    const { denied, secrets } = this.#options;
    return judgeHost(authority, { grants: [...this.#grants].flat(), denied, secrets });
  }

  deny(requestedHost: RequestedHost, denial: EgressDenial): EgressDenial {
    this.ledger.denied(requestedHost, denial.rule, denial.reason);
    return denial;
  }

  denyUnread(method: string | null, rule: string, reason: string): EgressDenial {
    return this.deny({ host: "", port: 0, method }, { rule, reason });
  }

  /** Judges the host as a request names it, as far as no address is needed. */
  judge(text: string, defaultPort: number | null, method: string | null): AllowedRequest | EgressDenial {
    const read = parseAuthority(utf8(text), defaultPort);
    if (isUnreadable(read)) {
      const reason = `the host cannot be judged: ${read.unreadable}`;
      return this.deny({ host: text, port: 0, method }, { rule: "authority", reason });
    }
    const requestedHost = { host: read.host, port: read.port, method };
    const overBudget = this.meter.denial;
    if (overBudget !== undefined) return this.deny(requestedHost, overBudget);
    const verdict = this.#verdict(read);
    return isDenial(verdict)
      ? this.deny(requestedHost, verdict)
      : { authority: read, requestedHost, allowance: verdict, withdrawn: this.#withdrawn };
  }

  /** Judges a request by its head: the host must be `judged.authority`, and the method must be granted there. */
  judgeRequest(
    request: IncomingMessage,
    target: string,
    { authority, allowance, requestedHost }: AllowedRequest,
    port: number,
  ): EgressDenial | undefined {
    const hosts = valuesOf(request.rawHeaders, "host");
    const read = hosts.map((host) => parseAuthority(utf8(host), port));
    const isOther =
      hosts.length > 1 ||
      !read.every((host) => !isUnreadable(host) && authorityText(host) === authorityText(authority));
    const denial = isOther
      ? { rule: "host", reason: `the Host header does not name the requested host, ${authority.host}` }
      : (judgeFraming(request) ??
        judgeMethod(
          { method: request.method ?? "", carries: hasBody(request), target },
          authority,
          allowance,
        ));
    return denial === undefined ? undefined : this.deny(requestedHost, denial);
  }

  /** Judges a request of the harness itself: its method must be granted. */
  judgeOwn(
    asking: RequestFacts,
    { authority, allowance, requestedHost }: AllowedRequest,
  ): EgressDenial | undefined {
    const denial = judgeMethod(asking, authority, allowance);
    return denial === undefined ? undefined : this.deny(requestedHost, denial);
  }

  /** Whether only requests that are seen may use this tunnel, because its host is at a private address. */
  async isForRequests({ authority, allowance }: AllowedRequest): Promise<boolean> {
    const { privateMethods } = allowance;
    if (privateMethods === null || privateMethods.length === 0) return false;
    return leadsInside(authority, allowance, this.#options.reaching);
  }

  /** `asking`: the request that is sent; left out for a tunnel that is passed through. */
  async reach(
    { authority, requestedHost, allowance }: AllowedRequest,
    kind: "https" | "http",
    asking?: Pick<RequestFacts, "method" | "target">,
  ): Promise<HostConnection | ErrorReply> {
    const own =
      asking === undefined
        ? allowance.private
        : mayBePrivate(allowance, asking.method, pathOf(asking.target));
    const found = await reachHost(authority, { ...allowance, private: own }, kind, this.#options.reaching);
    if (isDenial(found)) return { status: 403, words: this.deny(requestedHost, found).reason };
    if (isUnreachable(found)) {
      this.ledger.allowed(requestedHost).end("unreachable", found.unreachable);
      return { status: 502, words: found.unreachable };
    }
    found.socket.on("error", () => undefined);
    return found;
  }
}

const pathOf = (target: string): string => target.replace(/\?.*$/s, "");

interface RequestFacts {
  readonly method: string;
  readonly carries: boolean;
  /** Path and query. */
  readonly target: string;
}

/** On a host with only some methods granted, requests that read must not carry a body. */
function judgeMethod(
  { method, carries, target }: RequestFacts,
  authority: Authority,
  { methods }: Allowance,
): EgressDenial | undefined {
  const { host } = authority;
  if (!isMethodAllowed(methods, method, pathOf(target)))
    return {
      rule: "method",
      reason: `${method} is not granted for ${host}, only ${methods?.join(", ")}; --allow-domain ${asGranted(authority)}:${method} would grant it`,
    };
  return methods !== null && /^(?:GET|HEAD|OPTIONS)$/.test(method) && carries
    ? {
        rule: "method",
        reason: `a ${method} with a body is not granted for ${host}, where only some methods are`,
      }
    : undefined;
}

/** node:http gives the bytes of a head as Latin-1; bytes that are not UTF-8 stay unreadable. */
function utf8(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text;
  return Buffer.from(text, "latin1").toString("utf8").replaceAll("\uFFFD", "\0");
}
