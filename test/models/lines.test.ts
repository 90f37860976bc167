import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import test from "node:test";
import { linesOf } from "../../src/models/http-request.ts";

const TEXT = '{"a":"ö🙂"}\n\n \r\n{"b":"\u{FFFD}"}\n{"c":1}';
const LINES = ['{"a":"ö🙂"}', '{"b":"\u{FFFD}"}', '{"c":1}'];

async function linesIn(chunks: readonly Buffer[], longest = 1000): Promise<readonly string[]> {
  const lines: string[] = [];
  const stream = Readable.from(chunks) as IncomingMessage;
  for await (const line of linesOf(stream, { longest })) lines.push(line);
  return lines;
}

for (const size of [1, 2, 3, 7, 1000])
  test(`pieces of ${size} bytes give the same lines`, async () => {
    const bytes = Buffer.from(TEXT);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    assert.deepEqual(await linesIn(chunks), LINES);
  });

test("a character cut by the end, and invalid bytes, are replaced by a mark", async () => {
  assert.deepEqual(await linesIn([Buffer.of(0x61, 0xff, 0x62, 0x0a, 0x63, 0xf0, 0x9f)]), [
    "a\u{FFFD}b",
    "c\u{FFFD}",
  ]);
});

test("an endless line is refused", async () => {
  const endless = Array.from({ length: 50 }, () => Buffer.from("x".repeat(100)));
  await assert.rejects(linesIn(endless), /endless/);
});
