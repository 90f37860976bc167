import { createServer, type RequestListener } from "node:http";
import { createServer as createSocket, type Server, type Socket } from "node:net";
import { type AddressInfo } from "node:net";

/** A server on this machine that listens in place of an engine. */
export interface Loopback extends AsyncDisposable {
  readonly host: string;
  readonly open: () => number;
}

/** `answer` gets each connection; without a path it listens on a free port. */
export function onConnection(answer: (socket: Socket) => void, file?: string): Promise<Loopback> {
  return listen(createSocket(answer), file);
}

export function onRequest(answer: RequestListener, file?: string): Promise<Loopback> {
  return listen(createServer(answer), file);
}

/** Answers GET /version, as every engine does, with this text. */
export const versionAnswer =
  (status: number, body: string): RequestListener =>
  (request, response) => {
    const known = /^(?:\/v[\d.]+)?\/version$/.test(request.url ?? "");
    response.writeHead(known ? status : 404, { "content-type": "application/json" });
    response.end(known ? body : '{"message": "page not found"}');
  };

async function listen(server: Server, file: string | undefined): Promise<Loopback> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    if (file === undefined) server.listen(0, "127.0.0.1", resolve);
    else server.listen(file, resolve);
  });
  const host =
    file === undefined ? `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` : `unix://${file}`;
  return {
    host,
    open: () => sockets.size,
    [Symbol.asyncDispose]: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
