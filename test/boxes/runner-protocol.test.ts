import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { duplexPair } from "node:stream";
import { randomBytes } from "node:crypto";
import {
  ByteQueue,
  decodeFields,
  encodeFields,
  ForgedFrame,
  type Frame,
  frameReader,
  frameWriter,
  greeting,
  has,
  numberIn,
  openWire,
  textIn,
  type FrameWire,
} from "../../src/boxes/runner-protocol.ts";
import { KEY, muxed } from "./scripted-runner.ts";
import { fc } from "../fixtures/property.ts";

interface Opened {
  readonly wire: FrameWire;
  readonly frames: Frame[];
  readonly ends: string[];
  readonly feed: (bytes: Buffer) => void;
  readonly hangUp: () => void;
  readonly over: Promise<void>;
}

function opened(onFrame: (frame: Frame) => void = () => undefined): Opened {
  const [stream, engine] = duplexPair();
  engine.on("error", () => undefined).resume();
  const frames: Frame[] = [];
  const ends: string[] = [];
  const over = Promise.withResolvers<void>();
  const wire = openWire(
    stream,
    { secret: KEY, first: greeting(KEY) },
    {
      onFrame: (frame) => {
        frames.push(frame);
        onFrame(frame);
      },
      onEnd: (reason) => {
        ends.push(reason);
        over.resolve();
      },
    },
  );
  const feed = (bytes: Buffer): void => void engine.write(bytes);
  return { wire, frames, ends, feed, hangUp: () => void engine.end(), over: over.promise };
}

const FRAMES = ["one", "", "three"].map((text, call) => ({ type: 0x87, call, payload: Buffer.from(text) }));
const written = (): Buffer => Buffer.concat(FRAMES.map(frameWriter(KEY)));

test("frames arrive intact, however the engine and the connection split them", async () => {
  const bytes = written();
  for (const [block, chunk] of [
    [1, 1],
    [7, 3],
    [bytes.length, 5],
    [20, 1000],
  ] as const) {
    const { feed, frames, hangUp, over, ends } = opened();
    const blocks = Buffer.concat(
      Array.from({ length: Math.ceil(bytes.length / block) }, (_, at) =>
        muxed(bytes.subarray(at * block, (at + 1) * block)),
      ),
    );
    for (let at = 0; at < blocks.length; at += chunk) feed(blocks.subarray(at, at + chunk));
    hangUp();
    await over;
    assert.deepEqual([frames, ends], [FRAMES, ["the box has ended"]]);
  }
});

test("a stream cut at any byte yields the complete frames before it, then ends once", async () => {
  const bytes = muxed(written());
  const sizes = FRAMES.map(({ payload }) => 4 + 13 + payload.length + 16);
  for (let length = 0; length <= bytes.length; length += 1) {
    const { feed, frames, hangUp, over, ends } = opened();
    feed(bytes.subarray(0, length));
    hangUp();
    await over;
    // The engine's block is only whole at its end.
    assert.equal(frames.length, length === bytes.length ? sizes.length : 0);
    assert.equal(ends.length, 1);
  }
});

test("a forged frame ends the connection, and nothing after it is delivered", async () => {
  const write = frameWriter(KEY);
  const [good, bad, later] = FRAMES.map(write);
  assert.ok(good !== undefined && bad !== undefined && later !== undefined);
  bad[20] = (bad[20] ?? 0) ^ 1;
  const { feed, frames, over, ends, wire } = opened();
  feed(muxed(good));
  await turn();
  feed(Buffer.concat([muxed(bad), muxed(later)]));
  await over;
  assert.deepEqual([frames.length, ends], [1, ["a frame with a wrong tag"]]);
  wire.send({ type: 1, call: 1, payload: Buffer.alloc(0) });
  wire.close();
  await turn();
  assert.equal(ends.length, 1);
});

test("the last part of stderr is the reason of an end, and nothing else", async () => {
  const { feed, hangUp, over, ends, frames } = opened();
  feed(muxed(Buffer.from(`${"x".repeat(5000)} exec format error\n`), 2));
  feed(muxed(written().subarray(0, 40), 2));
  hangUp();
  await over;
  assert.equal(frames.length, 0);
  assert.match(ends[0] ?? "", /^the box has ended: x+ exec format error/);
  assert.ok((ends[0] ?? "").length < 2100);
});

test("while paused no frame is delivered, and each pause needs its own resume", async () => {
  const box: { wire?: FrameWire } = {};
  const { wire, feed, frames } = opened(({ call }) => call === 0 && box.wire?.pause());
  box.wire = wire;
  feed(muxed(written()));
  await turn();
  assert.equal(frames.length, 1);
  wire.pause();
  wire.resume();
  await turn();
  assert.equal(frames.length, 1);
  wire.resume();
  await turn();
  assert.deepEqual(frames, FRAMES);
});

