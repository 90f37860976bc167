import assert from "node:assert/strict";
import test from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { openQdrantStore, type QdrantOptions } from "../../../src/search/qdrant/store.ts";
import type { SearchStore } from "../../../src/search/store.ts";
import { axis, byWords, file, MODELLED } from "../../contract/search-store-words.ts";
import { type Fault, startQdrant } from "../../fakes/qdrant-server.ts";
import { Collection } from "../../fakes/qdrant/collection.ts";
import { type Served, startLoopback } from "../../fakes/loopback.ts";

const { signal } = new AbortController();
const KEY = "a-key-that-nobody-may-see";
const HASTY: QdrantOptions = { patience: { readMs: 200, writeMs: 200 } };

/** It says this and nothing of the key, and what to do. */
async function assertSaid(failing: Promise<unknown>, said: RegExp, remedy: RegExp): Promise<void> {
  await assert.rejects(failing, (thrown) => {
    assert.ok(thrown instanceof HarnessError, String(thrown));
    assert.match(thrown.message, said);
    assert.match(thrown.remedy, remedy);
    assert.ok(!`${thrown.message}${thrown.remedy}`.includes(KEY));
    return true;
  });
}

const wrap = (error: string): string => JSON.stringify({ status: { error }, time: 0.1 });

test("no server", async () => {
  const server = await startQdrant();
  await server.close();
  await assertSaid(
    openQdrantStore({ url: server.url }, MODELLED),
    /Qdrant at http.* is not reached.*ECONNREFUSED/,
    /start\.sh/,
  );
});

const addresses = [
  "localhost:6333",
  "ftp://localhost",
  "http://user:secret@localhost:6333",
  "http://localhost?x=1",
  "",
];
for (const url of addresses)
  test(`the address ${JSON.stringify(url)} is refused, without a word of what is in it`, async () => {
    await assertSaid(openQdrantStore({ url }, MODELLED), /^the address of Qdrant: [^@]*$/, /search\.url/);
  });

const versions: Readonly<Record<string, RegExp | null>> = {
  "0.11.7": /0\.11\.7 .*too old: .*1\.13/,
  "1.7.4": /1\.7\.4 .*too old: .*1\.13/,
  "1.12.9": /1\.12\.9 .*too old/,
  "1.13.0": null,
  "1.18.2-dev": null,
  "1.40.0": null,
  "2.0.0": /2\.0\.0 .*not known/,
  unknown: /not known/,
};
for (const [version, said] of Object.entries(versions))
  test(`Qdrant ${version} ${said === null ? "will do" : "is refused by its version"}`, async () => {
    await using server = await startQdrant({ version });
    const opening = openQdrantStore({ url: server.url }, MODELLED);
    if (said !== null) {
      await assertSaid(opening, said, /start\.sh/);
      return;
    }
    await using store = await opening;
    await store.put([file("a.ts", ["alpha"])], signal);
    assert.equal((await byWords(store, "alpha")).length, 1);
    const corpus = JSON.stringify(server.calls.at(-1)?.body).includes('"corpus"');
    assert.equal(corpus, version === "1.40.0", "rarity over one index, where the server can count it");
  });

const others: Readonly<Record<string, readonly [Served, RegExp]>> = {
  "a page": [{ body: "<!doctype html>", headers: { "content-type": "text/html" } }, /no Qdrant that harness/],
  "broken JSON": [{ body: '{"title": "qdr' }, /no JSON/],
  "other JSON": [{ body: '{"title": "elastic", "version": "8"}' }, /no Qdrant that harness/],
  "nothing at all": [{ body: "" }, /no JSON/],
  "a redirect": [{ status: 302, headers: { location: "http://127.0.0.1:9/" } }, /sends elsewhere/],
  "no such page": [{ status: 404, body: "404" }, /HTTP 404/],
  "no content": [{ status: 204 }, /no Qdrant that harness/],
  "half an answer": [
    { body: ['{"title": "q'], headers: { "content-length": "900" }, ends: "cut" },
    /is not reached.*in the middle of its answer/,
  ],
  silence: [{ body: [], ends: "silent" }, /took longer than 200 ms/],
};
for (const [what, [served, said]] of Object.entries(others))
  test(`a server that answers with ${what}`, async () => {
    await using server = await startLoopback([served]);
    await assertSaid(openQdrantStore({ url: server.url, apiKey: KEY }, MODELLED, HASTY), said, /./);
  });

