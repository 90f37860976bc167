import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { engine } from "../fixtures/engine-api.ts";

/** A socket in front of the engine that reports each request and can be cut. */
export interface Proxy extends AsyncDisposable {
  readonly host: string;
  /** Ends every connection and accepts no more. */
  readonly cut: () => void;
  /** Keeps every connection and accepts new ones, but passes on no more bytes. */
  readonly stall: () => void;
}

const REQUEST = /^(GET|POST|DELETE|HEAD) \/(?:v[\d.]+\/)?([^\s?]*)[\s?]/;

/**
 * `onRequest` gets each request before the engine does, without ids, such as `POST containers/create`; Podman's own API
 * is reported like the common one.
 */
export async function engineProxy(
  file: string,
  onRequest: (request: string) => void = () => undefined,
): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const state = { stalled: false };
  const real = engine.endpoint.host.slice("unix://".length);
  const server = createServer((near) => {
    const far = connect(real);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    near.on("data", (chunk: Buffer) => {
      if (state.stalled) return;
      const [, method, path = ""] = REQUEST.exec(chunk.toString("latin1", 0, 2000)) ?? [];
      if (method !== undefined)
        onRequest(`${method} ${path.replace(/^libpod\//, "").replaceAll(/[0-9a-f]{64}/g, "ID")}`);
    });
    near.on("data", (chunk: Buffer) => state.stalled || far.write(chunk));
    far.on("data", (chunk: Buffer) => state.stalled || near.write(chunk));
    near.on("end", () => state.stalled || far.end());
    far.on("end", () => state.stalled || near.end());
    near.once("close", () => far.destroy());
    far.once("close", () => near.destroy());
  });
  server.listen(file);
  await once(server, "listening");
  const cut = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  const stall = (): void => {
    state.stalled = true;
  };
  return { host: `unix://${file}`, cut, stall, [Symbol.asyncDispose]: async () => cut() };
}
