// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { spawnSync } from "node:child_process";
import { link, open, symlink, writeFile } from "node:fs/promises";
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
  untar,
} from "../../src/core/raw-data.ts";
import { scratch } from "../fixtures/scratch.ts";

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

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function entries(archive: Buffer, size = 7): Promise<readonly (readonly [string, string, string])[]> {
  const found: [string, string, string][] = [];
  for await (const each of untar(inPieces(archive, size)))
    if (Buffer.isBuffer(each)) {
      const last = found.at(-1) ?? assert.fail();
      last[2] += each.toString("latin1");
    } else found.push([each.name.toString("latin1"), each.type, ""]);
  return found;
}

const inOneText = (entry: readonly string[]): string => JSON.stringify(entry);

const skip = spawnSync("tar", ["--version"]).status === 0 ? false : "no tar is here";

for (const format of ["gnu", "pax", "ustar"])
  test(`${format}: names of all lengths, and contents in pieces of any size`, { skip }, async () => {
    const long = "n".repeat(90);
    const longer = "m".repeat(200);
    const names = format === "ustar" ? [long] : [long, longer, "new\nline", "bad\xff"];
    await using place = await scratch();
    for (const name of names)
      await writeFile(Buffer.from(`${place.path}/${name}`, "latin1"), `in ${name.slice(0, 3)}`);
    const { stdout } = spawnSync("tar", ["-c", `--format=${format}`, "-C", place.path, "."]);
    for (const size of [1, 511, 512, 100_000]) {
      const files = (await entries(stdout, size)).filter(([, type]) => type === "file");
      const expected = names.map((name) => [`./${name}`, "file", `in ${name.slice(0, 3)}`]);
      assert.deepEqual(new Set(files.map(inOneText)), new Set(expected.map(inOneText)), String(size));
    }
  });

for (const format of ["gnu", "pax"])
  test(`${format}: names and targets that are not UTF-8 keep their bytes, and hard links refer to their first name`, async (t) => {
    if (skip !== false) return t.skip(skip);
    await using place = await scratch();
    const at = (name: string): Buffer => Buffer.from(`${place.path}/${name}`, "latin1");
    const [name, long, target] = ["caf\xe9", "\xff".repeat(200), "to\xe9".repeat(60)];
    await writeFile(at(name), "one");
    await writeFile(at(long), "two");
    await link(at(name), at("hard\xe8"));
    await symlink(Buffer.from(target, "latin1"), at("soft"));
    const order = [name, long, "hard\xe8", "soft"].map((each) => `./${each}`);
    const args = ["-c", `--format=${format}`, "-C", place.path, "--null", "--verbatim-files-from", "-T", "-"];
    const input = Buffer.from(order.map((each) => `${each}\0`).join(""), "latin1");
    const found: (readonly [string, string, string])[] = [];
    for await (const each of untar(inPieces(spawnSync("tar", args, { input }).stdout, 700)))
      if (!Buffer.isBuffer(each))
        found.push([each.name.toString("latin1"), each.type, each.target.toString("latin1")]);
    assert.deepEqual(found, [
      [`./${name}`, "file", ""],
      [`./${long}`, "file", ""],
      ["./hard\xe8", "same", `./${name}`],
      ["./soft", "link", target],
    ]);
  });

test("a sparse file in GNU's old format is an error", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using place = await scratch({ after: "content" });
  const holes = await open(`${place.path}/holes`, "w");
  await holes.truncate(2 ** 20);
  await holes.write("end", 2 ** 20);
  await holes.close();
  const args = ["-c", "-S", "--format=gnu", "-C", place.path, "holes", "after"];
  await assert.rejects(entries(spawnSync("tar", args).stdout), /a header does not fit its sum/);
});

test("a damaged, truncated or oversized archive is an error", { skip }, async () => {
  await using place = await scratch({ a: "x".repeat(2000) });
  const { stdout } = spawnSync("tar", ["-c", "-C", place.path, "a"]);
  const flipped = Buffer.from(stdout);
  flipped.writeUInt8((flipped[3] ?? 0) ^ 1, 3);
  await assert.rejects(entries(flipped), /a header does not fit its sum/);
  await assert.rejects(entries(stdout.subarray(0, 1000)), /ends in the middle of a file/);
  const huge = headerOf("L", 2 ** 31);
  await assert.rejects(entries(Buffer.concat([huge, Buffer.alloc(512)])), /a name that is too long/);
});

function headerOf(type: string, size: number): Buffer {
  const header = Buffer.alloc(512);
  header.write("././@LongLink", 0);
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  header.write(type, 156);
  header.fill(" ", 148, 156);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
