import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { openStoreFor, type StoreChoice, unencrypted } from "../../../src/search/stores/open-store.ts";
import { MODELLED } from "../../contract/search-store-words.ts";
import { startLoopback } from "../../fakes/loopback.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";
import { scratch } from "../../fixtures/scratch.ts";

interface Outcome {
  readonly name: string;
  readonly warned: readonly string[];
  readonly folder: boolean;
}

type Asked = Partial<StoreChoice> & { readonly url: string; readonly apiKey?: string };

async function chosen({ url, apiKey, ...about }: Asked): Promise<Outcome> {
  await using place = await scratch();
  const warned: string[] = [];
  await using store = await openStoreFor({
    store: "auto",
    server: { url, apiKey },
    folder: place.at("index"),
    identity: MODELLED,
    earlier: null,
    access: "write",
    warn: (text) => warned.push(text),
    signal: new AbortController().signal,
    ...about,
  });
  return { name: store.name, warned, folder: existsSync(place.at("index")) };
}

/** An address at which nobody listens. */
async function nobody(): Promise<string> {
  const server = await startQdrant();
  await server.close();
  return server.url;
}

test("auto uses an available Qdrant, and keeps the words of its files in the folder", async () => {
  await using server = await startQdrant();
  for (const earlier of [null, "qdrant"] as const)
    assert.deepEqual(await chosen({ url: server.url, earlier }), {
      name: "qdrant",
      warned: [],
      folder: true,
    });
});

test("auto without a Qdrant is the embedded store, without a message", async () => {
  assert.deepEqual(await chosen({ url: await nobody() }), { name: "embedded", warned: [], folder: true });
});

test("auto keeps the embedded store that holds the index, and contacts no server", async () => {
  await using server = await startQdrant();
  const found = await chosen({ url: server.url, earlier: "embedded" });
  assert.deepEqual(found, { name: "embedded", warned: [], folder: true });
  assert.deepEqual(server.calls, []);
});

test("auto reports it when the Qdrant that holds the index is gone", async () => {
  const url = await nobody();
  const { name, warned } = await chosen({ url, earlier: "qdrant" });
  assert.equal(name, "embedded");
  assert.equal(warned.length, 1);
  assert.match(
    String(warned[0]),
    /the Qdrant that holds the index cannot be used: .*cannot be reached.*rebuilding/,
  );
});

test("auto waits longer for a busy Qdrant that holds the index than for one that it only tries", async () => {
  await using server = await startQdrant();
  server.fault = (_, number) => (number === 0 ? { delayMs: 2500 } : undefined);
  const { name, warned } = await chosen({ url: server.url, earlier: "qdrant" });
  assert.deepEqual([name, warned], ["qdrant", []]);
});

test("auto reports why an available Qdrant cannot be used", async () => {
  await using old = await startQdrant({ version: "1.7.0" });
  await using locked = await startQdrant({ apiKey: "secret" });
  await using page = await startLoopback([{ body: "<html>" }]);
  await using silent = await startLoopback([{ body: [], ends: "silent" }]);
  for (const [url, why] of [
    [old.url, /1\.7\.0 .*too old/],
    [locked.url, /requires a key/],
    [page.url, /not a Qdrant server that harness understands/],
    [silent.url, /did not answer in time/],
  ] as const) {
    const { name, warned } = await chosen({ url });
    assert.equal(name, "embedded");
    assert.equal(warned.length, 1);
    assert.match(String(warned[0]), why);
    assert.match(String(warned[0]), /using the embedded store instead$/);
  }
});

test("a store chosen by name is used, or its absence is an error", async () => {
  await using server = await startQdrant();
  const embedded = await chosen({ url: server.url, store: "embedded", earlier: "qdrant" });
  assert.deepEqual(embedded, { name: "embedded", warned: [], folder: true });
  const qdrant = await chosen({ url: server.url, store: "qdrant", earlier: "embedded" });
  assert.deepEqual(qdrant, { name: "qdrant", warned: [], folder: true });
  await assert.rejects(chosen({ url: await nobody(), store: "qdrant" }), HarnessError);
});

test("a key that others could read on its way is not sent without a warning", async () => {
  await using server = await startQdrant({ apiKey: "secret" });
  // This machine as well, by an address that does not say so.
  const bare = server.url.replace("127.0.0.1", "0.0.0.0");
  for (const [url, apiKey, words] of [
    [bare, "secret", 1],
    [bare, "wrong", 1],
    [server.url, "secret", 0],
  ] as const) {
    const warned: string[] = [];
    const opened = chosen({ url, apiKey, store: "qdrant", warn: (text) => warned.push(text) });
    await (apiKey === "wrong" ? assert.rejects(opened, /rejects the key/) : opened);
    assert.equal(warned.length, words, url);
    for (const text of warned)
      assert.match(text, /Qdrant key and your code are sent to 0\.0\.0\.0:\d+ unencrypted/);
  }
  for (const url of [
    "https://qdrant.example",
    "http://localhost:1",
    "http://[::1]:1",
    "http://127.8.9.1",
    "no",
  ])
    assert.equal(unencrypted(url, "secret"), null, url);
  assert.equal(unencrypted("http://qdrant.example", ""), null);
  assert.match(String(unencrypted("http://localhost.example", "secret")), /localhost\.example unencrypted/);
});

test("an aborted choice yields no store", async () => {
  await using server = await startQdrant();
  for (const store of ["auto", "qdrant", "embedded"] as const)
    await assert.rejects(chosen({ url: server.url, store, signal: AbortSignal.abort() }), /aborted/);
});
