import assert from "node:assert/strict";
import test from "node:test";
import { openQdrantStore, type QdrantOptions } from "../../../src/search/stores/qdrant-store.ts";
import type { ServerStore } from "../../../src/search/search-store.ts";
import { axis, chunksOf, file, MODELLED } from "../../contract/search-store-words.ts";
import { type Fault, startQdrant } from "../../fakes/qdrant-server.ts";
import { assertSaid, KEY } from "./qdrant-said.ts";
import { type Served, startLoopback } from "../../fakes/loopback.ts";

const { signal } = new AbortController();
/** Only for silent servers, because a loaded machine reaches these limits. */
const HASTY: QdrantOptions = { patience: { readMs: 500, writeMs: 500 } };
/** Waiting is not tested here. */
const AT_ONCE: QdrantOptions = { time: { wait: () => Promise.resolve(), random: () => 0 } };
const patient = (what: string): QdrantOptions => ({ ...AT_ONCE, ...(what === "silence" ? HASTY : {}) });

const wrap = (error: string): string => JSON.stringify({ status: { error }, time: 0.1 });

test("a missing server is reported with how to start one", async () => {
  const server = await startQdrant();
  await server.close();
  await assertSaid(
    openQdrantStore({ url: server.url }, MODELLED),
    /Qdrant at http.* cannot be reached.*ECONNREFUSED/,
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
  test(`the address ${JSON.stringify(url)} is refused without showing it`, async () => {
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
  test(`Qdrant ${version} ${said === null ? "is accepted" : "is refused because of its version"}`, async () => {
    await using server = await startQdrant({ version });
    const opening = openQdrantStore({ url: server.url }, MODELLED);
    if (said !== null) {
      await assertSaid(opening, said, /start\.sh/);
      return;
    }
    await using store = await opening;
    const whole = file("a.ts", ["alpha"]);
    await store.put([whole], signal);
    assert.equal((await chunksOf(store, [whole])).size, 1);
  });

const others: Readonly<Record<string, readonly [Served, RegExp]>> = {
  "a page": [
    { body: "<!doctype html>", headers: { "content-type": "text/html" } },
    /not a Qdrant server that harness/,
  ],
  "broken JSON": [{ body: '{"title": "qdr' }, /not JSON/],
  "other JSON": [{ body: '{"title": "elastic", "version": "8"}' }, /not a Qdrant server that harness/],
  "nothing at all": [{ body: "" }, /not JSON/],
  "a redirect": [{ status: 302, headers: { location: "http://127.0.0.1:9/" } }, /it redirects/],
  "no such page": [{ status: 404, body: "404" }, /HTTP 404/],
  "no content": [{ status: 204 }, /not a Qdrant server that harness/],
  "half an answer": [
    { body: ['{"title": "q'], headers: { "content-length": "900" }, ends: "cut" },
    /cannot be reached.*in the middle of its answer/,
  ],
  silence: [{ body: [], ends: "silent" }, /took longer than 500 ms/],
};
for (const [what, [served, said]] of Object.entries(others))
  test(`a server that answers with ${what} is refused with a reason`, async () => {
    await using server = await startLoopback([served]);
    await assertSaid(openQdrantStore({ url: server.url, apiKey: KEY }, MODELLED, patient(what)), said, /./);
  });

const answers: Readonly<Record<string, readonly [Fault, RegExp, RegExp]>> = {
  "a full disk": [
    { status: 500, body: wrap("Service internal error: No space left on device (os error 28)") },
    /no space left to .*No space left/,
    /Free space/,
  ],
  "an internal failure": [
    { status: 500, body: wrap("Service internal error: task panicked\u001b[2J") },
    /failed to .*task panicked(?!\u001b)/,
    /log/,
  ],
  "a disk with too little room for its log": [
    {
      status: 500,
      body: wrap(
        "Service internal error: No space left on device: WAL buffer size exceeds available disk space",
      ),
    },
    /no space left to .*WAL buffer/,
    /Free space/,
  ],
  "a reached quota": [
    { status: 507, body: wrap("Insufficient storage: Disk usage is at 91%") },
    /no space left to .*91%/,
    /Free space/,
  ],
  "too large a request": [
    {
      status: 400,
      body: wrap("JSON payload (33554433 bytes) is larger than allowed (limit: 33554432 bytes)."),
    },
    /larger than Qdrant/,
    /max_request_size_mb/,
  ],
  "too large a request, for version 1.13": [
    { status: 400, body: wrap("Payload error: JSON payload has exceeded limit (33554432 bytes).") },
    /larger than Qdrant/,
    /max_request_size_mb/,
  ],
  "too large a request for a proxy": [
    { status: 413, body: "<h1>413 Request Entity Too Large</h1>", type: "text/html" },
    /larger than Qdrant .*HTTP 413, <h1>/,
    /proxy/,
  ],
  "a search that is too large for strict mode": [
    {
      status: 400,
      body: wrap(
        'Bad request: Limit exceeded 100 > 50 for "limit". Help: Reduce the "limit" parameter to or below 50.',
      ),
    },
    /a limit set .*100 > 50/,
    /strict_mode_config/,
  ],
  "the maximum number of points": [
    { status: 400, body: wrap("Bad request: Max points count limit of 1000 reached!") },
    /a limit set .*Max points/,
    /strict_mode_config/,
  ],
  "the maximum number of collections": [
    {
      status: 400,
      body: wrap("Bad request: Can't create collection with name x. Max collections limit reached: 5"),
    },
    /a limit set .*Max collections/,
    /settings/,
  ],
  "a time-out on the server": [
    { status: 408, body: wrap("Timeout: Timeout error: Operation 'Query' timed out after 60s") },
    /did not .* within its time limit .*60s/,
    /log/,
  ],
  "a time-out of a proxy": [
    { status: 504, body: "<h1>Gateway Time-out</h1>", type: "text/html" },
    /did not .* within its time limit .*HTTP 504/,
    /log/,
  ],
  "a lock": [
    { status: 403, body: wrap("Storage locked: Write operations are forbidden") },
    /is locked and cannot .*HTTP 403/,
    /Unlock/,
  ],
  "a missing shard": [
    { status: 503, body: wrap("Shard temporarily unavailable: peer is down") },
    /cannot .* now/,
    /Wait/,
  ],
  "a recovery": [
    { status: 500, body: wrap("Service internal error: Failed to search,  Recovery: segment 3 is broken") },
    /failed to .*Recovery: segment 3/,
    /log/,
  ],
  "an answer that stops in the middle": [
    { status: 200, body: '{"result": {"points": [{"id": "' },
    /the answer is not JSON/,
    /Check what listens/,
  ],
  "a page of something else": [
    { status: 200, body: "<html>welcome</html>", type: "text/html" },
    /the answer has an unexpected form/,
    /Check what listens/,
  ],
  "a redirect": [
    { status: 302, body: "", headers: { location: "http://127.0.0.1:1/" } },
    /it redirects/,
    /Check what listens/,
  ],
  "an unknown collection": [
    { status: 404, body: "not here", type: "text/plain" },
    /answers HTTP 404/,
    /Check what listens/,
  ],
  "too many requests, until a date": [
    { status: 429, body: wrap("slow down"), headers: { "retry-after": "Sat, 22 Nov 2026 03:00:00 GMT" } },
    /cannot .* now .*429/,
    /Wait/,
  ],
  "too many requests, for some seconds": [
    { status: 429, body: wrap("Rate limiting exceeded"), headers: { "retry-after": "17" } },
    /cannot .* now .*429/,
    /Wait/,
  ],
  "a server that is still starting": [
    { status: 503, body: wrap("Service unavailable") },
    /cannot .* now/,
    /Wait/,
  ],
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
    /the answer has an unexpected form/,
    /Check what listens/,
  ],
  "an unfinished change": [
    { status: 200, body: '{"result": {"status": "wait_timeout"}, "status": "ok"}' },
    /the answer has an unexpected form/,
    /Check/,
  ],
  silence: ["silent", /took longer than 500 ms/, /log/],
  "a cut connection": ["reset", /cannot be reached to /, /start\.sh/],
};
const asks: Readonly<Record<string, (store: ServerStore) => Promise<unknown>>> = {
  put: (store) => store.put([file("b.ts", ["beta"])], signal),
  remove: (store) => store.remove(["a.ts"], signal),
  held: (store) => store.fileHashes(signal),
  unembedded: (store) => store.unembedded(1, signal),
  embed: (store) =>
    store.embed(new Map(file("a.ts", ["alpha"]).chunks.map(({ id }) => [id, axis(0)])), signal),
  facts: (store) => chunksOf(store, [file("a.ts", ["alpha"])]),
  counts: (store) => store.counts(signal),
  clear: (store) => store.clear(signal),
};
for (const [what, [fault, said, remedy]] of Object.entries(answers))
  test(`${what} is reported in words, whatever was requested`, async () => {
    await using server = await startQdrant();
    await using store = await openQdrantStore({ url: server.url, apiKey: KEY }, MODELLED, patient(what));
    await (await openQdrantStore({ url: server.url }, MODELLED)).put([file("a.ts", ["alpha"])], signal);
    server.fault = () => fault;
    for (const ask of Object.values(asks)) await assertSaid(ask(store), said, remedy);
  });

for (const [status, headers, waits] of [
  [503, { "retry-after": "3" }, [3000, 3000]],
  [503, {}, [250, 500]],
  // The client library passes on only its first digit.
  [429, { "retry-after": "30" }, [250, 500]],
] as const)
  test(`a busy server (${status}, ${JSON.stringify(headers)}) is waited for, and then answers`, async () => {
    await using server = await startQdrant();
    const waited: number[] = [];
    const time = {
      wait: (ms: number) => (waited.push(ms), Promise.resolve()),
      random: () => 0,
    };
    await using store = await openQdrantStore({ url: server.url }, MODELLED, { time });
    await store.put([file("a.ts", ["alpha"])], signal);
    let left = 2;
    server.fault = () => ((left -= 1) >= 0 ? { status, body: wrap("later"), headers } : undefined);
    assert.equal((await store.fileHashes(signal)).size, 1);
    assert.deepEqual(waited, waits);
  });

test("a busy server is not waited for forever: a reader gets an error after about ten seconds", async () => {
  await using server = await startQdrant();
  let sum = 0;
  const time = { wait: (ms: number) => ((sum += ms), Promise.resolve()), random: () => 1 };
  await using store = await openQdrantStore({ url: server.url }, MODELLED, { time });
  server.fault = () => ({ status: 503, body: wrap("later"), headers: { "retry-after": "4" } });
  await assertSaid(store.fileHashes(signal), /cannot .* now/, /Wait/);
  assert.equal(sum, 8800);
});

test("an abort ends at once with its own reason, even if the server is silent", async () => {
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
