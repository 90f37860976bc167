import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../../fixtures/property.ts";
import { type SseEvent, SseReader } from "../../../src/models/providers/api-request.ts";

function read(...chunks: readonly (string | Uint8Array)[]): readonly SseEvent[] {
  const reader = new SseReader();
  return [...chunks.flatMap((chunk) => reader.push(Buffer.from(chunk as string))), ...reader.end()];
}

const data = (...texts: readonly string[]): readonly SseEvent[] =>
  texts.map((text) => ({ event: "", data: text }));

const STREAMS: readonly (readonly [string, string, readonly SseEvent[]])[] = [
  ["events end at a blank line", "data: a\n\ndata: b\n\n", data("a", "b")],
  [
    "the space after the colon is optional, and only one is removed",
    "data:a\n\ndata:  b\n\n",
    data("a", " b"),
  ],
  ["lines may end in CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")],
  ["lines may end in CR", "data: a\r\rdata: b\r\r", data("a", "b")],
  ["line ends may be mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", data("a", "b", "c")],
  ["lines of data are joined", "data: a\ndata:\ndata: b\n\n", data("a\n\nb")],
  ["comments are ignored", ": PROCESSING\n\ndata: a\n: still\n\n:\n\n", data("a")],
  ["an event has a name", "event: ping\ndata: {}\n\n", [{ event: "ping", data: "{}" }]],
  ["a name applies to its own event only", "event: x\n\ndata: a\n\n", data("a")],
  ["other fields are ignored", "id: 7\nretry: 10\nfoo: bar\nfoo\ndata: a\n\n", data("a")],
  ["the last blank line may be missing", "data: a\n\ndata: b", data("a", "b")],
  ["a byte order mark is ignored", "\u{FEFF}data: a\n\n", data("a")],
  ["a field called error is an error", 'error: {"code":500}\n\n', [{ event: "error", data: '{"code":500}' }]],
  ["a bare JSON line is data", '{"error":"x"}\n', data('{"error":"x"}')],
  ["empty data is an event", "data:\n\n", data("")],
  ["blank lines are no event", "\n\n\r\n", []],
];

for (const [sentence, text, events] of STREAMS)
  test(`server-sent events: ${sentence}`, () => {
    assert.deepEqual(read(text), events);
    const bytes = Buffer.from(text);
    for (const size of [1, 2, 3]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      assert.deepEqual(read(...chunks), events, `in chunks of ${size}`);
    }
  });

test("any split of any stream gives the same events", () => {
  const line = fc.constantFrom(
    "data: é🙂",
    "data:",
    "data: x",
    "event: e",
    ": c",
    "",
    "id: 1",
    "data: \u{E0FF}",
  );
  const end = fc.constantFrom("\n", "\r\n", "\r");
  const stream = fc.array(fc.tuple(line, end), { maxLength: 20 }).map((lines) => lines.flat().join(""));
  fc.assert(
    fc.property(stream, fc.array(fc.nat(60), { maxLength: 10 }), (text, cuts) => {
      const bytes = Buffer.from(text);
      const places = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length];
      const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
      assert.deepEqual(read(...chunks), read(text));
    }),
  );
});

test("an event of ten megabytes in small chunks is read as one", () => {
  const text = "0123456789abcdef".repeat(10 * 2 ** 16);
  const bytes = Buffer.from(`data: ${text}\n\n`);
  const chunks = Array.from({ length: Math.ceil(bytes.length / 16_384) }, (_, at) =>
    bytes.subarray(at * 16_384, (at + 1) * 16_384),
  );
  const [only, ...others] = read(...chunks);
  assert.ok(only?.data === text);
  assert.deepEqual(others, []);
});

test("invalid UTF-8 becomes a replacement mark", () => {
  assert.deepEqual(read("data: a", Buffer.of(0xff), "b\n\n"), data("a\u{FFFD}b"));
});

test("an endless event is a failure", () => {
  const reader = new SseReader();
  const mega = Buffer.from(`data: ${"x".repeat(2 ** 20)}\n`);
  assert.throws(() => {
    for (let count = 0; count < 80; count += 1) reader.push(mega);
  }, /endless/);
});

test("a line that does not belong in an event stream is remembered", () => {
  const reader = new SseReader();
  reader.push(Buffer.from("<html>hello\n"));
  assert.equal(reader.stray, "<html>hello");
});
