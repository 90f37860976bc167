import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type Duplex, duplexPair } from "node:stream";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import {
  FRAME,
  MAX_STREAMS,
  FRAME_BYTES,
  RelayRubbish,
  RelayStreams,
  WINDOW_BYTES,
} from "../../src/boxes/relay-streams.ts";
import { fc } from "../fixtures/property.ts";

const frame = (type: number, id: number, payload: Buffer | string = ""): Buffer => {
  const bytes = Buffer.from(payload);
  const head = Buffer.alloc(9);
  head.writeUInt8(type, 0);
  head.writeUInt32LE(id, 1);
  head.writeUInt32LE(bytes.length, 5);
  return Buffer.concat([head, bytes]);
};
const READY = frame(FRAME.ready, 0);
const more = (id: number, bytes: number): Buffer => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32LE(bytes);
  return frame(FRAME.more, id, payload);
};

interface Said {
  readonly type: number;
  readonly id: number;
  readonly payload: Buffer;
}

/** The relay as a box would see it, and the far ends of what it connected to. */
function opened() {
  const near: Duplex[] = [];
  const far: Duplex[] = [];
  const streams = new RelayStreams(() => {
    const [one, other] = duplexPair({ allowHalfOpen: true, highWaterMark: FRAME_BYTES });
    other.on("error", () => undefined);
    near.push(one);
    far.push(other);
    return one;
  });
  const said: Said[] = [];
  const over = (async () => {
    for await (const bytes of streams.frames())
      said.push({ type: bytes.readUInt8(0), id: bytes.readUInt32LE(1), payload: bytes.subarray(9) });
  })();
  const dataOf = (id: number): Buffer =>
    Buffer.concat(
      said.filter((each) => each.type === FRAME.data && each.id === id).map(({ payload }) => payload),
    );
  const typesOf = (id: number): readonly number[] =>
    said.flatMap((each) => (each.id === id ? [each.type] : []));
  return { streams, near, far, said, over, dataOf, typesOf };
}

const settled = async (): Promise<void> => {
  for (let turns = 0; turns < 50; turns += 1) await turn();
};

test("each stream's data reaches only its own connection, however it is split, and either side may end first", async () => {
  const { streams, near, far, dataOf, typesOf } = opened();
  const bytes = Buffer.concat([
    READY,
    frame(FRAME.open, 1),
    frame(FRAME.open, 2),
    frame(FRAME.data, 2, "two"),
    frame(FRAME.data, 1, "one"),
    frame(FRAME.end, 1),
  ]);
  for (const byte of bytes) streams.take(Buffer.from([byte]));
  await streams.ready;
  const heard = far.map((each) => {
    const parts: Buffer[] = [];
    each.on("data", (part: Buffer) => parts.push(part));
    return parts;
  });
  await settled();
  assert.deepEqual(
    heard.map((parts) => Buffer.concat(parts).toString()),
    ["one", "two"],
  );
  assert.deepEqual([far[0]?.readableEnded, far[1]?.readableEnded], [true, false]);
  far[0]?.end("answer to the first");
  far[1]?.write("to the second");
  await settled();
  assert.deepEqual([dataOf(1), dataOf(2)].map(String), ["answer to the first", "to the second"]);
  assert.deepEqual(typesOf(1), [FRAME.data, FRAME.end, FRAME.close]);
  assert.deepEqual(typesOf(2), [FRAME.data]);
  far[1]?.end();
  await settled();
  assert.deepEqual(typesOf(2), [FRAME.data, FRAME.end]);
  streams.take(frame(FRAME.data, 2, "and more"));
  streams.take(frame(FRAME.close, 2));
  await settled();
  assert.deepEqual([streams.open, near[1]?.destroyed, typesOf(2).length], [0, true, 2]);
  // On its way before the box knew.
  streams.take(frame(FRAME.data, 1, "late"));
  streams.take(frame(FRAME.end, 1));
  streams.close();
});

test("no more is sent than the box has room for, nor read from the proxy, and streams take turns", async () => {
  const { streams, far, said, dataOf } = opened();
  streams.take(Buffer.concat([READY, frame(FRAME.open, 1), frame(FRAME.open, 2)]));
  const sent = randomBytes(WINDOW_BYTES * 3);
  let passed = false;
  // As a socket gives it: what waits fills a buffer to the brim, which would be told for ever.
  for (let at = 0; at < sent.length; at += FRAME_BYTES)
    far[0]?.write(sent.subarray(at, at + FRAME_BYTES), () => (passed = at + FRAME_BYTES >= sent.length));
  far[1]?.write(sent.subarray(0, FRAME_BYTES * 3));
  await settled();
  assert.deepEqual([dataOf(1).length, passed], [WINDOW_BYTES, false]);
  assert.ok(said.every(({ payload }) => payload.length <= FRAME_BYTES));
  // It had its pieces between those of the other.
  const last = said.findLastIndex(({ id }) => id === 2);
  assert.ok(last < said.length - 1 && dataOf(2).length === FRAME_BYTES * 3);
  streams.take(more(1, 10));
  await settled();
  assert.equal(dataOf(1).length, WINDOW_BYTES + 10);
  for (let rounds = 0; rounds < 2; rounds += 1) {
    streams.take(more(1, WINDOW_BYTES));
    await settled();
  }
  assert.ok(dataOf(1).equals(sent));
  streams.close();
});

