import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { test } from "node:test";
import { claimIndex, tryWriter } from "../../src/search/index-folders.ts";
import { claimLayer, prune } from "../../src/search/prune-indexes.ts";
import { gnu as skip, meansOver, never, updated } from "../fixtures/index.ts";
import { scratch } from "../fixtures/scratch.ts";

test(
  "what no workspace and no run has any use for goes, and what somebody holds stays",
  { skip },
  async () => {
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
  },
);

test("an index that is being written is left, and that is told", { skip }, async () => {
  await using place = await scratch({ "work/a.ts": "export const a = 1;\n" });
  const means = meansOver(new Map());
  await updated(place, means);
  using lock = tryWriter(claimIndex(place.at("state"), place.at("work")).folder);
  assert.ok(lock);
  const { removed, left } = await prune(place.at("state"), means, never);
  assert.deepEqual([removed.length, left.map(({ workspace }) => workspace)], [0, [place.at("work")]]);
});
