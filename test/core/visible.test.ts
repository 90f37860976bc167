import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { visible, inertJson, visibleStream } from "../../src/core/visible.ts";

const SHOWN: Readonly<Record<string, string>> = {
  "plain é 😀\n\ttab": "plain é 😀\n\ttab",
  "\u001B[31mred\u001B[0m": "␛[31mred␛[0m",
  "\u001B]2;title\u0007": "␛]2;title␇",
  "line\r\nnext": "line\nnext",
  "over\rwritten": "over␍written",
  "\u009B31m": "<U+009B>31m",
  "a\u202Eb\u2066c": "a<U+202E>b<U+2066>c",
  "tag\u{E0041}": "tag<U+E0041>",
  "\u007F\u0000": "␡␀",
};

for (const [text, shown] of Object.entries(SHOWN))
  test(`${JSON.stringify(text)} is shown as ${JSON.stringify(shown)}`, () => {
    assert.equal(visible(text), shown);
  });

test("a long text is shown the same, wherever a piece of it ends", () => {
  const piece = "\u{E0041}\r\n\u001B😀\r\u0000ab";
  assert.equal(visible(piece.repeat(70_001)), visible(piece).repeat(70_001));
  for (const shift of [1, 2, 3])
    assert.equal(
      visible("x".repeat(shift) + piece.repeat(20_000)),
      "x".repeat(shift) + visible(piece).repeat(20_000),
    );
});

test("a stream shows the same as the whole text, wherever it is cut, and never a control", () => {
  const texts = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...Object.keys(SHOWN)));
  fc.assert(
    fc.property(texts, fc.nat(20), (text, cut) => {
      const bytes = Buffer.from(text);
      const stream = visibleStream();
      const out = stream.push(bytes.subarray(0, cut)) + stream.push(bytes.subarray(cut)) + stream.end();
      assert.equal(out, visible(new TextDecoder("utf-8").decode(bytes)));
      assert.doesNotMatch(out, /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/);
    }),
  );
});

test("a line of JSON keeps its meaning and holds no control", () => {
  const value = { "\u009B": ["\u001B[31m\u007F\u202E", "\u{E0041}", "plain ä\n"] };
  const line = inertJson(value);
  assert.deepEqual(JSON.parse(line), value);
  assert.match(line, /^[\u0020-\u007Eä]+$/);
});