test("an end on our side is reported as closed", async () => {
  const { wire, ends, over } = opened();
  wire.close();
  wire.close();
  await over;
  assert.deepEqual(ends, ["it was closed"]);
});

test("a failing listener ends the connection instead of the program", async () => {
  const { feed, over, ends } = opened(() => {
    throw new RangeError("a field is cut short");
  });
  feed(muxed(written()));
  await over;
  assert.deepEqual(ends, ["a field is cut short"]);
});

const FRAME_KEY = Buffer.alloc(32, 7);
const frame = (type: number, call: number, text: string): Frame => ({
  type,
  call,
  payload: Buffer.from(text),
});
const SAMPLES = [frame(1, 1, "one"), frame(0x86, 0xffff_ffff, ""), frame(2, 3, "x".repeat(70_000))];

const samplesWritten = (): Buffer => Buffer.concat(SAMPLES.map(frameWriter(FRAME_KEY)));

function readIn(bytes: Buffer, sizes: readonly number[]): readonly Frame[] {
  const [queue, read] = [new ByteQueue(), frameReader(FRAME_KEY)];
  const frames: Frame[] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    queue.push(bytes.subarray(at, at + size));
    at += size;
    frames.push(...read(queue));
  }
  return frames;
}

test("frames are decoded as they were encoded, however the bytes are split", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40_000 })), (sizes) => {
      assert.deepEqual(readIn(samplesWritten(), sizes), SAMPLES);
    }),
  );
});

test("a changed bit anywhere is a forgery, or leaves the reader waiting for more", () => {
  const bytes = samplesWritten().subarray(0, 200);
  const one = frameWriter(FRAME_KEY)(frame(1, 1, "one"));
  for (let at = 0; at < one.length * 8; at += 1) {
    const changed = Buffer.from(bytes);
    changed[at >> 3] = (changed[at >> 3] ?? 0) ^ (1 << (at & 7));
    const frames = ((): readonly Frame[] | "forged" => {
      try {
        return readIn(changed, []);
      } catch (thrown) {
        assert.ok(thrown instanceof ForgedFrame);
        return "forged";
      }
    })();
    assert.ok(frames === "forged" || frames.length === 0, `bit ${at}`);
  }
});

test("another key, a missing frame and a repeated frame are forgeries", () => {
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = SAMPLES.map(frameWriter(FRAME_KEY));
  const other = frameWriter(randomBytes(32))(frame(1, 1, "one"));
  for (const bytes of [other, second, Buffer.concat([first, first])])
    assert.throws(() => readIn(bytes, []), ForgedFrame);
});

const name = fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code));
const field = fc.tuple(name, fc.uint8Array({ maxLength: 300 }).map(Buffer.from.bind(Buffer)));

test("fields are decoded as they were encoded, in order", () => {
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      const decoded = decodeFields(encodeFields(fields)).map(({ name, bytes }) => [name, Buffer.from(bytes)]);
      assert.deepEqual(decoded, fields);
    }),
  );
});

test("a payload cut inside a field's bytes is an error, and one cut inside its head is left out", () => {
  const whole = encodeFields([
    ["a", "text"],
    ["n", 5],
  ]);
  const [first, second] = [5 + 4, 5 + 4 + 5 + 8];
  for (let length = 0; length < whole.length; length += 1) {
    const cut = whole.subarray(0, length);
    const inHead = length < 5 || (length >= first && length < first + 5);
    if (inHead) assert.equal(decodeFields(cut).length, length < first ? 0 : 1);
    else assert.throws(() => decodeFields(cut), RangeError, `${length} of ${second}`);
  }
});

test("a number has eight bytes, is whole, and is never rounded to mean no limit", () => {
  for (const [given, read] of [
    [0, 0],
    [1, 1],
    [0.2, 1],
    [1.5, 2],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])
    assert.equal(numberIn(decodeFields(encodeFields([["n", given ?? 0]])), "n"), read);
  for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => encodeFields([["n", wrong]]), RangeError);
  const short = decodeFields(encodeFields([["n", Buffer.alloc(4, 1)]]));
  assert.deepEqual(
    [numberIn(short, "n"), has(short, "n"), numberIn(short, "x"), has(short, "x")],
    [0, true, 0, false],
  );
});

test("text is UTF-8 or raw file name bytes, and the first of several fields is used", () => {
  const fields = decodeFields(
    encodeFields([
      ["t", "ä\uDCFF"],
      ["t", "second"],
    ]),
  );
  assert.deepEqual([...(fields[0]?.bytes ?? [])], [0xc3, 0xa4, 0xff]);
  assert.equal(textIn(fields, "t"), "ä\uFFFD");
  assert.equal(textIn(fields, "x"), "");
});
