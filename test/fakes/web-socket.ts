import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/**
 * The server's end of one WebSocket (RFC 6455), limited to what an API server's streams need: whole binary messages.
 */
export interface ServedSocket {
  readonly send: (message: Buffer) => boolean;
  readonly close: () => void;
  /** Cuts the connection, as a network failure would. */
  readonly cut: () => void;
  readonly stream: Duplex;
}

interface Taking {
  /** A returned promise delays the next message. */
  readonly onMessage: (message: Buffer) => Promise<void> | void;
  readonly onEnd: () => void;
}

const ACCEPT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CONTINUED = 0;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export function serveSocket(
  request: IncomingMessage,
  stream: Duplex,
  protocol: string,
  { onMessage, onEnd }: Taking,
): ServedSocket {
  const key = request.headers["sec-websocket-key"] ?? "";
  const accept = createHash("sha1")
    .update(key + ACCEPT)
    .digest("base64");
  stream.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
  );
  const write = (kind: number, body: Buffer): boolean =>
    stream.writable ? stream.write(Buffer.concat([headOf(kind, body.length), body])) : true;
  void (async () => {
    let message: Buffer = Buffer.alloc(0);
    for await (const { kind, last, body } of framesOf(stream)) {
      if (kind === PING) write(PONG ?? 0, body);
      else if (kind === CLOSE) break;
      else if (kind === BINARY || kind === CONTINUED) {
        message = kind === BINARY ? body : Buffer.concat([message, body]);
        if (last) await onMessage(message);
      }
    }
  })()
    .catch(() => undefined)
    .finally(() => {
      stream.end();
      onEnd();
    });
  return {
    send: (body) => write(BINARY ?? 0, body),
    close: () => {
      write(CLOSE ?? 0, Buffer.from([0x03, 0xe8]));
      stream.end();
    },
    cut: () => stream.destroy(),
    stream,
  };
}

function headOf(kind: number, length: number): Buffer {
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | kind;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (length >= 65_536) head.writeBigUInt64BE(BigInt(length), 2);
  else if (length >= 126) head.writeUInt16BE(length, 2);
  return head;
}

interface Frame {
  readonly kind: number;
  readonly last: boolean;
  readonly body: Buffer;
}

/** Reads a client's frames, which are masked. */
async function* framesOf(stream: Duplex): AsyncGenerator<Frame> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    for (let frame = frameIn(bytes); frame !== undefined; frame = frameIn(bytes)) {
      bytes = bytes.subarray(frame.taken);
      yield frame;
    }
  }
}

function frameIn(bytes: Buffer): (Frame & { readonly taken: number }) | undefined {
  const [first = 0, second = 0] = bytes;
  const short = second & 0x7f;
  const at = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < at + 4) return undefined;
  const length =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const taken = at + 4 + length;
  if (bytes.length < taken) return undefined;
  const mask = bytes.subarray(at, at + 4);
  const body = Buffer.from(bytes.subarray(at + 4, taken));
  for (let index = 0; index < body.length; index += 1)
    body[index] = (body[index] ?? 0) ^ (mask[index % 4] ?? 0);
  return { kind: first & 0x0f, last: (first & 0x80) !== 0, body, taken };
}