test("data that the proxy has not read is limited to the window, which is refilled only after it is read", async () => {
  const { streams, far, typesOf } = opened();
  streams.take(Buffer.concat([READY, frame(FRAME.open, 1)]));
  const piece = Buffer.alloc(FRAME_BYTES, 1);
  for (let sent = 0; sent < WINDOW_BYTES; sent += FRAME_BYTES) streams.take(frame(FRAME.data, 1, piece));
  await settled();
  const before = typesOf(1).length;
  far[0]?.resume();
  await settled();
  assert.ok(typesOf(1).length > before);
  assert.ok(typesOf(1).every((type) => type === FRAME.more));
  streams.take(frame(FRAME.data, 1, piece));
  streams.close();
});

const full = Array.from({ length: WINDOW_BYTES / FRAME_BYTES }, () =>
  frame(FRAME.data, 1, Buffer.alloc(FRAME_BYTES)),
);

const RUBBISH: readonly (readonly [string, readonly Buffer[]])[] = [
  ["a frame before the first one", [frame(FRAME.open, 1)]],
  ["the first frame twice", [READY, READY]],
  ["a first frame with extra bytes", [frame(FRAME.ready, 0, "x")]],
  ["an unknown type", [READY, frame(FRAME.open, 1), frame(9, 1)]],
  ["an excessive length", [READY, frame(FRAME.open, 1), Buffer.from([2, 1, 0, 0, 0, 255, 255, 255, 255])]],
  ["a stream of number 0", [READY, frame(FRAME.open, 0)]],
  ["a stream that was never opened", [READY, frame(FRAME.open, 1), frame(FRAME.data, 2, "x")]],
  ["a number twice", [READY, frame(FRAME.open, 5), frame(FRAME.close, 5), frame(FRAME.open, 5)]],
  ["a decreasing number", [READY, frame(FRAME.open, 5), frame(FRAME.open, 4)]],
  ["no bytes at all", [READY, frame(FRAME.open, 1), frame(FRAME.data, 1)]],
  ["bytes beyond its window", [READY, frame(FRAME.open, 1), ...full, frame(FRAME.data, 1, "x")]],
  ["bytes after its end", [READY, frame(FRAME.open, 1), frame(FRAME.end, 1), frame(FRAME.data, 1, "x")]],
  ["two ends", [READY, frame(FRAME.open, 1), frame(FRAME.end, 1), frame(FRAME.end, 1)]],
  ["an end with extra bytes", [READY, frame(FRAME.open, 1), frame(FRAME.end, 1, "x")]],
  ["a window update beyond the window", [READY, frame(FRAME.open, 1), more(1, 1)]],
  ["a window update of the largest number", [READY, frame(FRAME.open, 1), more(1, 2 ** 32 - 1)]],
  ["an unreadable window update", [READY, frame(FRAME.open, 1), frame(FRAME.more, 1, "xxx")]],
  [
    "more streams than allowed",
    [READY, ...Array.from({ length: MAX_STREAMS + 1 }, (_, index) => frame(FRAME.open, index + 1))],
  ],
];

for (const [what, frames] of RUBBISH)
  test(`${what}: the relay ends with every connection`, async () => {
    const { streams, near, over } = opened();
    for (const each of frames.slice(0, -1)) streams.take(each);
    const last = frames.at(-1) ?? READY;
    assert.throws(() => streams.take(last), RelayRubbish);
    await over;
    await settled();
    assert.equal(streams.open, 0);
    assert.ok(near.every(({ destroyed }) => destroyed));
    const connected = near.length;
    streams.take(frame(FRAME.open, 1000));
    assert.equal(near.length, connected);
  });

test("streams that are closed as fast as they open never exceed the limit", async () => {
  const { streams, near } = opened();
  streams.take(READY);
  for (let id = 1; id <= 2000; id += 1) {
    streams.take(frame(FRAME.open, id));
    streams.take(frame(FRAME.close, id));
    assert.equal(streams.open, 0);
  }
  await settled();
  assert.deepEqual([near.length, near.every(({ destroyed }) => destroyed)], [2000, true]);
  // Those that the proxy closes count until the box can know of it, so that no word for it is kept beyond them.
  const deaf = new RelayStreams(() => {
    const [one, other] = duplexPair();
    one.destroy();
    other.destroy();
    return one;
  });
  deaf.take(READY);
  for (let id = 1; id <= MAX_STREAMS; id += 1) deaf.take(frame(FRAME.open, id));
  await settled();
  assert.throws(() => deaf.take(frame(FRAME.open, MAX_STREAMS + 1)), RelayRubbish);
  streams.close();
});

test("any input is accepted or refused with one kind of error, and nothing stays open after a refusal", () => {
  const any = fc.oneof(
    fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(fc.nat({ max: 6 }), fc.nat({ max: 4 }), fc.uint8Array({ maxLength: 8 }))
      .map(([type, id, bytes]) => frame(type, id, Buffer.from(bytes))),
  );
  fc.assert(
    fc.property(fc.array(any, { maxLength: 40 }), (all) => {
      const { streams } = opened();
      streams.take(READY);
      try {
        for (const bytes of all) streams.take(bytes);
        assert.ok(streams.open <= MAX_STREAMS);
      } catch (thrown) {
        assert.ok(thrown instanceof RelayRubbish, String(thrown));
        assert.equal(streams.open, 0);
      }
      streams.close();
    }),
  );
});
