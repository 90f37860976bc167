// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { fc, part } from "../fixtures/property.ts";
import {
  asCount,
  asFields,
  asList,
  asText,
  bytesOfText,
  fieldsIn,
  fieldsOf,
  textOfBytes,
} from "../../src/core/raw-data.ts";

const back = (bytes: Buffer): Buffer => bytesOfText(textOfBytes(bytes));

test("any bytes survive conversion to text and back, also through JSON", () => {
  const any = fc.uint8Array({ maxLength: 40 });
  const likely = fc.array(
    fc.constantFrom(0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xb2, 0xef, 0xbf, 0xbd, 65),
  );
  fc.assert(
    fc.property(fc.oneof(any, likely), (given) => {
      const bytes = Buffer.from(given);
      assert.deepEqual(back(bytes), bytes);
      assert.deepEqual(bytesOfText(JSON.parse(JSON.stringify(textOfBytes(bytes))) as string), bytes);
    }),
    { numRuns: part(2000) },
  );
});

test("different bytes are different texts", () => {
  const pairs = fc.tuple(fc.uint8Array({ maxLength: 8 }), fc.uint8Array({ maxLength: 8 }));
  fc.assert(
    fc.property(pairs, ([a, b]) => {
      const [one, other] = [Buffer.from(a), Buffer.from(b)];
      assert.equal(textOfBytes(one) === textOfBytes(other), one.equals(other));
    }),
  );
});

test("valid names are plain text, and a stray byte becomes a surrogate", () => {
  for (const name of ["plain", "ä€😀", "a\nb", "\uFFFD is a character too"]) {
    assert.equal(textOfBytes(Buffer.from(name)), name);
    assert.deepEqual(bytesOfText(name), Buffer.from(name));
  }
  assert.equal(textOfBytes(Buffer.from([0x61, 0xff, 0xc3, 0xa4, 0xc3])), "a\uDCFFä\uDCC3");
  // Overlong, a surrogate and beyond Unicode: each of their bytes stands alone.
  for (const bytes of [
    [0xc0, 0xaf],
    [0xed, 0xb2, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
  ])
    assert.equal(textOfBytes(Buffer.from(bytes)).length, bytes.length);
});

const OTHERS = [null, undefined, 1, "a", true, [1]];

test("a value that is not an object has no fields", () => {
  assert.deepEqual(
    OTHERS.map(fieldsOf),
    OTHERS.map(() => ({})),
  );
  assert.deepEqual(
    OTHERS.map(asFields),
    OTHERS.map(() => undefined),
  );
  assert.deepEqual(fieldsOf({ a: 1 }), { a: 1 });
});

test("a value of another kind counts as missing", () => {
  assert.deepEqual([asList([1]), asList({ 0: 1 }), asList("a")], [[1], [], []]);
  assert.deepEqual([asText("a"), asText(""), asText(1)], ["a", undefined, undefined]);
  assert.deepEqual(
    [asCount(0), asCount(-1), asCount(Number.NaN), asCount("1")],
    [0, undefined, undefined, undefined],
  );
});

test("the object in a text is read with and without a byte order mark, and other texts contain none", () => {
  assert.deepEqual(fieldsIn('\uFEFF{"a": 1}'), { a: 1 });
  assert.deepEqual(['{"a": 1', "[1]", "", "null"].map(fieldsIn), [{}, {}, {}, {}]);
});
