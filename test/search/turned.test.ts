/** What files turn into, and what the index then holds of them. */
import assert from "node:assert/strict";
import { rm, truncate } from "node:fs/promises";
import test from "node:test";
import { Catalog } from "../../src/search/catalog.ts";
import { claimIndex } from "../../src/search/index-folders.ts";
import { OpenedIndex } from "../../src/search/open-index.ts";
import { hostBox } from "../fakes/host-box.ts";
import type { SearchMemory } from "../fakes/search-store.ts";
import { chunksIn, gnu as skip, isFresh, meansOver, never } from "../fixtures/index.ts";
import { scratch } from "../fixtures/scratch.ts";
import { FILES, later, updated } from "./in-part.ts";

const pathsIn = (memory: SearchMemory): readonly string[] => [
  ...new Set(chunksIn(memory).map((each) => each.replace(/:.*/s, ""))),
];

test("nothing remains of a file that is now empty", { skip }, async (t) => {
  await using place = await scratch(FILES);
  const memory: SearchMemory = new Map();
  await updated(place, { memory });
  assert.deepEqual(pathsIn(memory), ["a.ts", "one/b.ts", "one/deep/c.ts", "two/.gitignore", "two/d.ts"]);
  await truncate(place.at("work/one/b.ts"));
  later(t);
  const { files, chunks } = await updated(place, { memory });
  assert.deepEqual([files, chunks], [4, 4]);
  assert.deepEqual(pathsIn(memory), ["a.ts", "one/deep/c.ts", "two/.gitignore", "two/d.ts"]);
  assert.equal(await isFresh(place, meansOver(memory)), true);
});

test(
  "a file that disappears between listing and reading counts as unreadable until the next update",
  { skip },
  async (t) => {
    await using place = await scratch(FILES);
    const memory: SearchMemory = new Map();
    const box = hostBox(place.at("work"));
    const exec: typeof box.exec = async (request, signal) => {
      if (request.words[0] === "tar") await rm(place.at("work/one/b.ts"), { force: true });
      return box.exec(request, signal);
    };
    later(t);
    {
      const at = claimIndex(place.at("state"), place.at("work"));
      await using index = await OpenedIndex.write(meansOver(memory), at, { patienceMs: 0, signal: never });
      const { files, skipped } = await index.update({ ...box, exec }, {}, never);
      assert.deepEqual([files, skipped], [4, { unreadable: 1 }]);
    }
    assert.deepEqual(pathsIn(memory), ["a.ts", "one/deep/c.ts", "two/.gitignore", "two/d.ts"]);
    assert.equal(await isFresh(place, meansOver(memory)), false);
    const { removed, skipped } = await updated(place, { memory });
    assert.deepEqual([removed, skipped], [1, {}]);
    assert.equal(await isFresh(place, meansOver(memory)), true);
  },
);

test("a file cut by another version is cut again, even if its text is the same", { skip }, async (t) => {
  await using place = await scratch(FILES);
  const memory: SearchMemory = new Map();
  later(t);
  await updated(place, { memory });
  const at = claimIndex(place.at("state"), place.at("work"));
  {
    using catalog = Catalog.open(at.folder, assert.fail);
    const [row] = [catalog.files().get("a.ts") ?? assert.fail()];
    catalog.record(new Map([["a.ts", { ...row, version: "another", chunks: 2 }]]));
  }
  const { changed, chunks, catalog } = await updated(place, { memory });
  assert.deepEqual([changed, chunks], [1, 5]);
  assert.equal(new Set(catalog.map(([, { version }]) => version)).size, 1);
  assert.equal(await isFresh(place, meansOver(memory)), true);
});
