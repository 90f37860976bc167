import { Duplex, PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import { WebSocketHandler } from "@kubernetes/client-node/dist/web-socket-handler.js";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { unlessAborted } from "../platform/cancelled.ts";
import { ApiFailure, type Cluster, type ClusterTime, isLost, noAnswer } from "./cluster.ts";
import { podFailure } from "./pod-failure.ts";
import { podOf } from "./pod-watch.ts";

/** The part of the package's socket that is used; its own types need a package that is not installed. */
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
/** Load balancers on the way drop connections that are silent for a minute. */
const PING_MS = 20_000;

interface Attached {
  readonly pod: string;
  readonly container: string;
  /** The signal of the caller. */
  readonly signal: AbortSignal;
}

/**
 * The standard streams of a container over one WebSocket (v5, else v4), in the framing of a container engine: u8
 * source, three zeros, u32 length. Ending the stream ends the container's input: half of the connection if the protocol
 * allows that, else all of it. Waits for an API server that is away until the stream is attached; a connection that is
 * lost later stays lost, since the container's input ends with it.
 */
export async function attachTo(cluster: Cluster, { pod, container, signal }: Attached): Promise<Duplex> {
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true", stderr: "true" });
  const where = cluster.at(`pods/${encodeURIComponent(pod)}/attach?${query.toString()}`);
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const stream = new PodStream((trouble) => whyEnded(cluster, pod, trouble));
  const take = (channel: number, bytes: Buffer): boolean => {
    stream.receive(channel, bytes);
    return true;
  };
  const connect: Connect = (abortSignal) => {
    const handler = new WebSocketHandler(withAbort(abortSignal, cluster.config), undefined, streams);
    return handler.connect(where, null, take) as Promise<Socket>;
  };
  try {
    stream.open(await cluster.patiently(signal, () => openedSocket(connect, cluster.time, signal)));
    return stream;
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HarnessError) throw thrown;
    const message = `cannot attach to the pod ${pod}: ${reasonOf(thrown)}`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      `kubectl auth can-i create pods/attach -n ${cluster.namespace}`,
      thrown,
    );
  }
}

type Connect = (abortSignal: AbortSignal) => Promise<Socket>;

/** The package does not abort a pending connection: the request behind it ends with this signal. */
const withAbort = (signal: AbortSignal, config: KubeConfig): KubeConfig =>
  ({
    getCurrentCluster: () => config.getCurrentCluster(),
    applyToHTTPSOptions: (options: Parameters<KubeConfig["applyToHTTPSOptions"]>[0]) =>
      config.applyToHTTPSOptions(Object.assign(options, { signal })),
  }) as unknown as KubeConfig;

/**
 * The socket, once open, within the time limit; failures look like those of a request. An abandoned socket is closed.
 */
async function openedSocket(connect: Connect, time: ClusterTime, signal: AbortSignal): Promise<Socket> {
  const late = AbortSignal.timeout(time.answerMs);
  const left = new AbortController();
  const connecting = connect(left.signal);
  try {
    return await unlessAborted(connecting, AbortSignal.any([signal, late]));
  } catch (thrown) {
    left.abort();
    void connecting.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
    signal.throwIfAborted();
    if (late.aborted) throw noAnswer(time);
    // The package throws an event instead of the error.
    const cause = (thrown as { readonly error?: unknown }).error ?? thrown;
    const [, status] = /^Unexpected server response: (\d{3})$/.exec(reasonOf(cause)) ?? [];
    throw status === undefined ? cause : new ApiFailure(Number(status), "", `HTTP ${status}`);
  }
}

/** What the cluster says about a pod whose streams ended; the cluster may know only a moment later. */
async function whyEnded(cluster: Cluster, name: string, trouble: string): Promise<string> {
  const patience = AbortSignal.timeout(Math.min(WHY_MS, cluster.time.answerMs));
  let there = false;
  try {
    for (;;) {
      const pod = await podOf(cluster, { name }, patience);
      there = true;
      const failure = podFailure(pod);
      if (failure !== undefined) return `${failure.word}: ${failure.why}`;
      await sleep(WHY_PAUSE_MS, undefined, { signal: patience });
    }
  } catch (thrown) {
    const isAway = patience.aborted || (thrown instanceof HarnessError && isLost(thrown.cause));
    if (!isAway) return reasonOf(thrown).replace(/^no pod as a box: /, "");
    const how = there
      ? "while the pod was running"
      : `and the API server at ${cluster.server} does not answer`;
    const said = trouble === "" ? "" : ` (${trouble})`;
    return `connection lost: the connection to the pod ended${said} ${how}; its box ends with it`;
  }
}

const WHY_MS = 5000;
const WHY_PAUSE_MS = 250;

class PodStream extends Duplex {
  readonly #why: (trouble: string) => Promise<string>;
  #socket: Socket | undefined;
  #pings: NodeJS.Timeout | undefined;
  #trouble: string | undefined;

  /** `why` explains an unexpected end. */
  constructor(why: (trouble: string) => Promise<string>) {
    super();
    this.#why = why;
  }

  open(socket: Socket): void {
    this.#socket = socket;
    socket.addEventListener("close", () => {
      clearInterval(this.#pings);
      void this.#over();
    });
    // The close event follows, and the reason is asked then.
    socket.addEventListener("error", ({ message }) => void (this.#trouble ??= message));
    this.#pings = setInterval(() => socket.ping(), PING_MS).unref();
  }

  async #over(): Promise<void> {
    const why = this.destroyed || this.writableEnded ? "" : await this.#why(this.#trouble ?? "");
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

  /** Sent once, at the end. A failure is passed on as the reason, like the last output of a container. */
  #status(bytes: Buffer): void {
    const text = bytes.toString("utf8");
    if (!text.includes('"Success"')) this.#give(STDERR ?? 2, Buffer.from(text.slice(0, 500)));
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    const send = (at: number, failed?: Error | null): void => {
      // A failing socket is closed at once, and the close event reports why.
      if (failed instanceof Error) this.#trouble ??= failed.message;
      if (failed instanceof Error || at >= chunk.length) return done();
      const piece = chunk.subarray(at, at + PIECE);
      const data = Buffer.concat([Buffer.from([STDIN ?? 0]), piece]);
      this.#socket?.send(data, (error) => send(at + piece.length, error));
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
