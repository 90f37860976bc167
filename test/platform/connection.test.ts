import assert from "node:assert/strict";
import fs, { readlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { Connection } from "../../src/platform/sqlite-connection.ts";
import { scratch } from "../fixtures/scratch.ts";

const skip = process.platform !== "linux" && "reads /proc";

test("a flush waits until the journal is on the disk, and touches no other file", { skip }, async (t) => {
  await using place = await scratch();
  const sqlite = new DatabaseSync(place.at("x.db"));
  using connection = new Connection(sqlite);
  sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE t (a)");
  connection.atomically(() => connection.run("INSERT INTO t VALUES (1)"));
  const synced: string[] = [];
  const { fsyncSync } = fs;
  t.mock.method(fs, "fsyncSync", (descriptor: number) => {
    synced.push(readlinkSync(`/proc/self/fd/${descriptor}`));
    fsyncSync(descriptor);
  });
  syncBuiltinESMExports();
  connection.flush();
  t.mock.restoreAll();
  syncBuiltinESMExports();
  assert.deepEqual(synced, [place.at("x.db-wal")]);
});

test("a database without a journal has nothing to flush", () => {
  using connection = new Connection(new DatabaseSync(":memory:"));
  connection.flush();
  assert.equal(connection.get("SELECT 1 AS one")?.["one"], 1);
});
