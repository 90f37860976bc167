import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import test from "node:test";
import { DatabaseSync } from "node:sqlite";
import { Catalog, type CatalogFile } from "../../src/search/catalog.ts";
import {
  claimIndex,
  findIndex,
  findMovedIndex,
  indexesIn,
  isOrphan,
  takeWriter,
  tryWriter,
} from "../../src/search/index-folders.ts";
import { never } from "../fixtures/index.ts";
import { scratch } from "../fixtures/scratch.ts";

const FILE: CatalogFile = {
  stamp: { size: 3, mtimeMs: 1_700_000_000_123.25, ctimeMs: 1_700_000_000_123.5, ino: 2 ** 53 },
  settled: true,
  hash: "h",
  version: "1",
  language: "go",
  role: "source",
  chunks: 2,
  skip: null,
};

test("recorded facts are returned exactly, and remain after reopening", async () => {
  await using place = await scratch();
  const skipped: CatalogFile = { ...FILE, hash: null, language: null, role: null, chunks: 0, skip: "secret" };
  const rules = [{ path: ".gitignore", stamp: FILE.stamp, text: "*.log\n" }];
  {
    using catalog = Catalog.open(place.path, assert.fail);
    assert.equal(catalog.facts().whole, false);
    catalog.record(
      new Map([
        ["a\nb.go", FILE],
        ["c.env", skipped],
        ["gone.go", FILE],
      ]),
    );
    catalog.record(new Map(), ["gone.go"]);
    catalog.setRules(rules);
    catalog.note({ whole: true, store: "embedded", updated: 7 });
  }
  using catalog = Catalog.read(place.path) ?? assert.fail();
  assert.deepEqual(
    [...catalog.files()],
    [
      ["a\nb.go", FILE],
      ["c.env", skipped],
    ],
  );
  assert.deepEqual(catalog.rules(), rules);
  const { whole, store, updated, model } = catalog.facts();
  assert.deepEqual([whole, store, updated, model], [true, "embedded", 7, null]);
  assert.throws(() => catalog.note({ whole: false }), /is not writable/);
});

test("a damaged catalog is set aside and reported, and a new one is begun", async () => {
  await using place = await scratch({ "catalog.db": "no database ".repeat(1000) });
  assert.equal(Catalog.read(place.path), undefined);
  const aside: string[] = [];
  using catalog = Catalog.open(place.path, (file) => void aside.push(file));
  assert.deepEqual(aside, [place.at("catalog.db.damaged")]);
  assert.equal(catalog.files().size, 0);
  assert.match(await place.read("catalog.db.damaged"), /^no database/);
});

