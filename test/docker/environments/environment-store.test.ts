import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import test from "node:test";
import { belongingTo } from "../../../src/docker/environments/environment-store.ts";
import { scratch } from "../../fixtures/scratch.ts";

/** In pieces of a size that no header keeps to. */
function* pieces(archive: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < archive.length; at += size) yield archive.subarray(at, at + size);
}

async function listed(archive: Buffer, owner: { readonly uid: number; readonly gid: number }, size: number) {
  const parts: Buffer[] = [];
  for await (const part of belongingTo(owner, pieces(archive, size) as unknown as AsyncIterable<Buffer>))
    parts.push(part);
  const { stdout, stderr, status } = spawnSync("tar", ["--list", "--verbose", "--numeric-owner"], {
    input: Buffer.concat(parts),
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/\s+/g, " "));
}

test("a stream of files keeps everything except the owners, however it is split", async () => {
  await using place = await scratch({ "0/a": "a".repeat(700), [`0/${"long/".repeat(60)}b`]: "b" });
  await mkdir(place.at("0/empty"));
  await symlink("a", place.at("0/link"));
  for (const format of ["gnu", "pax"]) {
    const { stdout: archive } = spawnSync("tar", ["--create", `--format=${format}`, "-C", place.path, "0"], {
      maxBuffer: 2 ** 26,
    });
    const before = await listed(archive, { uid: 7, gid: 8 }, archive.length);
    assert.ok(before.length > 60);
    assert.ok(
      before.every((line) => / 7\/8 /.test(line)),
      before.join("\n"),
    );
    for (const size of [1, 511, 512, 513, 4000])
      assert.deepEqual(await listed(archive, { uid: 7, gid: 8 }, size), before);
    const high = await listed(archive, { uid: 4_000_000_000, gid: 1000 }, 512);
    assert.ok(
      high.every((line) => / 4000000000\/1000 /.test(line)),
      high.join("\n"),
    );
  }
});
