import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { cellsOf, widthOf } from "../../src/render/tty/columns.ts";
import { markedLines } from "../../src/render/policy-lines.ts";

/** What a terminal would show. */
const drawn = (text: string, span: readonly [number, number], width = 80): readonly string[] =>
  markedLines(text, span, width).flatMap(({ line, blanks, marks }) => [line, blanks + marks]);

for (const [what, text, part, lines] of [
  ["plain text", "ls && rm x", "rm x", ["ls && rm x", "      ^^^^"]],
  ["wide characters before it", 'echo "日本" .env', ".env", ['echo "日本" .env', "            ^^^^"]],
  ["wide characters in it", "cat 日本 x", "日本", ["cat 日本 x", "    ^^^^"]],
  ["an emoji and a combining mark", "echo 😀 e\u0301 x", "x", ["echo 😀 e\u0301 x", "          ^"]],
  ["half-width kana", "echo ｶﾅ x", "x", ["echo ｶﾅ x", "        ^"]],
  ["tabs", "cat\t.env", ".env", ["cat     .env", "        ^^^^"]],
  ["characters that are displayed as others", "ls \u001B[1m x", "x", ["ls ␛[1m x", "        ^"]],
  ["several lines", "a\nb 'c\nd' e", "'c\nd'", ["b 'c", "  ^^", "d' e", "^^"]],
] as const)
  test(`marks are placed below ${what}`, () => {
    const at = text.indexOf(part);
    assert.deepEqual(drawn(text, [at, at + part.length]), lines);
  });

test("an empty span is marked at its position, and an empty text not at all", () => {
  assert.deepEqual(drawn("if x", [4, 4]), ["if x", "    ^"]);
  assert.deepEqual(drawn("", [0, 0]), []);
});

test("a long line is cut around the span", () => {
  const text = `${"a ".repeat(50)}.env${" b".repeat(50)}`;
  assert.deepEqual(drawn(text, [100, 104], 40), [
    "…a a a a a a a a a a .env b b b b b b b…",
    "                     ^^^^",
  ]);
  assert.deepEqual(drawn(text, [203, 204], 40), [
    "… b b b b b b b b b b b b b b b b b b b",
    "                                      ^",
  ]);
});

test("only the part of an endless line near the span is examined", () => {
  const text = "a ".repeat(1_000_000);
  assert.deepEqual(drawn(text, [1_000_000, 1_000_001], 40), [
    "…a a a a a a a a a a a a a a a a a a a …",
    "                     ^",
  ]);
  assert.deepEqual(drawn(text, [0, text.length], 40), [`${"a ".repeat(19)}a…`, "^".repeat(39)]);
});

test("no line is too wide", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", "日", "\t", "😀", "\u0301", "\u200B", "x ") });
  fc.assert(
    fc.property(texts, fc.nat(60), fc.nat(60), fc.integer({ min: 40, max: 60 }), (text, a, b, width) => {
      for (const { line } of markedLines(text, [Math.min(a, b), Math.max(a, b)], width))
        assert.ok(widthOf(cellsOf(line)) <= width, line);
    }),
  );
});