const answers: Readonly<Record<string, readonly [Fault, RegExp, RegExp]>> = {
  "a full disk": [
    { status: 500, body: wrap("Service internal error: No space left on device (os error 28)") },
    /no room left to .*No space left/,
    /Make room/,
  ],
  "a failure of its own": [
    { status: 500, body: wrap("Service internal error: task panicked\u001b[2J") },
    /failed to .*task panicked(?!\u001b)/,
    /log/,
  ],
  "too large a request": [
    {
      status: 413,
      body: wrap(
        "Payload error: JSON payload (33554433 bytes) is larger than allowed (limit: 33554432 bytes).",
      ),
    },
    /as large as/,
    /max_request_size_mb/,
  ],
  "a start that is not over": [{ status: 503, body: wrap("Service unavailable") }, /cannot .* now/, /Wait/],
  "a collection that is being created": [
    { status: 400, body: wrap("Wrong input: Collection is being created") },
    /cannot .* now.*being created/,
    /Wait/,
  ],
  "too many requests": [{ status: 429, body: wrap("Rate limiting exceeded") }, /cannot .* now/, /Wait/],
  "a refusal": [
    { status: 400, body: wrap("Wrong input: Not existing vector name error: words") },
    /refuses to .*Not existing/,
    /start\.sh/,
  ],
  "a proxy's page": [
    { status: 502, body: "<h1>Bad gateway</h1>", type: "text/html" },
    /HTTP 502, <h1>/,
    /log/,
  ],
  garbage: [
    { status: 200, body: '{"result": {"points": 7}}' },
    /its answer is unlike one/,
    /Look what listens/,
  ],
  "a change that it has not finished": [
    { status: 200, body: '{"result": {"status": "wait_timeout"}, "status": "ok"}' },
    /its answer is unlike one/,
    /Look/,
  ],
  silence: ["silent", /took longer than 200 ms/, /log/],
  "a cut connection": ["reset", /is not reached, asked to /, /start\.sh/],
};
const asks: Readonly<Record<string, (store: SearchStore) => Promise<unknown>>> = {
  put: (store) => store.put([file("b.ts", ["beta"])], signal),
  remove: (store) => store.remove(["a.ts"], signal),
  held: (store) => store.held(signal),
  unembedded: (store) => store.unembedded(1, signal),
  embed: (store) =>
    store.embed(new Map(file("a.ts", ["alpha"]).chunks.map(({ id }) => [id, axis(0)])), signal),
  candidates: (store) => byWords(store, "alpha"),
  counts: (store) => store.counts(signal),
  clear: (store) => store.clear(signal),
};
for (const [what, [fault, said, remedy]] of Object.entries(answers))
  test(`${what}, whatever was asked, is said in words`, async () => {
    await using server = await startQdrant();
    await using store = await openQdrantStore({ url: server.url, apiKey: KEY }, MODELLED, HASTY);
    await (await openQdrantStore({ url: server.url }, MODELLED)).put([file("a.ts", ["alpha"])], signal);
    server.fault = () => fault;
    for (const ask of Object.values(asks)) await assertSaid(ask(store), said, remedy);
  });

test("a key that is missing, and one that is wrong", async () => {
  await using server = await startQdrant({ apiKey: KEY });
  const open = (apiKey?: string) => openQdrantStore({ url: server.url, apiKey }, MODELLED);
  await assertSaid(open(), /wants a key, and QDRANT_API_KEY is not set/, /export QDRANT_API_KEY/);
  await assertSaid(open(`${KEY}?`), /refuses the key/, /export QDRANT_API_KEY/);
  await using store = await open(KEY);
  assert.deepEqual(await store.counts(signal), { files: 0, chunks: 0, embedded: 0 });
});

const NAME = "harness-code-toy-latest-1bec1f-4";
const idf = { words: { modifier: "idf" } };
const unlike: Readonly<Record<string, readonly [ConstructorParameters<typeof Collection>[0], RegExp]>> = {
  "another dimension": [
    { vectors: { dense: { size: 768, distance: "Cosine" } }, sparse_vectors: idf },
    /768 numbers/,
  ],
  "no sparse vector": [{ vectors: { dense: { size: 4, distance: "Cosine" } } }, /no sparse vector/],
  "no rarity": [
    { vectors: { dense: { size: 4, distance: "Cosine" } }, sparse_vectors: { words: {} } },
    /no sparse vector/,
  ],
  "no dense vector": [{ vectors: {}, sparse_vectors: idf }, /no vector dense/],
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
  test(`a collection that is ${status} ${status === "red" ? "is broken, and why is said" : "serves"}`, async () => {
    await using server = await startQdrant();
    await using store = await openQdrantStore({ url: server.url }, MODELLED);
    await store.put([file("a.ts", ["alpha"])], signal);
    for (const collection of server.collections.values()) collection.status = status;
    if (status === "red") await assertSaid(store.held(signal), /broken: .*No space left/, /log/);
    else assert.equal((await store.held(signal)).size, 1);
  });

test("who gives up is told their own reason, at once, though the server is silent", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const leave = new AbortController();
  const why = new Error("enough");
  server.fault = () => {
    leave.abort(why);
    return "silent";
  };
  await assert.rejects(store.counts(leave.signal), why);
});
