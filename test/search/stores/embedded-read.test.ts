import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { openEmbeddedStore, openStoreFor, readEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import { Catalog, NO_FACTS } from "../../../src/search/catalog.ts";
import { OpenedIndex, storeFolder } from "../../../src/search/open-index.ts";
import { meansOver } from "../../fixtures/index.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { file, IDENTITY, NEVER } from "./words.ts";

const isAnother = (thrown: unknown): boolean => {
  assert.ok(thrown instanceof HarnessError);
  assert.match(thrown.message, /cannot read it as it is/);
  return thrown.remedy === "harness index";
};

test("who only reads finds what was written, and can write nothing", async () => {
  await using place = await scratch();
  await using writer = openEmbeddedStore(place.at("index"), IDENTITY);
  await writer.put([file("a.ts", "alpha")], NEVER);
  await using reader = readEmbeddedStore(place.at("index"), IDENTITY);
  const [found] = await reader.candidates({ text: "alpha", vector: null }, 10, NEVER);
  assert.equal(found?.chunk.path, "a.ts");
  await assert.rejects(reader.put([file("b.ts", "beta")], NEVER), /is not writable/);
  await writer.put([file("c.ts", "gamma")], NEVER);
  assert.deepEqual([...(await reader.held(NEVER)).keys()], ["a.ts", "c.ts"]);
});

test("who only reads leaves an index of another form, and of another folder, as it is", async () => {
  await using place = await scratch();
  const database = place.at("index", "index.db");
  {
    await using writer = openEmbeddedStore(place.at("index"), IDENTITY);
    await writer.put([file("a.ts", "alpha")], NEVER);
  }
  {
    using sqlite = new DatabaseSync(database);
    sqlite.exec(`UPDATE about SET value = '["another form","${IDENTITY.index}"]'`);
  }
  const before = await readFile(database);
  assert.throws(() => readEmbeddedStore(place.at("index"), IDENTITY), isAnother);
  assert.throws(() => readEmbeddedStore(place.at("index"), { ...IDENTITY, index: "c3" }), isAnother);
  assert.deepEqual(await readFile(database), before);
  assert.throws(() => readEmbeddedStore(place.at("nowhere"), IDENTITY), isAnother);
  assert.equal(existsSync(place.at("nowhere")), false);
});

test("an index whose store is of another form, or gone, counts as none", async () => {
  await using place = await scratch({ "folder/keep": "" });
  const at = { id: IDENTITY.index, folder: place.at("folder"), workspace: place.at("work"), movedFrom: null };
  {
    using catalog = Catalog.open(at.folder, assert.fail);
    catalog.note({ ...NO_FACTS, whole: true, store: "embedded" });
  }
  const means = {
    ...meansOver(new Map()),
    openStore: (opening: Parameters<ReturnType<typeof meansOver>["openStore"]>[0]) =>
      openStoreFor({ ...opening, store: "embedded", server: { url: "" }, warn: assert.fail }),
  };
  assert.equal(await OpenedIndex.read(means, at, NEVER), undefined);
  assert.equal(existsSync(storeFolder(at)), false);
  {
    await using _ = openEmbeddedStore(storeFolder(at), { ...IDENTITY, index: "c3" });
  }
  assert.equal(await OpenedIndex.read(means, at, NEVER), undefined);
  {
    await using _ = openEmbeddedStore(storeFolder(at), IDENTITY);
  }
  await using there = await OpenedIndex.read(means, at, NEVER);
  assert.ok(there);
});
