import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { engine } from "../fixtures/engine.ts";

/** A socket in front of the engine: tells each request as it comes, and can be cut. */
export interface Proxy extends AsyncDisposable {
  readonly host: string;
  /** Every connection ends, and none is taken any more. */
  readonly cut: () => void;
}

const REQUEST = /^(GET|POST|DELETE|HEAD) \/(?:v[\d.]+\/)?([^\s?]*)[\s?]/;

/** `onRequest` gets the request without ids, such as `POST containers/create`, before the engine does. */
export async function engineProxy(
  file: string,
  onRequest: (request: string) => void = () => undefined,
): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const real = engine.endpoint.host.slice("unix://".length);
  const server = createServer((near) => {
    const far = connect(real);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    near.on("data", (chunk: Buffer) => {
      const [, method, path = ""] = REQUEST.exec(chunk.toString("latin1", 0, 2000)) ?? [];
      if (method !== undefined) onRequest(`${method} ${path.replaceAll(/[0-9a-f]{64}/g, "ID")}`);
    });
    near.pipe(far).pipe(near);
    near.once("close", () => far.destroy());
    far.once("close", () => near.destroy());
  });
  server.listen(file);
  await once(server, "listening");
  const cut = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { host: `unix://${file}`, cut, [Symbol.asyncDispose]: async () => cut() };
}
