/** Several addresses of one Qdrant: all nodes that are up hold the same data. */
import assert from "node:assert/strict";
import test from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { storeHealth } from "../../../src/search/stores/search-health.ts";
import { openStoreFor } from "../../../src/search/stores/open-store.ts";
import { type CollectionShape, PATIENCE } from "../../../src/search/stores/qdrant-api.ts";
import { openQdrantStore } from "../../../src/search/stores/qdrant-store.ts";
import { assertWhole } from "../../contract/search-store-breaks.ts";
import { file, MODELLED, wordFor } from "../../contract/search-store-words.ts";
import { type FakeQdrant, type Fault, startQdrant } from "../../fakes/qdrant-server.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";

const { signal } = new AbortController();
const PATIENT = { ...PATIENCE, busyMs: 0 };
/** The time limits for a silent node, shared by all three. */
const SHORT = { readMs: 9000, writeMs: 9000, busyMs: 0 };

interface Cluster extends AsyncDisposable {
  readonly nodes: readonly FakeQdrant[];
  readonly server: { readonly url: string; readonly nodes: readonly string[] };
  readonly calls: () => readonly number[];
}

async function cluster(count: number): Promise<Cluster> {
  await using stack = new AsyncDisposableStack();
  const collections: FakeQdrant["collections"] = new Map();
  const nodes: FakeQdrant[] = [];
  for (let at = 0; at < count; at += 1) nodes.push(stack.use(await startQdrant({ collections })));
  const [url = "", ...others] = nodes.map((node) => node.url);
  const kept = stack.move();
  return {
    nodes,
    server: { url, nodes: others },
    calls: () => nodes.map(({ calls }) => calls.length),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const files = (version: string) =>
  [3, 4, 1].map((lines, at) =>
    file(
      `f${at}`,
      Array.from({ length: lines }, (_, line) => `${version} ${wordFor(at)} line ${line}`),
      {
        role: at === 1 ? "docs" : "source",
      },
    ),
  );

const error = (status: number, text: string): Fault => ({
  status,
  body: JSON.stringify({ status: { error: text }, time: 0 }),
  type: "application/json",
});

const FAULTS: Readonly<Record<string, Fault>> = {
  "cuts the connection": "reset",
  "cuts it after the work is done": "reset after",
  "says nothing": "silent",
  "answers 503": error(503, "Service unavailable: node is recovering"),
  "answers 500": error(500, "Service internal error: 1 of 2 read operations failed"),
  redirects: { status: 307, body: "", headers: { location: "http://127.0.0.1:1/" } },
};

for (const [what, fault] of Object.entries(FAULTS))
  test(`a node that ${what} in the middle of a put is skipped, and nothing is lost`, async () => {
    await using all = await cluster(3);
    const [first] = all.nodes;
    assert.ok(first !== undefined);
    const patience = fault === "silent" ? SHORT : PATIENT;
    await using store = await openQdrantStore(all.server, MODELLED, { patience });
    await store.put(files("first"), signal);
    assert.deepEqual(all.calls().slice(1), [0, 0], "the other nodes are asked only with a reason");
    const from = first.calls.length + 2;
    first.fault = (_, number) => (number >= from ? fault : undefined);
    await store.put(files("second"), signal);
    const passed = first.calls.length;
    assert.equal(await assertWhole(store, [files("second")]), 3);
    assert.deepEqual(await store.counts(signal), { files: 3, chunks: 8, embedded: 0 });
    assert.ok((all.calls()[1] ?? 0) > 0);
    assert.equal(first.calls.length, passed, "the node that failed is not asked first again");
  });

test("a node that is gone before opening is ignored, wherever it is in the list", async () => {
  await using all = await cluster(2);
  const gone = await startQdrant();
  await gone.close();
  const { url, nodes } = all.server;
  for (const server of [
    { url: gone.url, nodes: [url, ...nodes] },
    { url, nodes: [gone.url, ...nodes] },
  ]) {
    await using place = await scratch();
    const about = {
      folder: place.at("index"),
      identity: MODELLED,
      earlier: null,
      access: "write",
      signal,
    } as const;
    await using store = await openStoreFor({ ...about, store: "auto", server, warn: assert.fail });
    assert.equal(store.name, "qdrant");
  }
});

test("where no node serves each is named, an unfinished put is not held, and the next one continues", async () => {
  await using all = await cluster(2);
  await using store = await openQdrantStore(all.server, MODELLED, { patience: PATIENT });
  await store.put(files("first"), signal);
  for (const node of all.nodes) {
    const from = node.calls.length + 2;
    node.fault = (_, number) => (number >= from ? "reset" : undefined);
  }
  const failure: unknown = await store.put(files("second"), signal).catch((thrown: unknown) => thrown);
  assert.ok(failure instanceof HarnessError);
  assert.match(failure.message, /^none of the 2 Qdrant nodes could be used: /);
  for (const { url } of all.nodes) assert.ok(failure.message.includes(url), failure.message);
  for (const node of all.nodes) node.fault = () => undefined;
  await assertWhole(store, [files("first"), files("second")]);
  await store.put(files("second"), signal);
  assert.equal(await assertWhole(store, [files("second")]), 3);
});

test("an error that is not the node's fault is not retried on the next node", async () => {
  await using all = await cluster(2);
  const [first] = all.nodes;
  assert.ok(first !== undefined);
  await using store = await openQdrantStore(all.server, MODELLED, { patience: PATIENT });
  first.fault = () => error(507, "Insufficient storage");
  await assert.rejects(store.put(files("first"), signal), /no space left/);
  assert.deepEqual(all.calls().slice(1), [0]);
});

test("collections get the configured shards and replicas, and a write that no node can do is refused", async () => {
  await using server = await startQdrant();
  const shape: CollectionShape = { shard_number: 3, replication_factor: 2, write_consistency_factor: 2 };
  {
    await using store = await openQdrantStore({ url: server.url, shape }, MODELLED);
    await store.put(files("first"), signal);
  }
  const made = server.calls.filter(({ operation }) => operation === "create_collection");
  assert.equal(made.length, 2, JSON.stringify(server.calls.map(({ operation }) => operation)));
  for (const { body } of made) assert.partialDeepStrictEqual(body, shape);
  const [exit, message] = await refusalOf(() =>
    openQdrantStore({ url: server.url, shape: { write_consistency_factor: 2 } }, MODELLED),
  );
  assert.equal(exit, 2);
  assert.match(
    message,
    /write_consistency_factor 2 needs more replicas than search\.replication_factor creates \(1\)/,
  );
});

test("health names the nodes that do not serve; one serving node is enough", async () => {
  await using all = await cluster(3);
  const [, second] = all.nodes;
  assert.ok(second !== undefined);
  const whole = await storeHealth({ store: "qdrant", ...all.server });
  assert.deepEqual(
    [whole.state, whole.detail.startsWith("3 nodes: Qdrant 1.19.0 at ")],
    ["ok", true],
    whole.detail,
  );
  second.fault = () => error(503, "Service unavailable: recovery in progress");
  const ailing = await storeHealth({ store: "qdrant", ...all.server });
  assert.equal(ailing.state, "warn");
  assert.match(ailing.detail, new RegExp(`; 1 of 3 nodes have problems: .*${second.url}`));
  const gone = await startQdrant();
  await gone.close();
  const none = { url: gone.url, nodes: ["http://127.0.0.1:1"] };
  const told = await storeHealth({ store: "qdrant", ...none });
  assert.deepEqual(
    [told.state, /^no Qdrant node can be used: .*; /.test(told.detail)],
    ["warn", true],
    told.detail,
  );
  assert.equal((await storeHealth({ store: "auto", ...none })).state, "ok");
});
