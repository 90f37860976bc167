import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { BlockList, connect, isIP, isIPv6, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import {
  type Allowance,
  type Authority,
  type EgressDenial,
  isDenial,
  isUnreadable,
  judgeAddresses,
  ownAddresses,
  parseAuthority,
  authorityText,
} from "./judge-host.ts";
import { afterWaiting, waitingTimeout } from "../../platform/waits.ts";
import { percentDecoded } from "../../core/raw-data.ts";

/** Connections to granted hosts: direct, or through the proxy of the host's network. */

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
  /** PEM certificates that a host, or a proxy behind TLS, is verified against; undefined: Node's own. */
  readonly roots: string | undefined;
}

type Dialing = Pick<ReachOptions, "connectMs" | "roots">;

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
): Promise<HostConnection | EgressDenial | Unreachable> {
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
): Promise<HostConnection | EgressDenial | Unreachable> {
  if (authority.literal) {
    const judged = judgeAddresses(authority, [authority.host], allowance, ownAddresses());
    if (isDenial(judged)) return judged;
  }
  const socket = await (kind === "http" ? dialProxy(proxy, by) : tunnelThrough(proxy, authority, by));
  return isUnreachable(socket) ? socket : { socket, proxy: kind === "http" ? proxy : null };
}

/** Whether a tunnel to the host is denied only because its addresses are private. */
export async function leadsInside(
  authority: Authority,
  allowance: Allowance,
  by: ReachOptions,
): Promise<boolean> {
  if (by.upstream !== null && proxyFor(by.upstream, authority, "https") !== null) return false;
  const addresses = await addressesOf(authority, allowance, by.resolve);
  return isDenial(addresses) && addresses.rule === "private-address";
}

async function addressesOf(
  authority: Authority,
  allowance: Allowance,
  resolve: Resolve,
): Promise<readonly string[] | EgressDenial | Unreachable> {
  try {
    const addresses = authority.literal ? [authority.host] : await resolve(authority.host);
    return judgeAddresses(authority, addresses, allowance, ownAddresses());
  } catch (thrown) {
    return { unreachable: `${authority.host} has no address here: ${reasonOf(thrown)}` };
  }
}

/** Limits what a name with very many addresses may cost. */
const MAX_TRIED = 4;

