import assert from "node:assert/strict";
import test from "node:test";
import { openQdrantStore } from "../../../src/search/qdrant/qdrant-store.ts";
import { axis, file, MODELLED } from "../../contract/search-store-words.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";

const { signal } = new AbortController();

test("the server fuses words and vectors, and each text comes once", async () => {
  await using server = await startQdrant();
  await using store = await openQdrantStore({ url: server.url }, MODELLED);
  const files = [file("both.ts", ["alpha"]), file("words.ts", ["alpha beta"]), file("near.ts", ["gamma"])];
  await store.put(files, signal);
  const [both, , near] = files.map(({ chunks }) => chunks[0]?.id ?? assert.fail());
  await store.embed(
    new Map([
      [both ?? "", axis(0)],
      [near ?? "", axis(0)],
    ]),
    signal,
  );
  const before = server.calls.length;
  const found = await store.candidates({ text: "alpha", vector: axis(0) }, 10, signal);
  assert.deepEqual(
    Object.fromEntries(
      found.map(({ chunk, lexical, dense }) => [chunk.path, [lexical !== null, dense !== null]]),
    ),
    { "both.ts": [true, true], "near.ts": [false, true], "words.ts": [true, false] },
  );
  assert.equal(found[0]?.chunk.path, "both.ts");
  const asked = server.calls.slice(before).map(({ body }) => (body as { searches: object[] }).searches);
  assert.equal(asked.length, 2, "one request to each collection");
  for (const searches of asked) {
    const withText = searches.filter((each) => "with_payload" in each && each.with_payload === true);
    assert.equal(withText.length, 1);
    assert.ok(withText[0] && "prefetch" in withText[0] && "query" in withText[0]);
    assert.deepEqual(withText[0].query, { fusion: "rrf" });
  }
});

for (const [what, vector] of [
  ["one half", null],
  ["both halves", axis(0)],
] as const)
  test(`of ${what}, a chunk that comes without its text is a failure, not an answer with less`, async () => {
    await using server = await startQdrant();
    await using store = await openQdrantStore({ url: server.url }, MODELLED);
    await store.put([file("a.ts", ["alpha"])], signal);
    const bare = { points: [{ id: "00000000-0000-4000-8000-000000000000", version: 1, score: 1 }] };
    const lists = vector === null ? [bare] : [bare, bare, bare];
    const body = JSON.stringify({ result: lists, status: "ok", time: 0 });
    server.fault = ({ operation }) =>
      operation === "query_batch_points" ? { status: 200, body } : undefined;
    await assert.rejects(store.candidates({ text: "alpha", vector }, 10, signal), /its answer is unlike one/);
  });
