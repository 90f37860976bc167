import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import { reasonOf } from "../core/errors.ts";
import { bytesOfText } from "../core/raw-data.ts";

/**
 * The host's side of sandbox/runner/protocol.h: the wire over the stdio of a container, its authenticated frames, and the
 * fields of their payloads.
 */

/** Frames over the attached stdio of a container. The wire ends once, with a reason. */
export interface FrameWire {
  readonly send: (frame: Frame) => void;
  /** While paused, no frame is passed on and nothing is read: commands wait in the end. Each pause needs one resume. */
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
  /** Ends the wire for this reason. */
  readonly fail: (reason: string) => void;
  /** Whether reading is paused. */
  readonly isPaused: () => boolean;
}

interface Listener {
  readonly onFrame: (frame: Frame) => void;
  readonly onEnd: (reason: string) => void;
}

const STDOUT = 1;
/** Output of the runner or the runtime on stderr; only used to explain an end. */
const COMPLAINT_BYTES = 2000;

/** The first bytes for a runner that was just started. */
export const greeting = (secret: Buffer): Buffer => Buffer.concat([Buffer.from(MAGIC, "latin1"), secret]);

interface WireOptions {
  readonly secret: Buffer;
  /** Tells the other end the secret. */
  readonly first: Buffer;
}

/** `stream` is the engine's hijacked connection, its stdout and stderr multiplexed. */
export function openWire(
  stream: Duplex,
  { secret, first }: WireOptions,
  { onFrame, onEnd }: Listener,
): FrameWire {
  const write = frameWriter(secret);
  const read = frameReader(secret);
  const raw = new ByteQueue();
  const frames = new ByteQueue();
  const waiting: Frame[] = [];
  let pauses = 0;
  let complaint = "";
  let ended = false;
  const end = (reason: string): void => {
    if (ended) return;
    ended = true;
    stream.destroy();
    onEnd(complaint.trim() === "" ? reason : `${reason}: ${complaint.trim()}`);
  };
  const handOn = (): void => {
    for (let frame = waiting.shift(); frame !== undefined; frame = waiting.shift()) {
      onFrame(frame);
      if (pauses > 0) return;
    }
    if (stream.isPaused()) stream.resume();
  };
  const guarded = (work: () => void): void => {
    try {
      if (!ended) work();
    } catch (thrown) {
      end(reasonOf(thrown));
    }
  };
  stream.on("data", (chunk: Buffer) => {
    raw.push(chunk);
    guarded(() => {
      for (const { source, bytes } of demultiplexed(raw))
        if (source === STDOUT) frames.push(bytes);
        else complaint = (complaint + bytes.toString("utf8")).slice(-COMPLAINT_BYTES);
      waiting.push(...read(frames));
      if (pauses === 0) handOn();
    });
  });
  stream.on("error", (error) => end(reasonOf(error)));
  stream.once("end", () => end("the box has ended"));
  stream.once("close", () => end("the box has ended"));
  stream.write(first);
  return {
    send: (frame) => void (ended || stream.write(write(frame))),
    pause: () => {
      pauses += 1;
      stream.pause();
    },
    resume: () => {
      pauses -= 1;
      if (pauses === 0) guarded(handOn);
    },
    close: () => {
      stream.end();
      end("it was closed");
    },
    fail: end,
    isPaused: () => pauses > 0,
  };
}

/** The engine's framing: u8 source, three zeros, u32 length (big-endian), bytes. */
function* demultiplexed(raw: ByteQueue): Generator<{ readonly source: number; readonly bytes: Buffer }> {
  for (;;) {
    const head = raw.peek(8);
    if (head === undefined) return;
    const length = head.readUInt32BE(4);
    if (raw.length < 8 + length) return;
    const whole = raw.take(8 + length);
    if (whole !== undefined) yield { source: whole.readUInt8(0), bytes: whole.subarray(8) };
  }
}

/** The wire format of sandbox/runner/protocol.h, which describes each type and its payload. */
export const MAGIC = "HRN4";
export const KEY_BYTES = 32;
export const MAX_PAYLOAD = 2 ** 20;

const HEAD_BYTES = 13;
const TAG_BYTES = 16;

export const REQUEST = {
  hello: 0x01,
  exec: 0x02,
  stdin: 0x03,
  stdinEnd: 0x04,
  kill: 0x05,
  read: 0x06,
  write: 0x07,
  list: 0x08,
  stat: 0x09,
  snapshot: 0x0a,
  changes: 0x0b,
  answer: 0x0d,
  resize: 0x0c,
  alive: 0x0e,
  hold: 0x0f,
  resume: 0x10,
  ping: 0x11,
} as const;

export const REPLY = {
  hello: 0x81,
  out: 0x82,
  err: 0x83,
  outTail: 0x84,
  errTail: 0x85,
  exit: 0x86,
  data: 0x87,
  end: 0x88,
  credit: 0x89,
  ask: 0x8a,
  held: 0x8b,
  pong: 0x8c,
  unguarded: 0x8d,
  seen: 0x8e,
} as const;

export const EXEC_STDIN = 1;
export const EXEC_TTY = 2;
export const EXEC_EXACT = 4;
export const EXEC_OWN = 8;

export interface Frame {
  readonly type: number;
  readonly call: number;
  readonly payload: Buffer;
}

const tagOf = (key: KeyObject, body: Buffer): Buffer =>
  createHmac("sha256", key).update(body).digest().subarray(0, TAG_BYTES);

