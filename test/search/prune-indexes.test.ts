import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { test } from "node:test";
import path from "node:path";
import { claimIndex, type IndexPlace, tryWriter } from "../../src/search/index-folders.ts";
import { claimLayer, prune, tryHoldLayer } from "../../src/search/prune-indexes.ts";
import { gnu as skip, meansOver, never, updated } from "../fixtures/index.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

test("indexes that no workspace and no run needs are removed, and those in use stay", { skip }, async () => {
  await using place = await scratch({ "work/a.ts": "export const a = 1;\n", "gone/b.ts": "" });
  const means = meansOver(new Map());
  await updated(place, means);
  const root = place.at("state");
  const base = claimIndex(root, place.at("work"));
  const gone = claimIndex(root, place.at("gone"));
  await rm(place.at("gone"), { recursive: true });
  await mkdir(`${base.folder}/store.damaged`);
  await mkdir(`${base.folder}/layers/killed/held`, { recursive: true });
  using layer = claimLayer(base, "running");
  const { removed, layers, damaged, left } = await prune(root, means, never);
  assert.deepEqual(removed, [{ workspace: place.at("gone"), index: gone.id }]);
  assert.deepEqual([layers, damaged, left], [1, 1, []]);
  const there = [gone.folder, `${base.folder}/store.damaged`, `${base.folder}/layers/killed`];
  assert.deepEqual(
    [...there, layer.place.folder, `${base.folder}/catalog.db`].map((each) => existsSync(each)),
    [false, false, false, true, true],
  );
});

test("an index that is being written is left, and reported", { skip }, async () => {
  await using place = await scratch({ "work/a.ts": "export const a = 1;\n" });
  const means = meansOver(new Map());
  await updated(place, means);
  using lock = tryWriter(claimIndex(place.at("state"), place.at("work")).folder);
  assert.ok(lock);
  const { removed, left } = await prune(place.at("state"), means, never);
  assert.deepEqual([removed.length, left.map(({ workspace }) => workspace)], [0, [place.at("work")]]);
});

/** The place of an index with content in both of its databases. */
async function baseOf(place: Scratch): Promise<IndexPlace> {
  const base = claimIndex(place.at("state"), place.at("work"));
  const at = path.relative(place.path, base.folder);
  await place.write(`${at}/catalog.db`, "known");
  await place.write(`${at}/store/index.db`, "kept");
  return base;
}

test("a layer begins as a copy, is held during its run, and is removed with it", async () => {
  await using place = await scratch({ "work/a.ts": "a" });
  const layer = claimLayer(await baseOf(place), "run1");
  const { folder } = layer.place;
  for (const name of ["catalog.db", "store/index.db"]) assert.ok(existsSync(path.join(folder, name)), name);
  assert.equal(tryHoldLayer(folder), undefined);
  layer[Symbol.dispose]();
  assert.equal(existsSync(folder), false);
});

test("an index that cannot be copied is an error with a next step, and leaves neither a lock nor half a copy", async () => {
  await using place = await scratch({ "work/a.ts": "a" });
  const base = await baseOf(place);
  // A folder, which cannot be copied as a file by any user.
  await mkdir(path.join(base.folder, "store", "folder"));
  assert.throws(() => claimLayer(base, "run1"), {
    name: "HarnessError",
    message: /^search index in .*run1: /,
  });
  const folder = path.join(base.folder, "layers", "run1");
  assert.equal(existsSync(folder), false);
  using lock = tryWriter(base.folder);
  assert.ok(lock, "the index itself is still locked");
});

test("a layer held by another process is not taken", async () => {
  await using place = await scratch({ "work/a.ts": "a" });
  const base = await baseOf(place);
  using layer = claimLayer(base, "run1");
  assert.throws(() => claimLayer(base, "run1"), {
    name: "HarnessError",
    message: /another harness is writing/,
  });
  assert.ok(
    existsSync(path.join(layer.place.folder, "catalog.db")),
    "the layer was taken from the process that holds it",
  );
});

test("files being written or belonging to an open database are not copied", async () => {
  await using place = await scratch({ "work/a.ts": "a" });
  const base = await baseOf(place);
  const at = path.relative(place.path, base.folder);
  for (const name of ["catalog.db-wal", "catalog.db-shm", "store/index.db-wal", "store/index.db-shm"])
    await place.write(`${at}/${name}`, "beside");
  const copied = (session: string): readonly boolean[] => {
    using layer = claimLayer(base, session);
    return ["catalog.db", "catalog.db-wal", "catalog.db-shm", "store/index.db-wal", "store/index.db-shm"].map(
      (name) => existsSync(path.join(layer.place.folder, name)),
    );
  };
  assert.deepEqual(copied("run1"), [true, true, false, true, false]);
  using lock = tryWriter(base.folder);
  assert.ok(lock);
  assert.deepEqual(copied("run2"), [false, false, false, false, false]);
});
