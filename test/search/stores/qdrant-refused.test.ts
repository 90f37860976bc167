/** What a stand-in refuses by itself: wrong keys and exceeded limits. */
import assert from "node:assert/strict";
import test from "node:test";
import { openQdrantStore } from "../../../src/search/stores/qdrant-store.ts";
import { axis, chunksOf, file, MODELLED } from "../../contract/search-store-words.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";
import { assertSaid, KEY } from "./qdrant-said.ts";

const { signal } = new AbortController();

test("a missing key, a wrong key and a read-only key are reported", async () => {
  await using server = await startQdrant({ apiKey: KEY, readOnlyKey: "reader" });
  const open = (apiKey?: string) => openQdrantStore({ url: server.url, apiKey }, MODELLED);
  await assertSaid(open(), /requires a key, and QDRANT_API_KEY is not set/, /export QDRANT_API_KEY/);
  await assertSaid(open(`${KEY}?`), /rejects the key/, /export QDRANT_API_KEY/);
  await using reader = await open("reader");
  const whole = file("a.ts", ["alpha"]);
  const rights = [/the key in QDRANT_API_KEY does not allow .*manage access/, /read and write/] as const;
  await assertSaid(reader.put([whole], signal), ...rights);
  await using store = await open(KEY);
  assert.deepEqual(await store.counts(signal), { files: 0, chunks: 0, embedded: 0 });
  await store.put([whole], signal);
  assert.equal((await chunksOf(reader, [whole])).size, 1, "the right to read is enough to search");
  await assertSaid(reader.remove(["a.ts"], signal), ...rights);
  await assertSaid(reader.clear(signal), ...rights);
  assert.equal(await store.fileCount(signal), 1);
});

test("what strict mode forbids is refused with a reason, and what it limits is done in smaller parts", async () => {
  const limits = { query: 5000, searches: 3, upsert: 256 };
  await using server = await startQdrant({ limits });
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const whole = file(
    "a.ts",
    Array.from({ length: 600 }, (_, line) => `line ${line}`),
  );
  await store.put([whole], signal);
  await store.embed(new Map(whole.chunks.map(({ id }) => [id, axis(0)])), signal);
  assert.deepEqual(await store.counts(signal), { files: 1, chunks: 600, embedded: 600 });
  assert.equal((await store.fileHashes(signal)).size, 1);
  const found = await store.facts({ ids: [], vector: axis(0) }, 100, signal);
  assert.equal(found.chunks.size, 100);
  await using tight = await startQdrant({
    limits: { query: 50, exact: false },
    collections: server.collections,
  });
  await using bound = await openQdrantStore({ url: tight.url }, MODELLED);
  const said = /a limit set in Qdrant .*Help: /;
  await assertSaid(bound.facts({ ids: [], vector: axis(0) }, 100, signal), said, /strict_mode_config/);
  await assertSaid(bound.fileCount(signal), said, /strict_mode_config/);
});

test("a server or a proxy that accepts smaller requests gets smaller ones", async () => {
  await using server = await startQdrant({ largest: 100_000 });
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const lines = Array.from({ length: 60 }, (_, line) => `${line} ${"word ".repeat(1500)}`);
  await store.put([file("big.txt", lines)], signal);
  assert.deepEqual(await store.counts(signal), { files: 1, chunks: 60, embedded: 0 });
  assert.equal((await store.fileHashes(signal)).size, 1);
  const huge = file("huge.txt", ["word ".repeat(30_000)]);
  await assertSaid(
    store.put([huge], signal),
    /larger than Qdrant .*limit: 100000 bytes/,
    /max_request_size_mb/,
  );
  assert.equal((await store.fileHashes(signal)).size, 1);
});
