import assert from "node:assert/strict";
import test from "node:test";
import { spawnSync } from "node:child_process";
import { link, open, symlink, writeFile } from "node:fs/promises";
import { untar, withChecksum, writeTarNumber } from "../../src/core/tar-archive.ts";
import { scratch } from "../fixtures/scratch.ts";

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
  writeTarNumber(header, 124, 12, size);
  header.write(type, 156);
  return withChecksum(header);
}
