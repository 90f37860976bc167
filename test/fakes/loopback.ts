import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A server on this machine that answers each request with prepared bytes. */

export interface Served {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Pieces are written separately; a number is a pause in milliseconds. */
  readonly body?: string | readonly (string | Uint8Array | number)[];
  /** Bytes written at a time; whole pieces by default. */
  readonly slice?: number;
  /** As in a scenario of the contract suite; `endless` repeats the last piece. */
  readonly ends?: "done" | "cut" | "silent" | "endless";
}

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The client's port, the same for requests that share a connection. */
  readonly port: number | undefined;
}

export interface Loopback extends AsyncDisposable {
  readonly url: string;
  readonly heard: readonly Heard[];
  /** Resolves when a client leaves before the end of its answer. */
  readonly left: Promise<void>;
  readonly close: () => Promise<void>;
}

export const EVENTS = { "content-type": "text/event-stream; charset=utf-8" } as const;
export const JSON_TYPE = { "content-type": "application/json; charset=utf-8" } as const;

export interface HttpServer extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
  /** Address and port. */
  readonly at: string;
}

/** A web server on the host's loopback. */
export async function startHttp(answer: RequestListener): Promise<HttpServer> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  return { server, port, at: `127.0.0.1:${port}`, [Symbol.asyncDispose]: close };
}

/** Gives the answers in order; the last one is repeated. */
export async function startLoopback(answers: readonly [Served, ...Served[]]): Promise<Loopback> {
  const heard: Heard[] = [];
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const server = await startHttp((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      heard.push({
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        text: Buffer.concat(chunks).toString("utf8"),
        port: request.socket.remotePort,
      });
      response.on("close", () => void (response.writableFinished || leave()));
      serve(response, answers[heard.length - 1] ?? answers.at(-1) ?? {}).catch(() => response.destroy());
    });
  });
  const close = (): Promise<void> => Promise.resolve(server[Symbol.asyncDispose]());
  const url = `http://${server.at}`;
  return { url, heard, left, close, [Symbol.asyncDispose]: close };
}

async function serve(response: ServerResponse, served: Served): Promise<void> {
  const { status = 200, headers = JSON_TYPE, body = "", ends = "done" } = served;
  response.writeHead(status, headers);
  response.flushHeaders();
  const pieces = typeof body === "string" ? [body] : body;
  for (const piece of pieces) await write(response, piece, served.slice);
  if (ends === "endless") for (; !response.destroyed;) await write(response, pieces.at(-1) ?? "", undefined);
  if (ends === "cut") setImmediate(() => response.destroy());
  if (ends === "done") response.end();
}

async function write(
  response: ServerResponse,
  piece: string | Uint8Array | number,
  slice: number | undefined,
): Promise<void> {
  if (response.destroyed) return;
  if (typeof piece === "number") return sleep(piece, undefined, { ref: false });
  const bytes = Buffer.from(piece as string);
  const step = slice ?? Math.max(bytes.length, 1);
  for (let start = 0; start < bytes.length; start += step)
    await new Promise<void>((resolve) => {
      response.once("close", resolve);
      response.write(bytes.subarray(start, start + step), () => {
        response.off("close", resolve);
        setImmediate(resolve);
      });
    });
}
