// also slow: all cases of its properties
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { HarnessError } from "../../../src/core/errors.ts";
import { openEmbeddedStore } from "../../../src/search/stores/open-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { CHUNKS, FILES, versionOf } from "../../fixtures/index-writer.ts";
import { fc, part } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { file, IDENTITY, NEVER } from "./words.ts";

const FIXTURES = path.join(import.meta.dirname, "../../fixtures");
const KILLS = part(16);

/** Checks that every file is complete and has the version in its hash. @returns the oldest version */
async function oldestOf(store: SearchStore, upTo: number): Promise<number> {
  const versions = new Map<string, number>();
  for (let version = 0; version <= upTo; version += 1)
    for (const { path, hash } of versionOf(version)) versions.set(`${path} ${hash}`, version);
  const held = await store.fileHashes(NEVER);
  const found = await store.candidates({ text: "shared", vector: null }, 10_000, NEVER);
  let oldest = Number.POSITIVE_INFINITY;
  for (const [path, hash] of held) {
    const version = versions.get(`${path} ${hash}`);
    assert.ok(version !== undefined, `${path} is of no version`);
    const texts = found.filter(({ chunk }) => chunk.path === path).map(({ chunk }) => chunk.text);
    assert.equal(texts.length, CHUNKS, path);
    for (const text of texts) assert.match(text, new RegExp(` version${version} `));
    oldest = Math.min(oldest, version);
  }
  assert.equal(found.length, held.size * CHUNKS);
  return held.size === FILES ? oldest : -1;
}

test(`${KILLS} kills during writing leave no half file, and lose nothing that was kept`, async () => {
  await using place = await scratch();
  const folder = place.at("index");
  for (let kill = 0; kill < KILLS; kill += 1) {
    const child = spawn(process.execPath, [path.join(FIXTURES, "index-writer.ts"), folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const closed = once(child, "close");
    let said = "";
    const enough = Promise.withResolvers<void>();
    child.stdout.on("data", (data: Buffer) => {
      said += data.toString();
      if (said.split("\n").length > 1 + (kill % 7)) enough.resolve();
    });
    await enough.promise;
    child.kill("SIGKILL");
    const [, signal] = (await closed) as [number | null, string | null];
    assert.equal(signal, "SIGKILL");
    const last = Number(said.split("\n").at(-2));
    await using store = openEmbeddedStore(folder, IDENTITY);
    assert.ok((await oldestOf(store, last + 1)) >= last, `kept ${last}`);
  }
});

test("a reader beside a writing process always finds complete files", async () => {
  await using place = await scratch();
  const folder = place.at("index");
  const child = spawn(process.execPath, [path.join(FIXTURES, "index-writer.ts"), folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const written = { last: -1 };
  child.stdout.on("data", (data: Buffer) => {
    written.last = Number(data.toString().split("\n").at(-2));
  });
  await once(child.stdout, "data");
  await using reader = openEmbeddedStore(folder, IDENTITY);
  const until = written.last + 15;
  while (written.last < until) {
    const found = await reader.candidates({ text: "shared", vector: null }, 10_000, NEVER);
    const byPath = Map.groupBy(found, ({ chunk }) => chunk.path);
    assert.equal(byPath.size, FILES);
    for (const chunks of byPath.values()) {
      assert.equal(chunks.length, CHUNKS);
      assert.equal(new Set(chunks.map(({ chunk }) => chunk.text.split(" ")[1])).size, 1);
    }
  }
  child.kill("SIGKILL");
  await closed;
});

/** Makes every request to a store; each is answered, or fails with a readable error. */
async function askAll(folder: string): Promise<readonly HarnessError[]> {
  const failures: HarnessError[] = [];
  const told = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (thrown) {
      assert.ok(thrown instanceof HarnessError, String(thrown));
      assert.match(thrown.message, /^search index in /);
      failures.push(thrown);
    }
  };
  await told(async () => {
    await using store = openEmbeddedStore(folder, IDENTITY);
    await told(() => store.fileHashes(NEVER));
    await told(() => store.counts(NEVER));
    await told(async () => {
      const found = await store.candidates({ text: "shared name3 src", vector: null }, 100, NEVER);
      return found.map(({ chunk }) => chunk.text);
    });
    await told(() => store.put([file("new.ts", "shared")], NEVER));
  });
  return failures;
}

test("a damaged index is reported as such, with what repairs it", async () => {
  await using place = await scratch();
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    await store.put(versionOf(1), NEVER);
  }
  const database = place.at("index", "index.db");
  const whole = await readFile(database);
  await writeFile(database, Buffer.concat([Buffer.alloc(200, 7), whole.subarray(200)]));
  const [failure] = await askAll(place.at("index"));
  assert.match(failure?.message ?? "", /it is damaged/);
  assert.match(failure?.remedy ?? "", /^rm -r .*index; /);
  await writeFile(database, whole.subarray(0, whole.length >> 1));
  const after = await askAll(place.at("index"));
  assert.ok(after.some(({ message }) => message.includes("it is damaged")));
});

test("altered bytes give an answer or an error message, never a crash", async () => {
  await using place = await scratch();
  {
    await using store = openEmbeddedStore(place.at("index"), IDENTITY);
    for (let version = 0; version < 6; version += 1) await store.put(versionOf(version), NEVER);
  }
  const database = place.at("index", "index.db");
  const whole = await readFile(database);
  const spots = fc.array(
    fc.tuple(fc.integer({ min: 100, max: whole.length - 1 }), fc.integer({ min: 0, max: 255 })),
    { minLength: 1, maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(spots, async (changes) => {
      const other = Buffer.from(whole);
      for (const [at, byte] of changes) other[at] = byte;
      await writeFile(database, other);
      await askAll(place.at("index"));
    }),
    { numRuns: part(60) },
  );
});

const skip =
  spawnSync("unshare", ["-rm", "true"]).status === 0
    ? false
    : "no mount namespace may be made here (unshare -rm)";

test("a full disk is reported with the next command, and kept data is found", { skip }, async () => {
  await using place = await scratch({ "index/x": "" });
  const { stdout } = await promisify(execFile)("unshare", [
    "-rm",
    "sh",
    "-ec",
    'mount -t tmpfs -o size=2m none "$1"; "$2" "$3" "$1"',
    "sh",
    place.at("index"),
    process.execPath,
    path.join(FIXTURES, "store-index-on-full-disk.ts"),
  ]);
  const { kept, told, held, found } = JSON.parse(stdout) as Record<string, unknown>;
  const { message, remedy } = told as { message: string; remedy: string };
  assert.match(message, /no space is left on the disk/, stdout);
  assert.match(remedy, /^df -h /);
  assert.ok(Number(kept) > 5, stdout);
  assert.ok(Number(held) >= Number(kept));
  assert.equal(found, held);
});

test("a folder in the place of the database is reported, and nothing in it is lost", async () => {
  await using place = await scratch({ "index.db/theirs": "kept" });
  assert.throws(
    () => openEmbeddedStore(place.path, IDENTITY),
    (thrown) =>
      thrown instanceof HarnessError && /index\.db is not a file/.test(thrown.message) && thrown.exit === 1,
  );
  assert.equal(await place.read("index.db/theirs"), "kept");
});
