import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import { type MessageLine, messageLines } from "../../src/extensions/message-lines.ts";

async function all(lines: AsyncIterable<MessageLine>): Promise<readonly MessageLine[]> {
  const found: MessageLine[] = [];
  for await (const line of lines) found.push(line);
  return found;
}

async function read(chunks: readonly (string | Buffer)[], max?: number): Promise<readonly MessageLine[]> {
  const input = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  return all(messageLines(input, max));
}

const message = (value: unknown): MessageLine => ({ kind: "message", value });
const noJson: MessageLine = { kind: "unreadable", why: "not JSON" };

test("messages are read one per line, however they are split, and the last needs no line end", async () => {
  assert.deepEqual(await read(['{"a":1}\n{"b"', ":2}\n", "\n  \r\n", "[3]"]), [
    message({ a: 1 }),
    message({ b: 2 }),
    message([3]),
  ]);
});

test("a character split across chunks stays one character", async () => {
  const bytes = Buffer.from('"é"\n');
  assert.deepEqual(await read([bytes.subarray(0, 2), bytes.subarray(2)]), [message("é")]);
});

test("invalid JSON is reported, and what follows is read", async () => {
  assert.deepEqual(await read(["{oops\n", '{"a":1}\n', "\u0000\u0001\n"]), [
    noJson,
    message({ a: 1 }),
    noJson,
  ]);
});

test("a line that is too long is dropped, and what follows is read", async () => {
  const long = `"${"x".repeat(1024 * 1024)}`;
  const [first, second, third] = await read([long, long, long, '"\n', '{"a":1}\n', long], 1024 * 1024);
  assert.deepEqual(first, { kind: "unreadable", why: "a message larger than 1 MiB" });
  assert.deepEqual(second, message({ a: 1 }));
  assert.deepEqual(third, { kind: "unreadable", why: "a message larger than 1 MiB" });
});

test("a message of the maximum size is read", async () => {
  const text = "x".repeat(1024 * 1024 - 2);
  assert.deepEqual(await read([`"${text}"\n`], 1024 * 1024), [message(text)]);
});

const nested = (levels: number): string => `${'[{"a\\"[[":'.repeat(levels / 2)}1${"}]".repeat(levels / 2)}`;

test("a message nested too deeply is reported, and what follows is read", async () => {
  const deep: MessageLine = { kind: "unreadable", why: "a message nested more than 100 levels deep" };
  const most = nested(100);
  assert.deepEqual(
    await read([`${nested(102)}\n${most}\n`, `${nested(400_000)}\n`, `"${"[".repeat(200)}"`]),
    [deep, message(JSON.parse(most)), deep, message("[".repeat(200))],
  );
});

async function* broken(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"a":1}\n');
  throw new Error("EIO");
}

test("an input error is an end", async () => {
  assert.deepEqual(await all(messageLines(broken())), [message({ a: 1 })]);
});
