import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../../fixtures/property.ts";
import {
  decodeFields,
  encodeFields,
  has,
  numberIn,
  textIn,
} from "../../../src/boxes/runner/runner-frames.ts";

const name = fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code));
const field = fc.tuple(name, fc.uint8Array({ maxLength: 300 }).map(Buffer.from.bind(Buffer)));

test("fields come out as they went in, in their order", () => {
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      const decoded = decodeFields(encodeFields(fields)).map(({ name, bytes }) => [name, Buffer.from(bytes)]);
      assert.deepEqual(decoded, fields);
    }),
  );
});

test("a payload that is cut anywhere inside a field's bytes is an error, inside its head it is left out", () => {
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

test("a number is eight bytes, whole, and never rounded to no limit", () => {
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

test("text is UTF-8 with the bytes of file names that are none; of several the first counts", () => {
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
