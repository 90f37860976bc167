import assert from "node:assert/strict";
import { appendFile, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { reasonOf } from "../../src/core/errors.ts";
import { claimIndex, type IndexPlace } from "../../src/search/index-folders.ts";
import { answersIn } from "../../src/search/rank-hits.ts";
import { type IndexOptions, OpenedIndex } from "../../src/search/open-index.ts";
import { prune } from "../../src/search/prune-indexes.ts";
import { openServerOf, openStoreFor } from "../../src/search/stores/open-store.ts";
import type { StoreIdentity } from "../../src/search/search-store.ts";
import { hostBox } from "../fakes/host-box.ts";
import { type FakeQdrant, startQdrant } from "../fakes/qdrant-server.ts";
import { gnu as skip, kept, meansOver, never as signal } from "../fixtures/index.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";

// own process: it starts many programs, and each start costs by the memory of the process

const FILES = {
  "work/a.ts": "export const alpha = 1;\n",
  "work/b.md": "# Beta\n\nHow alpha is made.\n",
  "other/c.ts": "export const alpha = 2;\n",
};
const A = { model: "one", dimension: 4 };
const B = { model: "two", dimension: 8 };

const warn = (): void => undefined;

function meansIn(
  { url }: Pick<FakeQdrant, "url">,
  store: "auto" | "qdrant" | "embedded" = "qdrant",
): IndexOptions {
  return {
    ...meansOver(new Map()),
    named: store === "auto" ? null : store,
    openStore: ({ earlier, only, ...opening }) =>
      openStoreFor({
        ...opening,
        earlier,
        store: only && earlier !== null ? earlier : store,
        server: { url },
        warn,
      }),
    openServer: (identity) =>
      store === "embedded"
        ? Promise.resolve(null)
        : openServerOf({ store, server: { url }, identity, warn, signal }),
  };
}

const placeOf = (place: Scratch, workspace = "work"): IndexPlace =>
  claimIndex(place.at("state"), place.at(workspace));

async function updated(
  place: Scratch,
  means: IndexOptions,
  { vectors, workspace = "work" }: { vectors?: StoreIdentity["vectors"]; workspace?: string } = {},
): Promise<void> {
  const opening = { patienceMs: 0, signal, ...(vectors === undefined ? {} : { vectors }) };
  await using index = await OpenedIndex.write(means, placeOf(place, workspace), opening);
  await index.update(hostBox(place.at(workspace)), { kept }, signal);
}

/** Waits until stamps can be trusted: files younger than their clock's resolution are read again. */
const settle = (): Promise<void> => sleep(150);

async function isFresh(place: Scratch, means: IndexOptions): Promise<boolean> {
  await using index = await read(place, means);
  return await index.isFresh(signal);
}

/** Files old enough for their stamps to be trusted, and a server for their index. */
async function overQdrant() {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await scratch(FILES));
  const server = stack.use(await startQdrant());
  await settle();
  const kept = stack.move();
  return { place, server, means: meansIn(server), [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function read(place: Scratch, means: IndexOptions): Promise<OpenedIndex> {
  return (await OpenedIndex.read(means, placeOf(place), signal)) ?? assert.fail("no index");
}

const operations = ({ calls }: FakeQdrant): readonly string[] =>
  calls.map(({ operation }) => operation).toSorted();
const pointsOf = ({ collections }: FakeQdrant, index: string): readonly string[] =>
  [...collections].flatMap(([name, { points }]) =>
    points.some(({ payload }) => payload["index"] === index) ? [name] : [],
  );

test(
  "a search of a fresh index asks each collection about itself, its number of files, and the question",
  { skip },
  async () => {
    await using standing = await overQdrant();
    const { place, server, means } = standing;
    await updated(place, means, { vectors: A });
    server.calls.length = 0;
    await using index = await read(place, means);
    assert.equal(await index.isFresh(signal), true);
    const hits = await answersIn(
      index.store,
      { text: "alpha", vector: new Float32Array([1, 0, 0, 0]), limit: 5 },
      signal,
    );
    assert.deepEqual(
      hits.map(({ path }) => path),
      ["a.ts", "b.md"],
    );
    const twice = ["count_points", "get_collection", "get_points", "query_batch_points"].flatMap((each) => [
      each,
      each,
    ]);
    assert.deepEqual(operations(server), [...twice, "root"]);
  },
);

test(
  "an index that lost a collection is not fresh, and the collection is filled again",
  { skip },
  async () => {
    await using standing = await overQdrant();
    const { place, server, means } = standing;
    for (const gone of ["harness-code-words", "harness-docs-words"]) {
      await updated(place, means);
      assert.equal(await isFresh(place, means), true);
      server.collections.delete(gone);
      assert.equal(await isFresh(place, means), false, gone);
    }
    await updated(place, means);
    assert.equal(await isFresh(place, means), true);
  },
);

test(
  "an update that loses its collections reports it and is not complete, and the next one repairs the index",
  { skip },
  async () => {
    await using standing = await overQdrant();
    const { place, server, means } = standing;
    // Behind the last that is put, before it is counted.
    let puts = 0;
    server.fault = ({ operation }) => {
      if (operation === "upsert_points") puts += 1;
      if (operation === "count_points" && puts >= 4) server.collections.clear();
      return undefined;
    };
    await assert.rejects(updated(place, means), /no longer holds all 2 files/);
    server.fault = () => undefined;
    {
      await using index = await read(place, means);
      assert.deepEqual([index.facts.whole, await index.isFresh(signal)], [false, false]);
    }
    await updated(place, means);
    await using index = await read(place, means);
    assert.deepEqual([index.facts.whole, await index.isFresh(signal)], [true, true]);
  },
);

test(
  "a server that disappears during an update leaves an incomplete index, and the next update continues there",
  { skip },
  async () => {
    await using standing = await overQdrant();
    const { place, server, means } = standing;
    for (let at = 3; ; at += 1) {
      const before = server.calls.length;
      server.fault = (_, number) => (number >= before + at ? "reset" : undefined);
      const failed: unknown = await updated(place, means).catch((thrown: unknown) => thrown);
      server.fault = () => undefined;
      if (failed === undefined) break;
      assert.match(reasonOf(failed), /cannot be reached to/);
      {
        await using index = await read(place, means);
        assert.equal(index.facts.whole, false, `request ${at}`);
      }
      assert.ok(at < 60);
    }
    await using index = await read(place, means);
    assert.equal(await index.isFresh(signal), true);
    assert.deepEqual(await index.store.counts(signal), { files: 2, chunks: 2, embedded: 0 });
  },
);

test("after a change of model the other model's data is removed, of this index only", { skip }, async () => {
  await using standing = await overQdrant();
  const { place, server, means } = standing;
  const [mine, theirs] = [placeOf(place).id, placeOf(place, "other").id];
  await updated(place, means, { vectors: A });
  await updated(place, means, { vectors: null });
  await updated(place, means, { vectors: B });
  await updated(place, means, { vectors: A, workspace: "other" });
  assert.equal(pointsOf(server, mine).length, 6, "nothing is removed before the new data is complete");
  {
    await using index = await OpenedIndex.write(means, placeOf(place), { patienceMs: 0, signal });
    await index.store.tidy(signal);
  }
  assert.deepEqual(pointsOf(server, mine), ["harness-code-two-8", "harness-docs-two-8"]);
  assert.deepEqual(pointsOf(server, theirs), ["harness-code-one-4"]);
  assert.deepEqual([...server.collections.keys()].toSorted(), [
    "harness-code-one-4",
    "harness-code-two-8",
    "harness-docs-one-4",
    "harness-docs-two-8",
  ]);
  await using index = await read(place, means);
  assert.equal(await index.isFresh(signal), true);
});

test(
  "prune does the same, and removes server data of an index that has moved to a file",
  { skip },
  async () => {
    await using standing = await overQdrant();
    const { place, server, means } = standing;
    const [mine, theirs] = [placeOf(place).id, placeOf(place, "other").id];
    for (const vectors of [A, B]) await updated(place, means, { vectors });
    await updated(place, means, { vectors: A, workspace: "other" });
    const first = await prune(place.at("state"), means, signal);
    assert.deepEqual([first.left, pointsOf(server, mine).length], [[], 2]);
    await updated(place, meansIn(server, "embedded"));
    await prune(place.at("state"), meansIn(server, "embedded"), signal);
    assert.equal(pointsOf(server, mine).length, 2, "with the embedded store no server is contacted");
    await prune(place.at("state"), meansIn(server, "auto"), signal);
    assert.deepEqual([pointsOf(server, mine), pointsOf(server, theirs)], [[], ["harness-code-one-4"]]);
    await rm(place.at("other"), { recursive: true });
    await prune(place.at("state"), means, signal);
    assert.deepEqual([...server.collections.keys()], []);
    await server.close();
    const gone = await prune(place.at("state"), meansIn(server, "auto"), signal);
    assert.deepEqual(gone.left, [], "a missing server is not reported where none was requested");
    const [left] = (await prune(place.at("state"), means, signal)).left;
    assert.match(left?.reason ?? "", /cannot be reached/);
  },
);

test("a field index that was removed is created again by the next update", { skip }, async () => {
  await using standing = await overQdrant();
  const { place, server, means } = standing;
  await updated(place, means);
  for (const { indexes } of server.collections.values()) indexes.clear();
  await assert.rejects(isFresh(place, means), /lost a field index that it needs/);
  await appendFile(place.at("work/a.ts"), "export const gamma = 3;\n");
  await settle();
  await updated(place, means);
  await using index = await read(place, means);
  assert.equal(await index.isFresh(signal), true);
  assert.equal((await answersIn(index.store, { text: "gamma", vector: null, limit: 5 }, signal)).length, 1);
});
