import { Duplex, PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocketHandler } from "@kubernetes/client-node/dist/web-socket-handler.js";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import type { Cluster } from "./cluster.ts";
import { podFailure } from "./pod-failure.ts";
import { podOf } from "./pod-watch.ts";

/** As much of the package's socket as is used; its own types come with a package that is not there. */
interface Socket {
  readonly protocol: string;
  addEventListener(name: "close" | "error", listener: (event: { readonly message?: string }) => void): void;
  send(data: Buffer, done: (error?: Error | null) => void): void;
  ping(): void;
  pause(): void;
  resume(): void;
  close(): void;
  terminate(): void;
}

const [STDIN, STDOUT, STDERR, STATUS, CLOSE] = [0, 1, 2, 3, 255];
const PIECE = 64 * 1024;
/** Balancers between here and the node let go of what is silent for a minute. */
const PING_MS = 20_000;

/**
 * The standard streams of a container over one WebSocket (v5, else v4), as an engine gives them: what comes is framed by
 * u8 source, three zeros, u32 length. Ending it ends the container's input: half of the connection where the protocol can
 * say so, and all of it else.
 */
export async function attachTo(cluster: Cluster, pod: string, container: string): Promise<Duplex> {
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true", stderr: "true" });
  const where = cluster.at(`pods/${encodeURIComponent(pod)}/attach?${query.toString()}`);
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const handler = new WebSocketHandler(cluster.config, undefined, streams);
  const stream = new PodStream(() => whyEnded(cluster, pod));
  const take = (channel: number, bytes: Buffer): boolean => {
    stream.receive(channel, bytes);
    return true;
  };
  try {
    stream.open((await handler.connect(where, null, take)) as Socket);
    return stream;
  } catch (thrown) {
    const message = `the pod ${pod} cannot be attached to: ${reasonOf(thrown)}`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      `kubectl auth can-i create pods/attach -n ${cluster.namespace}`,
      thrown,
    );
  }
}

/** What the cluster says of a pod whose streams ended; it may know it a moment later. */
async function whyEnded(cluster: Cluster, name: string): Promise<string> {
  const patience = AbortSignal.timeout(WHY_MS);
  try {
    for (;;) {
      const failure = podFailure(await podOf(cluster, { name }, patience));
      if (failure !== undefined) return `${failure.word}: ${failure.why}`;
      await sleep(WHY_PAUSE_MS, undefined, { signal: patience });
    }
  } catch (thrown) {
    return patience.aborted ? "" : reasonOf(thrown).replace(/^no pod as a box: /, "");
  }
}

const WHY_MS = 5000;
const WHY_PAUSE_MS = 250;

class PodStream extends Duplex {
  readonly #why: () => Promise<string>;
  #socket: Socket | undefined;
  #pings: NodeJS.Timeout | undefined;

  /** `why` tells of the end that nobody here wanted. */
  constructor(why: () => Promise<string>) {
    super();
    this.#why = why;
  }

  open(socket: Socket): void {
    this.#socket = socket;
    socket.addEventListener("close", () => {
      clearInterval(this.#pings);
      void this.#over();
    });
    socket.addEventListener("error", ({ message }) => this.destroy(new Error(message)));
    this.#pings = setInterval(() => socket.ping(), PING_MS).unref();
  }

  async #over(): Promise<void> {
    const why = this.destroyed || this.writableEnded ? "" : await this.#why();
    if (this.destroyed) return;
    if (why !== "") this.#give(STDERR ?? 2, Buffer.from(why));
    this.push(null);
  }

  receive(channel: number, bytes: Buffer): void {
    if (this.destroyed || bytes.length === 0) return;
    if (channel === STDOUT || channel === STDERR) this.#give(channel, bytes);
    else if (channel === STATUS) this.#status(bytes);
  }

  #give(channel: number, bytes: Buffer): void {
    const head = Buffer.alloc(8);
    head.writeUInt8(channel, 0);
    head.writeUInt32BE(bytes.length, 4);
    if (!this.push(Buffer.concat([head, bytes]))) this.#socket?.pause();
  }

  /** Said once, at the end. A failure is the reason of the end, as what a container writes last would be. */
  #status(bytes: Buffer): void {
    const text = bytes.toString("utf8");
    if (!text.includes('"Success"')) this.#give(STDERR ?? 2, Buffer.from(text.slice(0, 500)));
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    // Sockets tell that all is well by null as well as by nothing.
    const send = (at: number, error?: Error | null): void => {
      if (error instanceof Error || at >= chunk.length) return done(error ?? null);
      const piece = chunk.subarray(at, at + PIECE);
      const data = Buffer.concat([Buffer.from([STDIN ?? 0]), piece]);
      this.#socket?.send(data, (failed) => send(at + piece.length, failed));
    };
    send(0);
  }

  override _final(done: (error?: Error | null) => void): void {
    const socket = this.#socket;
    if (socket?.protocol === "v5.channel.k8s.io")
      socket.send(Buffer.from([CLOSE ?? 255, STDIN ?? 0]), () => done());
    else {
      socket?.close();
      done();
    }
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearInterval(this.#pings);
    this.#socket?.terminate();
    done(error);
  }
}