test("there is one writer at a time; a kill releases the lock", async (t) => {
  await using place = await scratch();
  const program = `
    const { tryWriter } = await import(${JSON.stringify(import.meta.resolve("../../src/search/index-folders.ts"))});
    const lock = tryWriter(process.argv[1]);
    console.log(lock === undefined ? "none" : "taken");
    // An unreferenced lock would be garbage-collected, and released.
    setInterval(() => lock, 1000);`;
  const other = spawn(process.execPath, ["--input-type=module", "-e", program, place.path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => other.kill("SIGKILL"));
  const [said] = (await once(other.stdout, "data")) as [Buffer];
  assert.equal(said.toString().trim(), "taken");
  assert.equal(tryWriter(place.path), undefined);
  const waiting = takeWriter(place.path, { patienceMs: 100, signal: never });
  await assert.rejects(waiting, new RegExp(`process ${other.pid}, since `));
  other.kill("SIGKILL");
  using lock = await takeWriter(place.path, { patienceMs: 5000, signal: never });
  assert.ok(lock);
});

test("an index follows its folder when it moves, and does not belong to a copy of the folder", async () => {
  await using place = await scratch({ "work/a.ts": "a" });
  const [root, work] = [place.at("state"), place.at("work")];
  assert.equal(findIndex(root, work), undefined);
  const first = claimIndex(root, work);
  assert.match(first.id, /^[0-9a-f]{24}$/);
  assert.equal(claimIndex(root, work).id, first.id);
  await cp(work, place.at("copy"), { recursive: true });
  assert.equal(findIndex(root, place.at("copy")), undefined);
  const copy = claimIndex(root, place.at("copy"));
  assert.notEqual(copy.id, first.id);
  await rename(work, place.at("moved"));
  const moved = claimIndex(root, place.at("moved"));
  assert.deepEqual([moved.id, moved.movedFrom], [first.id, work]);
  assert.equal(claimIndex(root, place.at("moved")).movedFrom, null);
  // Another folder at an indexed path continues with its index: the contents are compared.
  await rm(place.at("copy"), { recursive: true });
  await mkdir(place.at("copy"));
  assert.equal(claimIndex(root, place.at("copy")).id, copy.id);
  await rm(place.at("copy"), { recursive: true });
  assert.deepEqual(
    indexesIn(root)
      .filter(isOrphan)
      .map(({ id }) => id),
    [copy.id],
  );
});

test("a folder without a valid record is not an index", async () => {
  await using place = await scratch({ "state/x/workspace.json": "{", "state/y/z": "", "work/a": "" });
  await writeFile(place.at("state/file"), "");
  assert.deepEqual(indexesIn(place.at("state")), []);
  assert.equal(findIndex(place.at("state"), place.at("work")), undefined);
  assert.deepEqual(indexesIn(place.at("nowhere")), []);
});

test("a damaged or inaccessible lock is reported with its cause", async () => {
  await using place = await scratch({ "broken/writer.lock": "no database".repeat(100), "gone/x": "" });
  assert.throws(() => tryWriter(place.at("broken")), {
    name: "HarnessError",
    message: /^search index in .*broken: it is damaged/,
  });
  assert.throws(() => tryWriter(place.at("nowhere")), { name: "HarnessError", message: /cannot be reached/ });
  await mkdir(place.at("gone/writer.json"));
  assert.throws(() => tryWriter(place.at("gone")), { name: "HarnessError" });
  await rm(place.at("gone/writer.json"), { recursive: true });
  using lock = tryWriter(place.at("gone"));
  assert.ok(lock, "the failed attempt does not hold the lock");
});

test("a folder in the place of a database file is reported, and nothing in it is lost", async () => {
  await using place = await scratch({ "catalog.db/theirs": "kept", "locked/writer.lock/theirs": "kept" });
  assert.equal(Catalog.read(place.path), undefined);
  const told = {
    name: "HarnessError",
    message: /something that is not a file has the name of one of its files .*catalog\.db is not a file/,
  };
  assert.throws(() => Catalog.open(place.path, assert.fail), told);
  assert.equal(await place.read("catalog.db/theirs"), "kept");
  assert.throws(() => tryWriter(place.at("locked")), { message: /writer\.lock is not a file/ });
  assert.equal(await place.read("locked/writer.lock/theirs"), "kept");
});

test("a list of indexes that stays locked is an error with a next step", async () => {
  await using place = await scratch({ "work/a": "" });
  claimIndex(place.at("state"), place.at("work"));
  using lock = tryWriter(place.at("state"));
  assert.ok(lock);
  assert.throws(() => claimIndex(place.at("state"), place.at("work")), {
    message: /another harness is writing this index/,
    remedy: /try again when it is done/,
  });
});

test("a copy of an index beside it is not listed", async () => {
  await using place = await scratch({ "work/a": "" });
  const { id } = claimIndex(place.at("state"), place.at("work"));
  await cp(place.at("state", id), place.at("state", "copy"), { recursive: true });
  assert.deepEqual(
    indexesIn(place.at("state")).map((each) => each.id),
    [id],
  );
});

test("a moved folder is recognised only if device, inode and time of creation all match", async () => {
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

test("unreadable details of an index's writer are left out of the message", async () => {
  await using place = await scratch();
  using lock = tryWriter(place.path);
  assert.ok(lock);
  for (const said of ['{"pid":"x","since":"y"}', '{"pid":1,"since":1e300}', "null", "{"]) {
    await writeFile(place.at("writer.json"), said);
    const taken = { name: "HarnessError", message: "another harness is writing this index" };
    await assert.rejects(takeWriter(place.path, { patienceMs: 0, signal: never }), taken, said);
  }
});

test("an aborted request does not wait for the writer", async () => {
  await using place = await scratch();
  using lock = tryWriter(place.path);
  assert.ok(lock);
  const reason = new Error("given up");
  const waiting = takeWriter(place.path, { patienceMs: 0, signal: AbortSignal.abort(reason) });
  await assert.rejects(waiting, reason);
});

test("a catalog of another version is not read, and replaced by the next writer", async () => {
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

test("whoever searches in a folder that has moved records its place, so that its index is not taken for an orphan", async () => {
  await using place = await scratch({ "work/a.ts": "a" });
  const [root, work, moved] = [place.at("state"), place.at("work"), place.at("moved")];
  const { id } = claimIndex(root, work);
  await rename(work, moved);
  assert.equal(findMovedIndex(root, moved)?.id, id);
  assert.deepEqual(
    indexesIn(root).map((record) => [record.workspace, isOrphan(record)]),
    [[moved, false]],
  );
  await chmod(root, 0o500);
  assert.equal(findMovedIndex(root, moved)?.id, id);
  await chmod(root, 0o700);
  assert.equal(findMovedIndex(root, place.at("nowhere")), undefined);
});
