import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { fc } from "../../fixtures/property.ts";
import {
  ByteQueue,
  ForgedFrame,
  type Frame,
  frameReader,
  frameWriter,
} from "../../../src/boxes/runner/runner-frames.ts";

const KEY = Buffer.alloc(32, 7);
const frame = (type: number, call: number, text: string): Frame => ({
  type,
  call,
  payload: Buffer.from(text),
});
const FRAMES = [frame(1, 1, "one"), frame(0x86, 0xffff_ffff, ""), frame(2, 3, "x".repeat(70_000))];

const written = (): Buffer => Buffer.concat(FRAMES.map(frameWriter(KEY)));

function readIn(bytes: Buffer, sizes: readonly number[]): readonly Frame[] {
  const [queue, read] = [new ByteQueue(), frameReader(KEY)];
  const frames: Frame[] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    queue.push(bytes.subarray(at, at + size));
    at += size;
    frames.push(...read(queue));
  }
  return frames;
}

test("frames come out as they went in, however the bytes are cut", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40_000 })), (sizes) => {
      assert.deepEqual(readIn(written(), sizes), FRAMES);
    }),
  );
});

test("a changed bit anywhere is a forgery, or makes the reader wait for what never comes", () => {
  const bytes = written().subarray(0, 200);
  const one = frameWriter(KEY)(frame(1, 1, "one"));
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

test("another key, a frame left out and a frame twice are forgeries", () => {
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = FRAMES.map(frameWriter(KEY));
  const other = frameWriter(randomBytes(32))(frame(1, 1, "one"));
  for (const bytes of [other, second, Buffer.concat([first, first])])
    assert.throws(() => readIn(bytes, []), ForgedFrame);
});
