import assert from "node:assert/strict";
import test from "node:test";
import {
  judgeHello,
  LONGEST_HELLO,
  MOST_RECORDS,
  readClientHello,
} from "../../../src/docker/egress/tunnel.ts";
import { clientHello } from "../../fixtures/egress.ts";
import { fc } from "../../fixtures/property.ts";

const HELLO = await clientHello({ servername: "Example.ORG" });
const MESSAGE = HELLO.subarray(5);

/** The message in records of these sizes; the last has the rest. */
function records(message: Buffer, sizes: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, message.length]) {
    const part = message.subarray(at, at + size);
    if (part.length > 0) parts.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
    at += size;
  }
  return Buffer.concat(parts);
}

const vector = (size: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(size);
  head.writeUIntBE(body.length, 0, size);
  return Buffer.concat([head, body]);
};
const extension = (type: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from([type >> 8, type & 255]), vector(2, body)]);
const named = (...names: readonly string[]): Buffer =>
  extension(
    0,
    vector(
      2,
      Buffer.concat(names.map((name) => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name))]))),
    ),
  );

/** A hello with these extensions; null has no list of such at all. */
function made(extensions: readonly Buffer[] | null): Buffer {
  const body = Buffer.concat([
    Buffer.alloc(34),
    vector(1, Buffer.alloc(32)),
    vector(2, Buffer.from([19, 1])),
    vector(1, Buffer.from([0])),
    ...(extensions === null ? [] : [vector(2, Buffer.concat(extensions))]),
  ]);
  return records(Buffer.concat([Buffer.from([1]), vector(3, body)]), []);
}

/** The name, or the rule that speaks against it. */
function read(bytes: Buffer): string | null {
  const found = readClientHello(bytes);
  return found.kind === "hello"
    ? found.serverName
    : found.kind === "denied"
      ? `! ${found.denial.rule}`
      : "more";
}

test("the name of a hello is read, in one spelling", () => {
  assert.equal(read(HELLO), "example.org");
  assert.equal(read(made([named("Example.Org.")])), "example.org");
  assert.equal(read(made([])), null);
  assert.equal(read(made(null)), null);
});

test("a hello that is cut into records anywhere is read as the same one, and none of its beginnings is", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 6 }), (sizes) => {
      const bytes = records(MESSAGE, sizes);
      assert.equal(read(bytes), "example.org");
      for (let length = 0; length < bytes.length; length += 7)
        assert.equal(read(bytes.subarray(0, length)), "more");
    }),
    { numRuns: 50 },
  );
});

for (const [what, bytes, expected] of [
  ["two names in one list", made([named("example.org", "other.test")]), "! sni"],
  ["two lists of names", made([named("example.org"), named("other.test")]), "! sni"],
  ["an empty name", made([named("")]), "! not-tls"],
  ["an empty list", made([extension(0, vector(2, Buffer.alloc(0)))]), "! not-tls"],
  [
    "a name of another kind",
    made([extension(0, vector(2, Buffer.concat([Buffer.from([1]), vector(2, Buffer.from("a"))])))]),
    "! not-tls",
  ],
  ["an extension twice", made([extension(10, Buffer.alloc(2)), extension(10, Buffer.alloc(2))]), "! not-tls"],
  ["lengths that do not fit", made([extension(0, Buffer.from([0, 200, 0]))]), "! not-tls"],
  ["a record that is none", Buffer.from("GET / HTTP/1.1\r\n"), "! not-tls"],
  ["a record of data", Buffer.from([23, 3, 3, 0, 1, 0]), "! not-tls"],
  ["another message first", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), "! not-tls"],
  ["an old version's hello", Buffer.from([0x80, 0x2e, 1, 3, 1]), "! not-tls"],
  ["an empty record", Buffer.from([22, 3, 1, 0, 0]), "! not-tls"],
  ["a message of megabytes", Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255]), "! sni"],
  [
    "another record in between",
    Buffer.concat([records(MESSAGE, []).subarray(0, 5), MESSAGE.subarray(0, 20)]),
    "more",
  ],
] as const)
  test(`a hello with ${what} is ${expected}`, () => {
    assert.equal(read(bytes), expected);
  });

test("a hello that does not end is refused before it is long", () => {
  const bytes = records(
    Buffer.concat([Buffer.from([1, 0, 0x3f, 0xff]), Buffer.alloc(LONGEST_HELLO - 100)]),
    [5000, 5000],
  );
  assert.equal(read(bytes), "more");
  assert.equal(read(Buffer.concat([bytes, Buffer.from([22, 3, 1, 0x3f, 0]), Buffer.alloc(80)])), "! sni");
});

const pieces = (count: number): Buffer => records(MESSAGE, Array<number>(count - 1).fill(1));

test("a hello in more records than any program makes is refused, however short they are", () => {
  assert.equal(read(pieces(MOST_RECORDS)), "example.org");
  assert.equal(read(pieces(MOST_RECORDS + 1)), "! not-tls");
});

test("any bytes are read without harm", () => {
  const changed = fc
    .tuple(fc.nat(HELLO.length - 1), fc.nat(255), fc.nat(HELLO.length))
    .map(([at, byte, length]) => {
      const bytes = Buffer.from(HELLO);
      bytes[at] = byte;
      return bytes.subarray(0, length);
    });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), changed), (bytes) => {
      assert.notEqual(read(Buffer.from(bytes)), undefined);
    }),
    { numRuns: 1000 },
  );
});

function rule(bytes: Buffer, host: string, literal = false): string {
  const found = readClientHello(bytes);
  assert.equal(found.kind, "hello");
  return judgeHello(found, host, literal)?.rule ?? "";
}

test("the name is that of the tunnel, and an encrypted hello hides no other", () => {
  const encrypted = extension(0xfe_0d, Buffer.alloc(40));
  assert.equal(rule(HELLO, "example.org"), "");
  assert.equal(rule(HELLO, "a.example.org"), "sni");
  assert.equal(rule(made([]), "example.org"), "sni");
  assert.equal(rule(made([]), "10.0.0.1", true), "");
  assert.equal(rule(made([named("10.0.0.1")]), "10.0.0.1", true), "sni");
  assert.equal(rule(made([named("example.org"), encrypted]), "example.org"), "");
  assert.equal(rule(made([named("front.test"), encrypted]), "example.org"), "sni");
});
