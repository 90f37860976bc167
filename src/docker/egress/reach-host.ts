import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { reasonOf } from "../../core/errors.ts";
import { ownAddresses } from "./address-class.ts";
import type { Authority } from "./authority.ts";
import { type Allowance, type Denial, isDenial, judgeAddresses } from "./judge-host.ts";
import {
  dialProxy,
  isUnreachable,
  proxyFor,
  type ProxyServer,
  tunnelThrough,
  type Unreachable,
  type Upstream,
} from "./upstream-proxy.ts";

/** All addresses of a name; rejects if there are none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** Begins a connection to an address; the socket reports the outcome. Half-open: the other side may still send. */
export type Dial = (address: string, port: number) => Socket;

export const resolveOnHost: Resolve = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

export const dialDirectly: Dial = (address, port) =>
  connect({ host: address, port, allowHalfOpen: true, noDelay: true });

export interface ReachOptions {
  readonly resolve: Resolve;
  readonly dial: Dial;
  readonly connectMs: number;
  /** The proxy through which the host reaches the network; null if there is none. */
  readonly upstream: Upstream | null;
  readonly roots: string | undefined;
}

export interface HostConnection {
  readonly socket: Socket;
  /** The proxy at the other end, which wants whole URLs; null if the other end is the host, or a tunnel to the host. */
  readonly proxy: ProxyServer | null;
}

/**
 * Connects to a granted host: its name is resolved once, and only an address that was judged is dialled. Through a
 * proxy of the host's network, only an address that was requested as such can be judged; that proxy resolves names
 * itself.
 */
export async function reachHost(
  authority: Authority,
  allowance: Allowance,
  kind: "https" | "http",
  by: ReachOptions,
): Promise<HostConnection | Denial | Unreachable> {
  const proxy = by.upstream === null ? null : proxyFor(by.upstream, authority, kind);
  if (proxy !== null) return reachThrough(proxy, authority, allowance, { kind, by });
  const addresses = await addressesOf(authority, allowance, by.resolve);
  if (isDenial(addresses) || isUnreachable(addresses)) return addresses;
  const socket = await dialFirst(authority, addresses, by);
  return isUnreachable(socket) ? socket : { socket, proxy: null };
}

async function reachThrough(
  proxy: ProxyServer,
  authority: Authority,
  allowance: Allowance,
  { kind, by }: { readonly kind: "https" | "http"; readonly by: ReachOptions },
): Promise<HostConnection | Denial | Unreachable> {
  if (authority.literal) {
    const judged = judgeAddresses(authority, [authority.host], allowance, ownAddresses());
    if (isDenial(judged)) return judged;
  }
  const socket = await (kind === "http" ? dialProxy(proxy, by) : tunnelThrough(proxy, authority, by));
  return isUnreachable(socket) ? socket : { socket, proxy: kind === "http" ? proxy : null };
}

async function addressesOf(
  authority: Authority,
  allowance: Allowance,
  resolve: Resolve,
): Promise<readonly string[] | Denial | Unreachable> {
  try {
    const addresses = authority.literal ? [authority.host] : await resolve(authority.host);
    return judgeAddresses(authority, addresses, allowance, ownAddresses());
  } catch (thrown) {
    return { unreachable: `${authority.host} has no address here: ${reasonOf(thrown)}` };
  }
}

/** Limits what a name with very many addresses may cost. */
const MOST_TRIED = 4;

async function dialFirst(
  authority: Authority,
  addresses: readonly string[],
  { dial, connectMs }: ReachOptions,
): Promise<Socket | Unreachable> {
  const failures: string[] = [];
  for (const address of addresses.slice(0, MOST_TRIED)) {
    const socket = dial(address, authority.port);
    try {
      if (socket.connecting) await once(socket, "connect", { signal: AbortSignal.timeout(connectMs) });
      return socket;
    } catch (thrown) {
      socket.on("error", () => undefined).destroy();
      failures.push(reasonOf(thrown));
    }
  }
  return {
    unreachable: `${authority.host} port ${authority.port} cannot be reached: ${failures.join("; ")}`,
  };
}

/** TLS to the host over an existing connection; rejects if the host cannot be verified or does not answer. */
export function verifiedTls(
  socket: Socket,
  host: string,
  { roots, connectMs }: Pick<ReachOptions, "roots" | "connectMs">,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const tls = connectTls({
    socket,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ["http/1.1"],
    rejectUnauthorized: true,
    ...(roots === undefined ? {} : { ca: roots }),
  });
  const timer = setTimeout(() => tls.destroy(new Error(`${host} does not answer by TLS`)), connectMs);
  tls.once("close", () => {
    clearTimeout(timer);
    reject(new Error(`${host} closed the connection before TLS was established`));
  });
  tls.once("error", (thrown) => reject(new Error(`${host} cannot be verified: ${reasonOf(thrown)}`)));
  tls.once("secureConnect", () => {
    clearTimeout(timer);
    resolve(tls);
  });
  return promise;
}