async function dialFirst(
  authority: Authority,
  addresses: readonly string[],
  { dial, connectMs }: ReachOptions,
): Promise<Socket | Unreachable> {
  const failures: string[] = [];
  for (const address of addresses.slice(0, MAX_TRIED)) {
    const socket = dial(address, authority.port);
    try {
      if (socket.connecting) await once(socket, "connect", { signal: waitingTimeout(connectMs) });
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
export function verifiedTls(socket: Socket, host: string, { roots, connectMs }: Dialing): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const tls = connectTls({
    socket,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ["http/1.1"],
    rejectUnauthorized: true,
    ...(roots === undefined ? {} : { ca: roots }),
  });
  const stopWaiting = afterWaiting(connectMs, () => tls.destroy(new Error(`${host} does not answer by TLS`)));
  tls.once("close", () => {
    stopWaiting();
    reject(new Error(`${host} closed the connection before TLS was established`));
  });
  tls.once("error", (thrown) => reject(new Error(`${host} cannot be verified: ${reasonOf(thrown)}`)));
  tls.once("secureConnect", () => {
    stopWaiting();
    resolve(tls);
  });
  return promise;
}

/** The host could not be reached, which is not a denial. */
interface Unreachable {
  readonly unreachable: string;
}

export const isUnreachable = (found: object): found is Unreachable => "unreachable" in found;

/** A proxy of the host's network. Its credentials go only to the proxy: neither the box nor the ledger sees them. */
interface ProxyServer {
  readonly host: string;
  readonly port: number;
  /** TLS to the proxy itself. */
  readonly secure: boolean;
  /** The value of `Proxy-Authorization`. */
  readonly authorization: string | null;
}

/** The proxy settings in the host's environment. */
interface Upstream {
  /** For tunnels. */
  readonly https: ProxyServer | null;
  /** For plain requests. */
  readonly http: ProxyServer | null;
  /** The entries of `NO_PROXY`. */
  readonly direct: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Null if the host needs no proxy. Lower-case names take precedence, as in curl and git. */
export function upstreamFrom(env: Env): Upstream | null {
  const named = (name: string): ProxyServer | null => {
    for (const each of [name.toLowerCase(), name, "all_proxy", "ALL_PROXY"])
      if (env[each] !== undefined && env[each] !== "") return proxyServer(each, env[each]);
    return null;
  };
  const [https, http] = [named("HTTPS_PROXY"), named("HTTP_PROXY")];
  if (https === null && http === null) return null;
  const direct = env["no_proxy"] || env["NO_PROXY"] || "";
  return {
    https,
    http,
    direct: direct
      .toLowerCase()
      .split(/[\s,]+/)
      .filter((each) => each !== ""),
  };
}

/** The message names the variable, never its value, which may hold a password. */
function proxyServer(variable: string, text: string): ProxyServer {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  const secure = url?.protocol === "https:";
  if (url === null || url.hostname === "" || (!secure && url.protocol !== "http:"))
    throw new HarnessError(
      EXIT.usage,
      `${variable} does not name an http or https proxy${url === null ? "" : ` (${url.protocol})`}`,
      `${variable}=http://proxy.example.org:3128`,
    );
  const { username, password } = url;
  const credentials = `${unescaped(username)}:${unescaped(password)}`;
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    secure,
    authorization: credentials === ":" ? null : `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

const unescaped = (text: string): string => percentDecoded(text) ?? text;

/** The proxy for a connection; this host itself is never reached through a proxy. */
export function proxyFor(
  upstream: Upstream,
  authority: Authority,
  kind: "https" | "http",
): ProxyServer | null {
  const isHere =
    authority.host === "localhost" ||
    authority.host === "::1" ||
    (authority.literal && authority.host.startsWith("127."));
  return isHere || upstream.direct.some((entry) => isDirect(entry, authority)) ? null : upstream[kind];
}

/**
 * An entry is `*`, a name with all below it, `.name` or `*.name` for what is below it, an address, or a range; each may
 * have a port.
 */
function isDirect(entry: string, authority: Authority): boolean {
  if (entry === "*") return true;
  if (entry.includes("/")) return authority.literal && isInRange(entry, authority.host);
  const below = /^\*?\./.test(entry);
  const bare = entry.replace(/^\*?\./, "");
  const read = parseAuthority(isIPv6(bare) ? `[${bare}]` : bare, authority.port);
  if (isUnreadable(read) || read.port !== authority.port) return false;
  if (read.literal || authority.literal) return read.host === authority.host;
  return (!below && read.host === authority.host) || authority.host.endsWith(`.${read.host}`);
}

function isInRange(entry: string, address: string): boolean {
  const [first = "", bits = ""] = entry.split("/");
  const [family, size] = [isIP(first), Number(bits)];
  if (family === 0 || family !== isIP(address) || !/^\d{1,3}$/.test(bits) || size > (family === 4 ? 32 : 128))
    return false;
  const list = new BlockList();
  list.addSubnet(first, size, family === 4 ? "ipv4" : "ipv6");
  return list.check(address, family === 4 ? "ipv4" : "ipv6");
}

async function dialProxy(proxy: ProxyServer, { connectMs, roots }: Dialing): Promise<Socket | Unreachable> {
  const { host, port } = proxy;
  const socket = proxy.secure
    ? connectTls({
        host,
        port,
        ...(isIP(host) === 0 ? { servername: host } : {}),
        ...(roots === undefined ? {} : { ca: roots }),
      })
    : dialDirectly(host, port);
  try {
    await once(socket, proxy.secure ? "secureConnect" : "connect", {
      signal: waitingTimeout(connectMs),
    });
    return socket;
  } catch (thrown) {
    socket.on("error", () => undefined).destroy();
    return { unreachable: `the host's proxy cannot be reached: ${reasonOf(thrown)}` };
  }
}

/** The most bytes that a proxy may send before its tunnel begins. */
const MAX_ANSWER_LENGTH = 16 * 1024;

/** A tunnel through the proxy. The proxy resolves the name itself: nobody here can judge the address. */
async function tunnelThrough(
  proxy: ProxyServer,
  authority: Authority,
  dialing: Dialing,
): Promise<Socket | Unreachable> {
  const socket = await dialProxy(proxy, dialing);
  if (isUnreachable(socket)) return socket;
  const authorization = proxy.authorization === null ? "" : `Proxy-Authorization: ${proxy.authorization}\r\n`;
  socket.write(
    `CONNECT ${authorityText(authority)} HTTP/1.1\r\nHost: ${authorityText(authority)}\r\n${authorization}\r\n`,
  );
  try {
    const status = await answeredStatus(socket, dialing.connectMs);
    if (status === 200) return socket;
    socket.destroy();
    return {
      unreachable: `the host's proxy did not open a tunnel to ${authority.host}: it answered ${status}`,
    };
  } catch (thrown) {
    socket.on("error", () => undefined).destroy();
    return {
      unreachable: `the host's proxy did not open a tunnel to ${authority.host}: ${reasonOf(thrown)}`,
    };
  }
}

/** Reads the head of the answer; bytes after it stay to be read. */
async function answeredStatus(socket: Socket, withinMs: number): Promise<number> {
  const signal = waitingTimeout(withinMs);
  let bytes = Buffer.alloc(0);
  for (;;) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) {
      if (socket.readableEnded || socket.destroyed) throw new Error("it closed the connection");
      await Promise.race([once(socket, "readable", { signal }), once(socket, "close", { signal })]);
      if (socket.readableLength === 0 && (socket.readableEnded || socket.destroyed))
        throw new Error("it closed the connection");
      continue;
    }
    bytes = Buffer.concat([bytes, chunk]);
    const end = bytes.indexOf("\r\n\r\n");
    if (end === -1 && bytes.length < MAX_ANSWER_LENGTH) continue;
    if (end === -1) throw new Error("its answer is too long");
    if (bytes.length > end + 4) socket.unshift(bytes.subarray(end + 4));
    socket.removeAllListeners("readable");
    return Number(/^HTTP\/1\.[01] (\d{3})\b/.exec(bytes.toString("latin1", 0, end))?.[1] ?? 0);
  }
}
