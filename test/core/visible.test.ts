import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc } from "../fixtures/property.ts";
import { activeIn } from "../fixtures/hostile.ts";
import {
  inertJson,
  lastStates,
  visible,
  visibleLine,
  visiblePieces,
  visibleStream,
  withoutEmojiParts,
} from "../../src/core/visible.ts";

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
  "\uD800a\uDC00": "<U+D800>a<U+DC00>",
  "a\uFE0F\uFE00\u{E0100}": "a<U+FE0F><U+FE00><U+E0100>",
  "\u115F\u1160\u3164\uFFA0\u2800\u034F\u17B4\u180B\u180E":
    "<U+115F><U+1160><U+3164><U+FFA0><U+2800><U+034F><U+17B4><U+180B><U+180E>",
  "\uE000\u{F0000}\u0378\uFFFF\u2028\u2029\uFEFF":
    "<U+E000><U+F0000><U+0378><U+FFFF><U+2028><U+2029><U+FEFF>",
  "❤\uFE0F ☎\uFE0E 1\uFE0F\u20E3 👩🏽\u200D💻 🏳\uFE0F\u200D🌈":
    "❤\uFE0F ☎\uFE0E 1\uFE0F\u20E3 👩🏽\u200D💻 🏳\uFE0F\u200D🌈",
  "❤\uFE0F\uFE0F 1\uFE0F 👩\u200Da b\u200D💻 💻\u200D":
    "❤\uFE0F<U+FE0F> 1<U+FE0F> 👩<U+200D>a b<U+200D>💻 💻<U+200D>",
};

for (const [text, shown] of Object.entries(SHOWN))
  test(`${JSON.stringify(text)} is shown as ${JSON.stringify(shown)}`, () => {
    assert.equal(visible(text), shown);
  });

test("a long text is shown the same, wherever its pieces end", () => {
  const piece = "\u{E0041}\r\n\u001B😀\r\u0000ab";
  assert.equal(visible(piece.repeat(70_001)), visible(piece).repeat(70_001));
  for (const shift of [1, 2, 3])
    assert.equal(
      visible("x".repeat(shift) + piece.repeat(20_000)),
      "x".repeat(shift) + visible(piece).repeat(20_000),
    );
});

test("a stream shows the same as the whole text, wherever it is split, and never a control character", () => {
  const texts = fc.oneof(anyText(), fc.constantFrom(...Object.keys(SHOWN)));
  fc.assert(
    fc.property(texts, fc.nat(20), (text, cut) => {
      const bytes = Buffer.from(text);
      const stream = visibleStream();
      const out = stream.push(bytes.subarray(0, cut)) + stream.push(bytes.subarray(cut)) + stream.end();
      assert.equal(out, visible(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)));
      assert.equal(activeIn(Buffer.from(withoutEmojiParts(out))), undefined);
    }),
  );
});

test("pieces that split a character, a line end or an emoji show the same as the whole", () => {
  for (const text of Object.keys(SHOWN)) {
    const pieces = visiblePieces();
    const out = text.split("").map((unit) => pieces.push(unit));
    assert.equal(out.join("") + pieces.end(), visible(text));
  }
});

test("a line of JSON keeps its meaning and contains no control character", () => {
  const value = {
    "\u009B": ["\u001B[31m\u007F\u202E", "\u{E0041}", "plain ä\n", "❤\uFE0F\u3164\uE000\uD800"],
  };
  const line = inertJson(value);
  assert.deepEqual(JSON.parse(line), value);
  assert.match(line, /^[\u0020-\u007Eä❤]+$/);
});

test("a long field is read only as far as it is shown, and no character is split", () => {
  const far = "a".repeat(400);
  assert.equal(visibleLine(far), far);
  assert.equal(visibleLine(`${far}b`), `${far}…`);
  assert.equal(visibleLine("\r\n".repeat(500)), `${"\u240A".repeat(400)}…`);
  assert.equal(visibleLine(`${"a".repeat(399)}\u{1F600}b`), `${"a".repeat(399)}…`);
  const read: number[] = [];
  const huge = "x".repeat(2 ** 20);
  const counted = {
    slice: (from: number, to: number) => (read.push(to - from), huge.slice(from, to)),
  } as unknown as string;
  assert.equal(visibleLine(counted).length, 401);
  assert.ok(read.every((length) => length < 1000));
});

const LEFT: Readonly<Record<string, string>> = {
  "10%\r50%\r100%\ndone": "100%\ndone",
  "10%\r100%\r\n": "100%\n",
  "10%\r100%\r": "100%",
  "a\r\r\nb\r\n": "a\nb\n",
  "\r\r\n": "\n",
  plain: "plain",
};

for (const [text, left] of Object.entries(LEFT))
  test(`${JSON.stringify(text)} becomes ${JSON.stringify(left)}`, () => {
    assert.equal(lastStates(text), left);
  });
