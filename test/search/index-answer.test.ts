import assert from "node:assert/strict";
import { test } from "node:test";
import { answersIn } from "../../src/search/rank-hits.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { memorySearchStore } from "../fakes/search-store.ts";
import { file, IDENTITY, NEVER } from "./stores/words.ts";

/** Many files that fit better, and one in a folder further down. */
async function filled(): Promise<SearchStore> {
  const store = memorySearchStore(new Map(), IDENTITY);
  const better = Array.from({ length: 700 }, (_, at) => file(`src/portcullis-${at}.ts`, "portcullis door"));
  await store.put([...better, file("far/down/a.ts", "a door, and much else of other things")], NEVER);
  return store;
}

test("files below the requested folder are found, however much better others fit", async () => {
  await using store = await filled();
  const asked = { text: "portcullis door", vector: null, limit: 3 };
  for (const below of ["far", "far/down", "far/down/a.ts"])
    assert.deepEqual(
      (await answersIn(store, { ...asked, below }, NEVER)).map(({ path }) => path),
      ["far/down/a.ts"],
    );
  assert.deepEqual(await answersIn(store, { ...asked, below: "fa" }, NEVER), []);
  assert.equal((await answersIn(store, { ...asked, below: null }, NEVER)).length, 3);
});
