import type { Duplex } from "node:stream";
import { ByteQueue } from "./runner-protocol.ts";

/**
 * The connections of a box, which share one stream (its frames are described in sandbox/relay/relay.c); each is tied to
 * a connection to the box's proxy. The input is the box's: it may be anything, and everything that is kept for it is
 * bounded.
 */

export const FRAME = { ready: 0, open: 1, data: 2, end: 3, close: 4, more: 5 } as const;
const HEAD_BYTES = 9;
/** The most bytes that one frame carries. */
export const FRAME_BYTES = 32 * 1024;
/** The most bytes of one stream in transit, in either direction. */
export const WINDOW_BYTES = 256 * 1024;
export const MAX_STREAMS = 256;
/** Bytes that were passed on are acknowledged in steps of this size. */
const STEP = WINDOW_BYTES / 4;

/** The input cannot come from the relay: nothing of it is trusted any more. */
export class RelayRubbish extends Error {
  override readonly name = "RelayRubbish";
}

interface Stream {
  readonly id: number;
  readonly socket: Duplex;
  /** How many bytes may still be sent to the box, and may still come from it. */
  toBox: number;
  fromBox: number;
  /** Bytes passed on but not yet acknowledged. */
  taken: number;
  boxEnded: boolean;
  ended: "no" | "to be sent" | "sent";
  closed: boolean;
}

const frame = (type: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt8(type, 0);
  head.writeUInt32LE(id, 1);
  head.writeUInt32LE(payload.length, 5);
  return Buffer.concat([head, payload]);
};

export class RelayStreams {
  readonly #connect: () => Duplex;
  readonly #bytes = new ByteQueue();
  readonly #streams = new Map<number, Stream>();
  /** Streams with something to send, in turn. */
  readonly #due = new Set<Stream>();
  readonly #ready = Promise.withResolvers<void>();
  #wake: () => void = () => undefined;
  #last = 0;
  #begun = false;
  #over = false;

  /** `connect` opens a connection to the box's proxy; either half of it may end first. */
  constructor(connect: () => Duplex) {
    this.#connect = connect;
    this.#ready.promise.catch(() => undefined);
  }

