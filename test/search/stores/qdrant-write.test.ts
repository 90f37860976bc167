import assert from "node:assert/strict";
import test from "node:test";
import { openQdrantStore } from "../../../src/search/stores/qdrant-store.ts";
import { file, MODELLED } from "../../contract/search-store-words.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";
import { collectionName } from "../../../src/search/stores/qdrant-collections.ts";
import { batches, runConcurrently } from "../../../src/search/stores/qdrant-write.ts";

const { signal } = new AbortController();

test("collections, indexes and payloads are written as documented", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const [whole] = [file("docs/a.md", ["alpha"], { role: "docs", kind: "section", symbol: "A > B" })];
  assert.ok(whole?.chunks[0]);
  await store.put([whole, file("b.ts", ["beta"])], signal);
  assert.deepEqual([...server.collections.keys()].toSorted(), [
    "harness-code-toy-latest-1bec1f-4",
    "harness-docs-toy-latest-1bec1f-4",
  ]);
  const docs = server.collections.get("harness-docs-toy-latest-1bec1f-4");
  assert.deepEqual(docs?.shape, {
    vectors: { dense: { size: 4, distance: "Cosine" } },
    sparse_vectors: { words: { modifier: "idf" } },
    hnsw_config: { m: 0, payload_m: 16 },
    on_disk_payload: true,
  });
  assert.deepEqual(docs.indexes.get("index"), { type: "keyword", is_tenant: true });
  const [point] = docs.byIds([whole.chunks[0].id]);
  const { version, written, ...payload } = point?.payload ?? {};
  assert.match(String(version), /^[0-9a-f]{32}$/);
  assert.ok(Number.isSafeInteger(written));
  const { id: _id, text, ...about } = whole.chunks[0];
  assert.deepEqual(payload, {
    ...about,
    what: "chunk",
    index: MODELLED.index,
    content: text,
    file_hash: whole.hash,
  });
});

test("requests stay within their limits, and each change waits until it can be found", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const long = "word ".repeat(200_000);
  await store.put(
    [
      file(
        "big.txt",
        Array.from({ length: 40 }, (_, line) => `${line} ${long}`),
      ),
    ],
    signal,
  );
  await store.put(
    [
      file(
        "long.ts",
        Array.from({ length: 1000 }, (_, line) => `line ${line}`),
      ),
    ],
    signal,
  );
  const upserts = server.calls.filter(({ operation }) => operation === "upsert_points");
  assert.ok(upserts.length >= 9, `${upserts.length}`);
  for (const { bytes, body } of upserts) {
    assert.ok(bytes < 9 * 2 ** 20, `${bytes}`);
    assert.ok((body as { points: unknown[] }).points.length <= 256);
  }
  const huge = file("huge.txt", ["x".repeat(31 * 2 ** 20)]);
  await assert.rejects(store.put([huge], signal), /the chunk at huge\.txt:1 is 31 MiB/);
});

const name = (model: string, dimension = 768): string =>
  collectionName("code", { index: "i", vectors: { model, dimension } });

test("two models never share a collection, nor does one model with different dimensions", () => {
  assert.equal(name("nomic-embed-text"), "harness-code-nomic-embed-text-768");
  assert.equal(collectionName("docs", { index: "i", vectors: null }), "harness-docs-words");
  const models = ["a:b", "a-b", "a/b", "A-b", "a b", "a".repeat(90), "a".repeat(95), "ä", "ö", ""];
  const names = [...models.map((model) => name(model)), name("a-b", 4), name("words"), name("a-b-768", 4)];
  assert.equal(new Set(names).size, names.length);
  for (const each of names) assert.match(each, /^harness-code-[a-z0-9._-]{0,120}$/);
});

test("batches keep the order and the limits, and an item too large for one is sent alone", () => {
  const all = Array.from({ length: 1000 }, (_, at) => at);
  const small = batches(all, () => 10);
  assert.deepEqual(small.flat(), all);
  assert.ok(small.every(({ length }) => length <= 256) && small.length === 4);
  assert.deepEqual(
    batches([1, 9, 1, 1], (megabytes) => megabytes * 2 ** 20),
    [[1], [9], [1, 1]],
  );
  assert.deepEqual(
    batches([], () => 1),
    [],
  );
});

test("after a failure nothing more is started, and everything that was started has ended", async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const act = async (item: number): Promise<void> => {
    begun.push(item);
    await new Promise((resolve) => setImmediate(resolve));
    ended.push(item);
    if (item === 1) throw new Error("one");
  };
  await assert.rejects(runConcurrently([0, 1, 2, 3, 4, 5, 6, 7], act), /one/);
  assert.deepEqual(new Set(begun), new Set(ended));
  assert.ok(begun.length < 6, begun.join());
});
