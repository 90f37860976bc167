import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { reasonOf } from "../../core/errors.ts";
import { ownAddresses } from "./address-class.ts";
import type { Authority } from "./authority.ts";
import { type Allowance, type Denial, isDenial, judgeAddresses } from "./judge-host.ts";

/** All addresses of a name; rejects where it has none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** Begins a connection to an address; the socket says how that ended. It is half-open: the other side may still send. */
export type Dial = (address: string, port: number) => Socket;

/** The host could not be reached, which is no denial. */
export interface Unreachable {
  readonly unreachable: string;
}

export const isUnreachable = (found: object): found is Unreachable => "unreachable" in found;

export const resolveOnHost: Resolve = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

export const dialDirectly: Dial = (address, port) =>
  connect({ host: address, port, allowHalfOpen: true, noDelay: true });

/** What a name with very many addresses may cost. */
const MOST_TRIED = 4;

/** The addresses of a granted host that may be dialled, found out once. */
async function addressesOf(
  asked: Authority,
  allowance: Allowance,
  resolve: Resolve,
): Promise<readonly string[] | Denial | Unreachable> {
  try {
    const addresses = asked.literal ? [asked.host] : await resolve(asked.host);
    return judgeAddresses(asked, addresses, allowance, ownAddresses());
  } catch (thrown) {
    return { unreachable: `${asked.host} has no address here: ${reasonOf(thrown)}` };
  }
}

/** A connection to the first of these addresses that takes one: to the address that was judged, never to the name. */
async function dialFirst(
  asked: Authority,
  addresses: readonly string[],
  dial: Dial,
  connectMs: number,
): Promise<Socket | Unreachable> {
  const failures: string[] = [];
  for (const address of addresses.slice(0, MOST_TRIED)) {
    const socket = dial(address, asked.port);
    try {
      if (socket.connecting) await once(socket, "connect", { signal: AbortSignal.timeout(connectMs) });
      return socket;
    } catch (thrown) {
      socket.on("error", () => undefined).destroy();
      failures.push(reasonOf(thrown));
    }
  }
  return { unreachable: `${asked.host} port ${asked.port} cannot be reached: ${failures.join("; ")}` };
}

/** Both steps: the host is asked for once, and what it resolved to is what is dialled. */
export async function reachHost(
  asked: Authority,
  allowance: Allowance,
  by: { readonly resolve: Resolve; readonly dial: Dial; readonly connectMs: number },
): Promise<Socket | Denial | Unreachable> {
  const addresses = await addressesOf(asked, allowance, by.resolve);
  if (isDenial(addresses) || isUnreachable(addresses)) return addresses;
  return dialFirst(asked, addresses, by.dial, by.connectMs);
}
