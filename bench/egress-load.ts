/** Run by bench/egress.ts in a separate thread: a host on loopback, and a client that requests bytes from it. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { parentPort } from "node:worker_threads";

/** One transfer: the number of bytes, or 0 for a round trip only. */
export interface Ask {
  readonly socket: string;
  /** Null if the route needs no CONNECT. */
  readonly connect: string | null;
  readonly hello: Uint8Array;
  readonly bytes: number;
}

const CHUNK = Buffer.alloc(64 * 1024, 1);

/** The client sends a hello and then the wanted number of bytes; one byte answers the hello. */
const server = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => undefined);
  socket.once("data", () => {
    socket.write("!");
    socket.on("data", (asked: Buffer) => void give(socket, Number(asked.toString())));
  });
});

async function give(socket: Socket, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= CHUNK.length)
    if (!socket.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK)) await once(socket, "drain");
}

/** Returns the milliseconds from the first byte to the last. */
async function transfer({ socket, connect: authority, hello, bytes }: Ask): Promise<number> {
  const start = performance.now();
  const client = connect(socket);
  if (authority !== null) {
    client.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    await once(client, "data");
  }
  client.write(hello);
  await once(client, "data");
  if (bytes > 0) {
    let left = bytes;
    const { promise, resolve } = Promise.withResolvers<void>();
    client.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left <= 0) resolve();
    });
    client.write(String(bytes));
    await promise;
  }
  const took = performance.now() - start;
  client.destroy();
  return took;
}

server.listen(0, "127.0.0.1", () => parentPort?.postMessage(server.address(), []));
parentPort?.on("message", (ask: Ask) => {
  transfer(ask).then(
    (took) => parentPort?.postMessage(took, []),
    (thrown: unknown) => parentPort?.postMessage(String(thrown), []),
  );
});