  /** Resolves once the relay has its socket; rejects if the relay ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get open(): number {
    return this.#streams.size;
  }

  /** Takes bytes from the box. Throws `RelayRubbish`, which ends everything. */
  take(bytes: Buffer): void {
    if (this.#over) return;
    try {
      this.#bytes.push(bytes);
      for (;;) {
        const head = this.#bytes.peek(HEAD_BYTES);
        if (head === undefined) return;
        const [type, id, length] = [head.readUInt8(0), head.readUInt32LE(1), head.readUInt32LE(5)];
        if (length > FRAME_BYTES) throw new RelayRubbish(`a frame of ${length} bytes`);
        const whole = this.#bytes.take(HEAD_BYTES + length);
        if (whole === undefined) return;
        this.#receive(type, id, whole.subarray(HEAD_BYTES));
      }
    } catch (thrown) {
      this.close();
      throw thrown;
    }
  }

  /** Frames for the box, its streams taking turns, until all is over. Reads from a proxy only what can be sent. */
  async *frames(): AsyncGenerator<Buffer> {
    while (!this.#over) {
      const next = this.#next();
      if (next !== undefined) yield next;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Ends all connections. */
  close(): void {
    this.#over = true;
    this.#ready.reject(new RelayRubbish("it ended before it began"));
    for (const { socket } of this.#streams.values()) socket.destroy();
    this.#streams.clear();
    this.#due.clear();
    this.#wake();
  }

  #receive(type: number, id: number, payload: Buffer): void {
    if (type === FRAME.ready && !this.#begun && id === 0 && payload.length === 0) {
      this.#begun = true;
      return this.#ready.resolve();
    }
    if (!this.#begun) throw new RelayRubbish("a frame before the first one");
    if (type === FRAME.open) return this.#openStream(id, payload);
    if (id === 0 || id > this.#last)
      throw new RelayRubbish(`a frame of the stream ${id}, which does not exist`);
    const stream = this.#streams.get(id);
    // An unknown stream was closed from this side, and the box did not know of it yet.
    if (stream !== undefined) this.#handleFrame(stream, type, payload);
  }

  #handleFrame(stream: Stream, type: number, payload: Buffer): void {
    if (type === FRAME.data) this.#data(stream, payload);
    else if (type === FRAME.more && payload.length === 4) this.#widenWindow(stream, payload.readUInt32LE(0));
    else if (type === FRAME.end && payload.length === 0 && !stream.boxEnded) {
      stream.boxEnded = true;
      stream.socket.end();
    } else if (type === FRAME.close && payload.length === 0) {
      this.#forget(stream);
      stream.socket.destroy();
    } else throw new RelayRubbish(`a frame of the type ${type} with ${payload.length} bytes`);
  }

  #openStream(id: number, payload: Buffer): void {
    if (id <= this.#last || payload.length > 0) throw new RelayRubbish(`the stream ${id} opened again`);
    if (this.#streams.size >= MAX_STREAMS) throw new RelayRubbish(`more than ${MAX_STREAMS} streams`);
    this.#last = id;
    const stream: Stream = {
      id,
      socket: this.#connect(),
      toBox: WINDOW_BYTES,
      fromBox: WINDOW_BYTES,
      taken: 0,
      boxEnded: false,
      ended: "no",
      closed: false,
    };
    this.#streams.set(id, stream);
    const say = (): void => this.#schedule(stream);
    stream.socket
      .on("readable", say)
      .on("error", () => undefined)
      .once("end", () => {
        stream.ended = "to be sent";
        say();
      })
      .once("close", () => {
        stream.closed = true;
        say();
      });
  }

  #data(stream: Stream, payload: Buffer): void {
    const { length } = payload;
    if (length === 0 || length > stream.fromBox || stream.boxEnded)
      throw new RelayRubbish(`the stream ${stream.id} sent ${length} bytes more than it may`);
    stream.fromBox -= length;
    stream.socket.write(payload, () => {
      stream.fromBox += length;
      stream.taken += length;
      if (stream.taken >= STEP) this.#schedule(stream);
    });
  }

  #widenWindow(stream: Stream, bytes: number): void {
    if (bytes > WINDOW_BYTES - stream.toBox)
      throw new RelayRubbish(`a window of more than ${WINDOW_BYTES} bytes`);
    stream.toBox += bytes;
    this.#schedule(stream);
  }

  #forget(stream: Stream): void {
    this.#streams.delete(stream.id);
    this.#due.delete(stream);
  }

  #schedule(stream: Stream): void {
    if (this.#over || this.#streams.get(stream.id) !== stream) return;
    this.#due.add(stream);
    this.#wake();
  }

  /** One frame of the stream whose turn it is; the stream then goes to the end of the queue. */
  #next(): Buffer | undefined {
    for (const stream of this.#due) {
      this.#due.delete(stream);
      const outgoing = this.#frameFor(stream);
      if (outgoing === undefined) continue;
      if (this.#streams.has(stream.id)) this.#due.add(stream);
      return outgoing;
    }
    return undefined;
  }

  #frameFor(stream: Stream): Buffer | undefined {
    const { id, socket } = stream;
    if (stream.taken >= STEP && !stream.boxEnded && !stream.closed) {
      const payload = Buffer.alloc(4);
      payload.writeUInt32LE(stream.taken);
      stream.taken = 0;
      return frame(FRAME.more, id, payload);
    }
    const size = Math.min(FRAME_BYTES, stream.toBox, socket.readableLength);
    // Reading zero bytes triggers the end event if nothing else is left; while bytes wait, it would trigger events for
    // ever.
    const piece = size > 0 || socket.readableLength === 0 ? (socket.read(size) as Buffer | null) : null;
    if (piece !== null) {
      stream.toBox -= piece.length;
      return frame(FRAME.data, id, piece);
    }
    if (stream.ended === "to be sent") {
      stream.ended = "sent";
      return frame(FRAME.end, id);
    }
    if (!stream.closed) return undefined;
    this.#forget(stream);
    return frame(FRAME.close, id);
  }
}
