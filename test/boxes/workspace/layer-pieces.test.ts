import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import { foldPieces, hasPieces, keepPiece, returnTree } from "../../../src/boxes/workspace/session-layer.ts";
import type { Layer } from "../../../src/boxes/workspace/layer-record.ts";
import { archiveOf } from "../../../src/boxes/workspace/workspace-archive.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";

const layerIn = (place: Scratch): Layer => ({
  session: "s",
  workspace: place.at("work"),
  isolation: "copy",
  volume: null,
  engine: "kubernetes",
  made: 1,
  folder: place.at("layer"),
});

/** A piece with what lies in this folder of the place. */
const keep = (place: Scratch, number: number, from: string, deleted: readonly string[] = []): Promise<void> =>
  keepPiece(place.at("layer"), {
    number,
    deleted,
    archive: archiveOf(place.at(from), "tree", () => undefined),
  });

test("pieces are folded in order, over the workspace if nothing was returned before", async () => {
  await using place = await scratch({
    "work/a": "old",
    "work/gone/x": "x",
    "work/same": "same",
    "one/a": "1",
    "one/b": "1",
    "two/a": "2",
    "layer/layer": "{}",
  });
  await keep(place, 1, "one", ["gone/x"]);
  await keep(place, 2, "two", ["b"]);
  assert.equal(await hasPieces(place.at("layer")), true);
  await foldPieces(layerIn(place));
  assert.deepEqual(await readdir(place.at("layer/tree")), ["a", "same"]);
  assert.equal(await place.read("layer/tree/a"), "2");
  assert.deepEqual(await readdir(place.at("layer")), ["layer", "tree"]);
  assert.equal(await place.read("work/a"), "old");
});

test("an incomplete piece is ignored, and an interrupted fold starts over", async () => {
  await using place = await scratch({
    "work/a": "old",
    "one/a": "1",
    "layer/layer": "{}",
  });
  async function* broken(): AsyncGenerator<Buffer> {
    for await (const part of archiveOf(place.at("one"), "tree", () => undefined)) {
      yield part.subarray(0, part.length / 2);
      throw new Error("cut");
    }
  }
  await keep(place, 1, "one");
  await assert.rejects(keepPiece(place.at("layer"), { number: 2, deleted: ["a"], archive: broken() }), /cut/);
  await place.write("layer/tree.new/half", "x");
  await foldPieces(layerIn(place));
  assert.deepEqual([await readdir(place.at("layer/tree")), await place.read("layer/tree/a")], [["a"], "1"]);
});

test("once a whole tree was returned, remaining pieces are ignored", async () => {
  await using place = await scratch({
    "work/a": "old",
    "one/a": "1",
    "layer/tree/a": "before",
    "layer/tree.new/a": "whole",
  });
  await keep(place, 1, "one");
  await returnTree(place.at("layer"), place.at("layer/tree.new"));
  assert.equal(await hasPieces(place.at("layer")), false);
  await foldPieces(layerIn(place));
  assert.equal(await place.read("layer/tree/a"), "whole");
  assert.equal(existsSync(place.at("layer/pieces")), false);
});

test("no piece can leave the layer, whatever a box sends", async () => {
  await using place = await scratch({
    "work/plain": "x",
    "outside/x": "kept",
    "one/d/x": "hostile",
    "layer/layer": "{}",
  });
  await symlink(place.at("outside"), place.at("work/d"));
  await symlink(place.at("outside"), place.at("work/e"));
  await keep(place, 1, "one", ["../outside/x", "e/x", "d/../../outside/x", "/etc/x", ""]);
  await foldPieces(layerIn(place));
  assert.equal(await place.read("outside/x"), "kept");
  assert.equal((await lstat(place.at("layer/tree/d"))).isDirectory(), true);
  assert.equal(await place.read("layer/tree/d/x"), "hostile");
});

test("a folder closed to its owner is processed and keeps its permissions", async () => {
  await using place = await scratch({ "work/shut/x": "old", "one/shut/x": "new", "layer/layer": "{}" });
  await mkdir(place.at("work/other"));
  await writeFile(place.at("work/other/y"), "y");
  await chmod(place.at("one/shut"), 0o500);
  await keep(place, 1, "one", ["other/y"]);
  await foldPieces(layerIn(place));
  assert.equal(await place.read("layer/tree/shut/x"), "new");
  assert.equal((await lstat(place.at("layer/tree/shut"))).mode & 0o777, 0o500);
  assert.equal(existsSync(place.at("layer/tree/other")), false);
  for (const folder of ["layer/tree/shut", "one/shut"]) await chmod(place.at(folder), 0o700);
  await rename(place.at("layer/tree"), place.at("layer/done"));
});