/** Turns requests into bytes and numbers them. */
export function frameWriter(secret: Buffer): (frame: Frame) => Buffer {
  const key = createSecretKey(secret);
  let sequence = 0n;
  return ({ type, call, payload }) => {
    const bytes = Buffer.allocUnsafe(4 + HEAD_BYTES + payload.length + TAG_BYTES);
    bytes.writeUInt32LE(HEAD_BYTES + payload.length + TAG_BYTES, 0);
    bytes.writeUInt8(type, 4);
    bytes.writeUInt32LE(call, 5);
    bytes.writeBigUInt64LE(sequence, 9);
    sequence += 1n;
    payload.copy(bytes, 4 + HEAD_BYTES);
    tagOf(key, bytes.subarray(4, 4 + HEAD_BYTES + payload.length)).copy(
      bytes,
      4 + HEAD_BYTES + payload.length,
    );
    return bytes;
  };
}

/** The bytes do not come from the runner: nothing after them can be trusted. */
export class ForgedFrame extends Error {
  override readonly name = "ForgedFrame";
}

/** Takes the whole frames out of the bytes that have arrived so far. */
export function frameReader(secret: Buffer): (bytes: ByteQueue) => readonly Frame[] {
  const key = createSecretKey(secret);
  let sequence = 0n;
  return (bytes) => {
    const frames: Frame[] = [];
    for (;;) {
      const length = bytes.peek(4)?.readUInt32LE();
      if (length === undefined) return frames;
      if (length < HEAD_BYTES + TAG_BYTES || length > HEAD_BYTES + MAX_PAYLOAD + TAG_BYTES)
        throw new ForgedFrame(`a frame of ${length} bytes`);
      const whole = bytes.take(4 + length);
      if (whole === undefined) return frames;
      const body = whole.subarray(4, 4 + length - TAG_BYTES);
      if (!timingSafeEqual(tagOf(key, body), whole.subarray(4 + length - TAG_BYTES)))
        throw new ForgedFrame("a frame with a wrong tag");
      if (body.readBigUInt64LE(5) !== sequence) throw new ForgedFrame("a frame out of order");
      sequence += 1n;
      frames.push({
        type: body.readUInt8(0),
        call: body.readUInt32LE(1),
        payload: body.subarray(HEAD_BYTES),
      });
    }
  };
}

/** Bytes in the order they came, taken in any sizes. */
export class ByteQueue {
  #chunks: Buffer[] = [];
  #length = 0;

  push(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  get length(): number {
    return this.#length;
  }

  /** The first bytes, left in the queue; undefined if there are fewer. */
  peek(length: number): Buffer | undefined {
    if (this.#length < length) return undefined;
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= length) return first.subarray(0, length);
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all.subarray(0, length);
  }

  /** Undefined if there are fewer bytes. */
  take(length: number): Buffer | undefined {
    if (this.#length < length) return undefined;
    this.#length -= length;
    const parts: Buffer[] = [];
    let left = length;
    let used = 0;
    for (const chunk of this.#chunks) {
      if (left < chunk.length) {
        parts.push(chunk.subarray(0, left));
        this.#chunks.splice(0, used + 1, chunk.subarray(left));
        return parts.length === 1 ? parts[0] : Buffer.concat(parts);
      }
      parts.push(chunk);
      left -= chunk.length;
      used += 1;
      if (left === 0) break;
    }
    this.#chunks.splice(0, used);
    return parts.length === 1 ? parts[0] : Buffer.concat(parts);
  }
}

/** A payload of named fields: u8 name, u32 length, bytes; a number is eight bytes, little-endian, rounded up. */

export type FieldValue = string | number | Buffer;

const FIELD_HEAD = 5;

export function encodeFields(fields: readonly (readonly [name: string, value: FieldValue])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => {
      const bytes = bytesOf(value);
      const head = Buffer.allocUnsafe(FIELD_HEAD);
      head.write(name, "latin1");
      head.writeUInt32LE(bytes.length, 1);
      return [head, bytes];
    }),
  );
}

function bytesOf(value: FieldValue): Buffer {
  if (typeof value === "string") return bytesOfText(value);
  if (typeof value !== "number") return value;
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64LE(BigInt(Math.ceil(value)));
  return bytes;
}

export interface Field {
  readonly name: string;
  readonly bytes: Buffer;
}

export function decodeFields(payload: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at + FIELD_HEAD <= payload.length;) {
    const length = payload.readUInt32LE(at + 1);
    const end = at + FIELD_HEAD + length;
    if (end > payload.length) throw new RangeError("a field is cut short");
    fields.push({
      name: payload.toString("latin1", at, at + 1),
      bytes: payload.subarray(at + FIELD_HEAD, end),
    });
    at = end;
  }
  return fields;
}

/** The number in this field, 0 if the field is missing. */
export function numberIn(fields: readonly Field[], name: string): number {
  const bytes = fields.find((field) => field.name === name)?.bytes;
  return bytes?.length === 8 ? Number(bytes.readBigUInt64LE()) : 0;
}

export const has = (fields: readonly Field[], name: string): boolean =>
  fields.some((field) => field.name === name);

export const bytesIn = (fields: readonly Field[], name: string): Buffer | undefined =>
  fields.find((field) => field.name === name)?.bytes;

export const textIn = (fields: readonly Field[], name: string): string =>
  fields.find((field) => field.name === name)?.bytes.toString("utf8") ?? "";
