import assert from "node:assert/strict";
import fs, { readlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { SqliteConnection, FileLock, type LockLevel, suffices } from "../../src/platform/sqlite.ts";
import { scratch } from "../fixtures/scratch.ts";

const skip = process.platform !== "linux" && "reads /proc";

test("a flush syncs the journal to disk, and no other file", { skip }, async (t) => {
  await using place = await scratch();
  const sqlite = new DatabaseSync(place.at("x.db"));
  using connection = new SqliteConnection(sqlite);
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
  using connection = new SqliteConnection(new DatabaseSync(":memory:"));
  connection.flush();
  assert.equal(connection.get("SELECT 1 AS one")?.["one"], 1);
});

const LEVELS = ["shared", "reserved", "exclusive"] as const;

/** Whether a second lock gets its level while the first is held. */
const BESIDE: readonly (readonly [first: LockLevel, second: LockLevel, both: boolean])[] = [
  ["shared", "shared", true],
  ["shared", "reserved", true],
  ["shared", "exclusive", false],
  ["reserved", "shared", true],
  ["reserved", "reserved", false],
  ["reserved", "exclusive", false],
  ["exclusive", "shared", false],
  ["exclusive", "reserved", false],
  ["exclusive", "exclusive", false],
];

function taken(lock: FileLock, level: LockLevel): boolean {
  try {
    lock.take(level);
    return true;
  } catch (thrown) {
    assert.match(String(thrown), /database is locked/);
    return false;
  }
}

for (const [first, second, both] of BESIDE)
  test(`${second} beside ${first}: ${both ? "both are held" : "one waits"}`, async () => {
    await using place = await scratch();
    using one = new FileLock(place.at("lock"), 0);
    using other = new FileLock(place.at("lock"), 0);
    one.take(first);
    assert.equal(taken(other, second), both);
    one[Symbol.dispose]();
    assert.equal(taken(other, second), true);
  });

test("taking another level replaces the level held before", async () => {
  await using place = await scratch();
  using one = new FileLock(place.at("lock"), 0);
  using other = new FileLock(place.at("lock"), 0);
  one.take("exclusive");
  one.take("shared");
  assert.equal(taken(other, "shared"), true);
});

test("a level suffices for itself and for the weaker ones", () => {
  for (const [at, held] of LEVELS.entries())
    for (const [wantedAt, wanted] of LEVELS.entries())
      assert.equal(suffices(held, wanted), wantedAt <= at, `${held}, ${wanted}`);
});

test("a lock is freed when its process is killed", async () => {
  await using place = await scratch();
  const source = path.join(import.meta.dirname, "../../src/platform/sqlite.ts");
  const text = `const { FileLock } = await import(${JSON.stringify(source)});
    const lock = new FileLock(${JSON.stringify(place.at("lock"))}, 0);
    lock.take("exclusive");
    process.stdout.write("taken");
    setInterval(() => lock, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", text], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  using lock = new FileLock(place.at("lock"), 0);
  assert.equal(taken(lock, "exclusive"), false);
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.equal(taken(lock, "exclusive"), true);
});
