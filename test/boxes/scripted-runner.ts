import { type Duplex, duplexPair } from "node:stream";
import {
  ByteQueue,
  encodeFields,
  type FieldValue,
  type Frame,
  frameReader,
  frameWriter,
  MAGIC,
  REPLY,
} from "../../src/boxes/runner-protocol.ts";

type Fields = readonly (readonly [string, FieldValue])[];

/** The other end of a box's stream: sends what an engine sends when a runner answers. */
export interface ScriptedRunner {
  /** Give this to the client. */
  readonly stream: Duplex;
  readonly received: readonly Frame[];
  /** Waits for the next request of this type. */
  readonly request: (type: number) => Promise<Frame>;
  readonly reply: (type: number, call: number, payload?: Buffer | Fields) => void;
  readonly exit: (call: number, fields?: Fields) => void;
  /** Bytes on the container's stdout or stderr, as the engine frames them. */
  readonly raw: (bytes: Buffer, source?: number) => void;
  readonly hangUp: () => void;
}

export const KEY = Buffer.alloc(32, 7);

export const muxed = (bytes: Buffer, source = 1): Buffer => {
  const head = Buffer.from([source, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([head, bytes]);
};

export function scriptedRunner(): ScriptedRunner {
  const [stream, engine] = duplexPair();
  const [write, read] = [frameWriter(KEY), frameReader(KEY)];
  const bytes = new ByteQueue();
  const received: Frame[] = [];
  const waiting: { readonly type: number; readonly resolve: (frame: Frame) => void }[] = [];
  let greeted = false;
  const settle = (): void => {
    for (const one of waiting.slice()) {
      const frame = received.find(({ type }) => type === one.type);
      if (frame === undefined) continue;
      waiting.splice(waiting.indexOf(one), 1);
      one.resolve(frame);
    }
  };
  engine.on("data", (chunk: Buffer) => {
    bytes.push(chunk);
    if (!greeted) {
      const hello = bytes.take(MAGIC.length + KEY.length);
      if (hello === undefined) return;
      greeted = hello.equals(Buffer.concat([Buffer.from(MAGIC), KEY]));
    }
    received.push(...read(bytes));
    settle();
  });
  engine.on("error", () => undefined);
  const raw = (part: Buffer, source = 1): void => void engine.write(muxed(part, source));
  const reply: ScriptedRunner["reply"] = (type, call, payload = Buffer.alloc(0)) =>
    raw(write({ type, call, payload: Buffer.isBuffer(payload) ? payload : encodeFields(payload) }));
  return {
    stream,
    received,
    request: (type) =>
      new Promise((resolve) => {
        waiting.push({ type, resolve });
        settle();
      }),
    reply,
    exit: (call, fields = [["c", 0]]) => reply(REPLY.exit, call, encodeFields(fields)),
    raw,
    hangUp: () => void engine.end(),
  };
}
