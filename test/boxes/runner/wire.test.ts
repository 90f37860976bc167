import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { duplexPair } from "node:stream";
import { type Frame, frameWriter } from "../../../src/boxes/runner/runner-frames.ts";
import { greeting, openWire, type Wire } from "../../../src/boxes/runner/runner-wire.ts";
import { KEY, muxed } from "./scripted-runner.ts";

interface Opened {
  readonly wire: Wire;
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

test("frames arrive whatever way engine and connection cut them", async () => {
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

test("a stream cut at any byte gives the whole frames before it, then ends once", async () => {
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

test("a forged frame ends the wire, and nothing behind it is heard", async () => {
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

test("what is said on stderr is the reason of an end, its last part, and nothing else", async () => {
  const { feed, hangUp, over, ends, frames } = opened();
  feed(muxed(Buffer.from(`${"x".repeat(5000)} exec format error\n`), 2));
  feed(muxed(written().subarray(0, 40), 2));
  hangUp();
  await over;
  assert.equal(frames.length, 0);
  assert.match(ends[0] ?? "", /^the box has ended: x+ exec format error/);
  assert.ok((ends[0] ?? "").length < 2100);
});

test("while it is paused no frame is handed on, and each pause takes its resume", async () => {
  const box: { wire?: Wire } = {};
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

test("closed by us, it says so", async () => {
  const { wire, ends, over } = opened();
  wire.close();
  wire.close();
  await over;
  assert.deepEqual(ends, ["it was closed"]);
});

test("a listener that fails ends the wire instead of the program", async () => {
  const { feed, over, ends } = opened(() => {
    throw new RangeError("a field is cut short");
  });
  feed(muxed(written()));
  await over;
  assert.deepEqual(ends, ["a field is cut short"]);
});
