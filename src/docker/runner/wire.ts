import type { Duplex } from "node:stream";
import { reasonOf } from "../../core/errors.ts";
import { ByteQueue, type Frame, frameReader, frameWriter, MAGIC } from "./frames.ts";

/** The attached stdio of a container as frames. It ends once, and says why. */
export interface Wire {
  readonly send: (frame: Frame) => void;
  /** While paused nothing is read, and in the end the commands wait. */
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
}

interface Listener {
  readonly onFrame: (frame: Frame) => void;
  readonly onEnd: (reason: string) => void;
}

const STDOUT = 1;
/** What the runner or the runtime says on stderr: only ever a reason for an end. */
const COMPLAINT_BYTES = 2000;

/** `stream` is the engine's hijacked connection, its stdout and stderr multiplexed. */
export function openWire(stream: Duplex, secret: Buffer, { onFrame, onEnd }: Listener): Wire {
  const write = frameWriter(secret);
  const read = frameReader(secret);
  const raw = new ByteQueue();
  const frames = new ByteQueue();
  let complaint = "";
  let ended = false;
  const end = (reason: string): void => {
    if (ended) return;
    ended = true;
    stream.destroy();
    onEnd(complaint.trim() === "" ? reason : `${reason}: ${complaint.trim()}`);
  };
  stream.on("data", (chunk: Buffer) => {
    raw.push(chunk);
    try {
      for (const { source, bytes } of demultiplexed(raw))
        if (source === STDOUT) frames.push(bytes);
        else complaint = (complaint + bytes.toString("utf8")).slice(-COMPLAINT_BYTES);
      for (const frame of read(frames)) onFrame(frame);
    } catch (thrown) {
      end(reasonOf(thrown));
    }
  });
  stream.once("error", (error) => end(reasonOf(error)));
  stream.once("end", () => end("the box has ended"));
  stream.once("close", () => end("the box has ended"));
  stream.write(Buffer.concat([Buffer.from(MAGIC, "latin1"), secret]));
  return {
    send: (frame) => void (ended || stream.write(write(frame))),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    close: () => stream.end(),
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
