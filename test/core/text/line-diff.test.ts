import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../../fixtures/property.ts";
import { linesIn, MAX_LINE_LENGTH } from "../../../src/core/text/line-diff.ts";

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function linesOf(text: string, size = 7): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of linesIn(inPieces(new TextEncoder().encode(text), size))) lines.push(line);
  return lines;
}

for (const [text, lines] of [
  ["", []],
  ["a", ["a"]],
  ["a\n", ["a"]],
  ["\n\na", ["", "", "a"]],
  ["a\r\nb\rc\n", ["a\r", "b\rc"]],
  ["a\u2028b\u2029c\u0085d\n", ["a\u2028b\u2029c\u0085d"]],
  ["\uFEFF{}\n\uFEFF", ["{}", "\uFEFF"]],
] as const)
  test(`${JSON.stringify(text)} has the lines ${JSON.stringify(lines)}`, async () => {
    assert.deepEqual(await linesOf(text), lines);
  });

test("the lines are the same wherever the bytes are split", async () => {
  const units = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "ä", "😀", "\u2028") });
  await fc.assert(
    fc.asyncProperty(units, fc.integer({ min: 1, max: 9 }), async (text, size) => {
      const lines = text.split("\n");
      if (lines.at(-1) === "") lines.pop();
      assert.deepEqual(await linesOf(text, size), lines);
    }),
  );
});

test("a line that is too long is cut with a mark, and does not affect the next one", async () => {
  const lines = await linesOf(
    `${"1".repeat(MAX_LINE_LENGTH + 1)}\n${"2".repeat(MAX_LINE_LENGTH)}\n3`,
    2 ** 16,
  );
  assert.deepEqual(
    lines.map((line) => [line.length, line.at(-1)]),
    [
      [MAX_LINE_LENGTH + 1, "…"],
      [MAX_LINE_LENGTH, "2"],
      [1, "3"],
    ],
  );
});
