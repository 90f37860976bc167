import assert from "node:assert/strict";
import { cp, rename, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { Catalog } from "../../src/search/catalog.ts";
import { claimIndex, findIndex, indexesIn, takeWriter, tryWriter } from "../../src/search/index-folders.ts";
import { never } from "../fixtures/index.ts";
import { scratch } from "../fixtures/scratch.ts";

test("a copy of an index beside it is none of its own", async () => {
  await using place = await scratch({ "work/a": "" });
  const { id } = claimIndex(place.at("state"), place.at("work"));
  await cp(place.at("state", id), place.at("state", "copy"), { recursive: true });
  assert.deepEqual(
    indexesIn(place.at("state")).map((each) => each.id),
    [id],
  );
});

test("a folder that has moved is known by device, inode and time of birth, each of them", async () => {
  await using place = await scratch({ "work/a": "" });
  const { id } = claimIndex(place.at("state"), place.at("work"));
  await rename(place.at("work"), place.at("moved"));
  const file = `state/${id}/workspace.json`;
  const text = await place.read(file);
  assert.equal(findIndex(place.at("state"), place.at("moved"))?.id, id);
  for (const part of ["dev", "ino", "born"]) {
    const other = { ...(JSON.parse(text) as Record<string, string>), [part]: "1" };
    await writeFile(place.at(file), JSON.stringify(other));
    assert.equal(findIndex(place.at("state"), place.at("moved")), undefined, part);
  }
});

test("what cannot be read of who writes an index is left out of what is told", async () => {
  await using place = await scratch();
  using lock = tryWriter(place.path);
  assert.ok(lock);
  for (const said of ['{"pid":"x","since":"y"}', '{"pid":1,"since":1e300}', "null", "{"]) {
    await writeFile(place.at("writer.json"), said);
    const taken = { name: "HarnessError", message: "another harness is writing this index" };
    await assert.rejects(takeWriter(place.path, { patienceMs: 0, signal: never }), taken, said);
  }
});

test("who has given up waits for no writer", async () => {
  await using place = await scratch();
  using lock = tryWriter(place.path);
  assert.ok(lock);
  const reason = new Error("given up");
  const waiting = takeWriter(place.path, { patienceMs: 0, signal: AbortSignal.abort(reason) });
  await assert.rejects(waiting, reason);
});

test("a catalog of another form is not read, and begun anew by who writes", async () => {
  await using place = await scratch();
  {
    using sqlite = new DatabaseSync(place.at("catalog.db"));
    sqlite.exec("CREATE TABLE files (path TEXT); INSERT INTO files VALUES ('a'); PRAGMA user_version = 99");
  }
  assert.equal(Catalog.read(place.path), undefined);
  {
    using catalog = Catalog.open(place.path, assert.fail);
    assert.equal(catalog.files().size, 0);
  }
  using again = Catalog.read(place.path);
  assert.equal(again?.files().size, 0);
});
