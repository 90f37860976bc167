import type { Duplex } from "node:stream";
import { reasonOf } from "../../core/errors.ts";
import { ByteQueue, type Frame, frameReader, frameWriter, MAGIC } from "./runner-frames.ts";

/** Frames over the attached stdio of a container. The wire ends once, with a reason. */
export interface Wire {
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
export function openWire(stream: Duplex, { secret, first }: WireOptions, { onFrame, onEnd }: Listener): Wire {
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
