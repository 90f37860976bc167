import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { KubeConfig } from "@kubernetes/client-node";
import { Cluster, type ClusterTime } from "../../src/kubernetes/cluster.ts";
import { statusOf } from "./kubernetes-api.ts";
import { serveSocket } from "./web-socket.ts";

/**
 * An API server for objects only, without containers, that can be away, and with a clock that only waiting advances.
 */
export interface ObjectsApi extends AsyncDisposable {
  readonly cluster: Cluster;
  /** Objects by path. */
  readonly objects: Map<string, unknown>;
  /** Method and path of requests that were received and, unless lost, answered. */
  readonly heard: string[];
  /** Cuts every connection until the clock has advanced this far. */
  readonly away: (ms: number) => void;
  /** A matching request is executed, but its connection is cut before the answer; once per pattern. */
  readonly lost: RegExp[];
  /** Matching requests are never answered. */
  silent: RegExp | undefined;
  /** Matching requests are refused. */
  refuses: { readonly fits: RegExp; readonly status: number; readonly reason: string } | undefined;
  /** Called when the clock has advanced. */
  onWait: () => void;
  readonly waited: () => number;
}

interface Times {
  readonly patienceMs?: number;
  readonly answerMs?: number;
  readonly silentMs?: number;
}

export async function objectsApi({
  patienceMs = 10_000,
  answerMs = 30_000,
  silentMs = 90_000,
}: Times = {}): Promise<ObjectsApi> {
  let now = 0;
  let back = 0;
  const isAway = (): boolean => now < back;
  const sockets = new Set<Duplex>();
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  const time: ClusterTime = {
    now: () => now,
    wait: (ms, signal) => {
      signal?.throwIfAborted();
      now += ms;
      api.onWait();
      return new Promise(setImmediate);
    },
    random: () => 0.5,
    answerMs,
    silentMs,
  };
  const server = createServer((request, response) => void answer(api, request, response));
  server.on("connection", (socket: Socket) => {
    if (isAway()) return socket.destroy();
    sockets.add(socket);
    return undefined;
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
    api.heard.push(`UPGRADE ${request.url}`);
    if (api.silent?.test(`UPGRADE ${request.url}`) === true) return;
    const { status } = api.refuses ?? {};
    if (status !== undefined) return void socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
    const taking = { onMessage: () => undefined, onEnd: () => undefined };
    serveSocket(request, socket, "v4.channel.k8s.io", taking);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const api: ObjectsApi = {
    cluster: clusterAt(port, patienceMs, time),
    objects: new Map(),
    heard: [],
    away: (ms) => {
      back = now + ms;
      cut();
    },
    lost: [],
    silent: undefined,
    refuses: undefined,
    onWait: () => undefined,
    waited: () => now,
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}

export function clusterAt(port: number, patienceMs: number, time: ClusterTime): Cluster {
  const config = new KubeConfig();
  const server = { name: "c", server: `http://127.0.0.1:${port}`, skipTLSVerify: true };
  config.loadFromClusterAndUser(server, { name: "u" });
  return new Cluster(config, "team", patienceMs, time);
}

async function answer(api: ObjectsApi, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "GET", url = "/" } = request;
  const said = `${method} ${url}`;
  api.heard.push(said);
  if (api.silent?.test(said) === true) return;
  const [status, body] = done(api, said, await text(request));
  const lost = api.lost.findIndex((fits) => fits.test(said));
  if (lost !== -1) {
    api.lost.splice(lost, 1);
    return void request.socket.destroy();
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function done(
  { objects, refuses, heard }: ObjectsApi,
  said: string,
  body: string,
): readonly [number, unknown] {
  const [method, url = ""] = said.split(" ");
  if (refuses?.fits.test(said) === true)
    return [refuses.status, statusOf(refuses.status, refuses.reason, `${said}: ${refuses.reason}`)];
  const { pathname } = new URL(url, "http://x");
  if (method === "POST") {
    const asked = JSON.parse(body) as { readonly metadata: { readonly name: string } };
    const at = `${pathname}/${asked.metadata.name}`;
    if (objects.has(at)) return [409, statusOf(409, "AlreadyExists", `${at} already exists`)];
    const nth = heard.filter((one) => one === said).length;
    const made = { ...asked, metadata: { ...asked.metadata, uid: `u-${nth}` } };
    objects.set(at, made);
    return [201, made];
  }
  const found = objects.get(pathname);
  if (found === undefined && pathname.endsWith("s"))
    return [
      200,
      { items: [...objects].filter(([at]) => at.startsWith(`${pathname}/`)).map(([, each]) => each) },
    ];
  if (found === undefined) return [404, statusOf(404, "NotFound", `${pathname} not found`)];
  if (method === "DELETE") objects.delete(pathname);
  return [200, found];
}
