import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { Worker } from "node:worker_threads";
import { makeSessionAuthority } from "../src/docker/egress/tls-ending.ts";
import { openEgress } from "../src/docker/egress/egress-proxy.ts";
import { clientHello } from "../test/fixtures/egress.ts";
import type { Ask } from "./egress-load.ts";
import { type Figure, inTurn, type Measured } from "./figure.ts";

/** Compares a transfer through the egress proxy with one through a unix socket that only forwards bytes. */

type Way = (bytes: number) => Promise<number>;

/** Both routes lead to one host on loopback, which shares a separate thread with the client. */
async function withWays(measure: (proxied: Way, plain: Way) => Promise<Measured>): Promise<Measured> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  const load = new Worker(path.join(import.meta.dirname, "egress-load.ts"));
  const [{ port }] = (await once(load, "message")) as [AddressInfo];
  const hello = await clientHello({ servername: "example.org" });
  await using proxy = await openEgress({
    folder: path.join(folder, "e"),
    grants: [{ host: "example.org", ports: [], methods: null, private: false, origin: "bench" }],
    limits: { bytesDown: Number.MAX_SAFE_INTEGER },
    resolve: () => Promise.resolve(["9.9.9.9"]),
    dial: () => connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true }),
  });
  const plain = createServer((client) => {
    const server = connect({ port, host: "127.0.0.1", noDelay: true });
    client.on("error", () => server.destroy()).pipe(server);
    server.on("error", () => client.destroy()).pipe(client);
  });
  plain.listen(path.join(folder, "plain.sock"));
  await once(plain, "listening");
  const ask = async (way: Pick<Ask, "socket" | "connect">, bytes: number): Promise<number> => {
    load.postMessage({ ...way, hello, bytes } satisfies Ask, []);
    const [took] = (await once(load, "message")) as [number | string];
    if (typeof took === "string") throw new Error(took);
    return took;
  };
  try {
    return await measure(
      (bytes) => ask({ socket: proxy.socket, connect: "example.org:443" }, bytes),
      (bytes) => ask({ socket: path.join(folder, "plain.sock"), connect: null }, bytes),
    );
  } finally {
    plain.close();
    await load.terminate();
    await rm(folder, { recursive: true, force: true });
  }
}

const LARGE = 256 * 2 ** 20;
const PAGE = 32 * 2 ** 20;

/** One download by https: the proxy terminates TLS if methods are named, and otherwise forwards it. */
async function download(methods: readonly string[] | null): Promise<number> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-bench-"));
  const world = makeSessionAuthority();
  const body = Buffer.alloc(PAGE, 1);
  const server = createHttpsServer(
    { SNICallback: (_, give) => give(null, world.contextFor("example.org")) },
    (_, response) => response.end(body),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await using proxy = await openEgress({
    folder: path.join(folder, "e"),
    grants: [{ host: "example.org", ports: [], methods, private: false, origin: "bench" }],
    roots: world.pem,
    resolve: () => Promise.resolve(["9.9.9.9"]),
    dial: () => connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true }),
  });
  try {
    const start = performance.now();
    const client = connect(proxy.socket);
    client.write("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n");
    await once(client, "data");
    const tls = connectTls({
      socket: client,
      servername: "example.org",
      ca: [world.pem, proxy.authority ?? ""],
    });
    tls.write("GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    let came = 0;
    tls.on("data", (chunk: Buffer) => (came += chunk.length));
    await once(tls, "end");
    if (came < PAGE) throw new Error(`${came} bytes came`);
    return performance.now() - start;
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

export const EGRESS: readonly Figure[] = [
  {
    name: "egress.tls-ending",
    unit: "ms for 32 MiB by https",
    against: "TLS that is passed on",
    hold: 4,
    measure: () =>
      inTurn(
        15,
        () => download(["GET"]),
        () => download(null),
      ),
  },
  {
    name: "egress.throughput",
    unit: "ms for 256 MiB",
    against: "a socket that only passes bytes on",
    hold: 1.25,
    measure: () =>
      withWays((proxied, plain) =>
        inTurn(
          9,
          () => proxied(LARGE),
          () => plain(LARGE),
        ),
      ),
  },
  {
    name: "egress.latency",
    unit: "ms to the first byte",
    against: "a socket that only passes bytes on",
    hold: 4,
    measure: () =>
      withWays((proxied, plain) =>
        inTurn(
          300,
          () => proxied(0),
          () => plain(0),
        ),
      ),
  },
];
