import { connect, createServer, type Server, type Socket } from "node:net";
import { API_PORT } from "./cluster-places.ts";

/**
 * The only way between this machine's loopback and a cluster's network: it runs in the cluster's network namespace and
 * gets the listening socket from the keeper outside. It also simulates network failures of connections.
 */

/** `open`; `refused`: as if nothing listened; `stalled`: connections are accepted but nothing passes. */
export type GateState = "open" | "refused" | "stalled";

export interface GateOrder {
  readonly state?: GateState;
  /** The next connection that sends this many bytes is cut right after that. */
  readonly cutAfter?: number;
  /** Listen on a port of this address (0: any); a process outside accepts its connections. */
  readonly listen?: { readonly host: string; readonly port: number };
}

const now: { state: GateState; cutAfter: number } = { state: "open", cutAfter: Infinity };
const pairs = new Set<readonly [outer: Socket, inner: Socket]>();

function passed(outer: Socket): void {
  outer.on("error", () => undefined);
  if (now.state === "refused") return void outer.resetAndDestroy();
  const inner = connect(API_PORT, "127.0.0.1");
  const pair = [outer, inner] as const;
  pairs.add(pair);
  const end = (): void => {
    pairs.delete(pair);
    outer.destroy();
    inner.destroy();
  };
  for (const socket of pair) {
    socket.setNoDelay(true);
    socket.on("error", end);
    socket.on("close", end);
  }
  let sent = 0;
  outer.on("data", (chunk: Buffer) => {
    sent += chunk.length;
    if (sent <= now.cutAfter) return;
    now.cutAfter = Infinity;
    outer.resetAndDestroy();
    inner.destroy();
  });
  outer.pipe(inner);
  inner.pipe(outer);
  if (now.state === "stalled") stall(pair);
}

/** Keeps open connections, but passes nothing more in either direction. */
function stall(pair: readonly [Socket, Socket]): void {
  for (const socket of pair) {
    socket.unpipe();
    socket.pause();
  }
}

function flow([outer, inner]: readonly [Socket, Socket]): void {
  outer.pipe(inner);
  inner.pipe(outer);
}

function enter(state: GateState): void {
  const before = now.state;
  now.state = state;
  for (const pair of pairs) {
    if (state === "refused") for (const socket of pair) socket.resetAndDestroy();
    else if (state === "stalled") stall(pair);
    else if (before === "stalled") flow(pair);
  }
}

function listen({ host, port: wanted }: NonNullable<GateOrder["listen"]>): void {
  const server = createServer();
  server.once("error", (thrown) => process.send?.({ error: String(thrown) }));
  server.listen(wanted, host, () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    process.send?.({ port }, server, {}, () => server.close());
  });
}

process.on("message", (order: GateOrder | "accept", server?: Server) => {
  if (order === "accept") return void server?.on("connection", passed);
  if (order.state !== undefined) enter(order.state);
  if (order.cutAfter !== undefined) now.cutAfter = order.cutAfter;
  if (order.listen !== undefined) return listen(order.listen);
  process.send?.({ done: true });
});
process.once("disconnect", () => process.exit());
