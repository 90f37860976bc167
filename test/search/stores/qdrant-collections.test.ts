import assert from "node:assert/strict";
import test from "node:test";
import { openQdrantStore } from "../../../src/search/stores/qdrant-store.ts";
import { file, MODELLED } from "../../contract/search-store-words.ts";
import { Collection } from "../../fakes/qdrant/collection.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";
import { assertSaid } from "./qdrant-said.ts";

const { signal } = new AbortController();

const NAME = "harness-code-toy-latest-1bec1f-4";
const idf = { words: { modifier: "idf" } };
const unlike: Readonly<Record<string, readonly [ConstructorParameters<typeof Collection>[0], RegExp]>> = {
  "another dimension": [
    { vectors: { dense: { size: 768, distance: "Cosine" } }, sparse_vectors: idf },
    /768 dimensions/,
  ],
  "no dense vector": [{ vectors: {}, sparse_vectors: idf }, /no vector named dense/],
  "another distance": [
    { vectors: { dense: { size: 4, distance: "Euclid" } }, sparse_vectors: idf },
    /by Euclid/,
  ],
};
for (const [what, [shape, said]] of Object.entries(unlike))
  test(`a collection of our name with ${what} is never filled`, async () => {
    await using server = await startQdrant();
    await using store = await openQdrantStore({ url: server.url }, MODELLED);
    server.collections.set(NAME, new Collection(shape));
    await assertSaid(
      openQdrantStore({ url: server.url }, MODELLED),
      said,
      new RegExp(`curl -X DELETE http.*${NAME} `),
    );
    await assertSaid(store.put([file("a.ts", ["alpha"])], signal), said, /curl -X DELETE/);
    assert.equal(server.collections.get(NAME)?.points.length, 0);
  });

for (const status of ["yellow", "grey", "red"])
  test(`a collection that is ${status} ${status === "red" ? "is broken, with the reason" : "serves"}`, async () => {
    await using server = await startQdrant();
    await using store = await openQdrantStore({ url: server.url }, MODELLED);
    await store.put([file("a.ts", ["alpha"])], signal);
    for (const collection of server.collections.values()) collection.status = status;
    if (status === "red") await assertSaid(store.fileHashes(signal), /broken: .*No space left/, /log/);
    else assert.equal((await store.fileHashes(signal)).size, 1);
  });
