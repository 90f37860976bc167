import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { openVectorCache } from "../../src/search/embed-model.ts";
import { vector } from "../fixtures/vectors.ts";
import { cosine } from "./stores/nearest.ts";
import { scratch } from "../fixtures/scratch.ts";

const NAME = "vectors-1.db";
const HOUR = 60 * 60 * 1000;

/** Collects the warnings. */
function heard(): { readonly said: string[]; readonly warn: (text: string) => void } {
  const said: string[] = [];
  return { said, warn: (text) => void said.push(text) };
}

const one = (text: string, ...numbers: readonly number[]): ReadonlyMap<string, Float32Array> =>
  new Map([[text, vector(...numbers)]]);

test("cached vectors are returned normalised, also to another process, and only to their user", async () => {
  await using place = await scratch();
  const { said, warn } = heard();
  {
    using cache = openVectorCache(place.at("cache"), { warn });
    assert.equal(cache.dimension("m"), undefined);
    cache.put("m", one("text", 3, 4, 1e-9));
    for (const suffix of ["", "-wal", "-shm"])
      assert.equal((await stat(place.at("cache", NAME + suffix))).mode & 0o777, 0o600, suffix);
    assert.equal((await stat(place.at("cache"))).mode & 0o777, 0o700);
  }
  using cache = openVectorCache(place.at("cache"), { warn });
  const found = cache.get("m", ["text", "another text"]);
  assert.deepEqual([...found.keys()], ["text"]);
  const kept = found.get("text") ?? vector();
  assert.ok(Math.abs(cosine(kept, vector(3, 4, 0)) - 1) < 1e-6);
  assert.ok(Math.abs(Math.hypot(...kept) - 1) < 0.001);
  assert.equal(cache.dimension("m"), 3);
  assert.deepEqual(said, []);
});

test("a text is cached per model; a new vector length replaces the model's old vectors", async () => {
  await using place = await scratch();
  using cache = openVectorCache(place.at("cache"), heard());
  cache.put("m", one("text", 1, 0));
  assert.equal(cache.get("n", ["text"]).size, 0);
  cache.put("n", one("text", 0, 1));
  cache.put("m", one("other", 1, 0, 0));
  assert.deepEqual([cache.dimension("m"), cache.get("m", ["text"]).size], [3, 0]);
  assert.equal(cache.get("n", ["text"]).size, 1);
  cache.forget("n");
  assert.deepEqual([cache.dimension("n"), cache.get("n", ["text"]).size], [undefined, 0]);
});

test("a full cache drops the entries unused for longest, and stays within its limit", async () => {
  await using place = await scratch();
  let now = 1_000_000_000_000;
  const options = { ...heard(), now: () => now, maxBytes: 400_000 };
  using cache = openVectorCache(place.at("cache"), options);
  const numbers = Array.from({ length: 768 }, (_, at) => at + 1);
  const put = (from: number, many: number): void =>
    cache.put(
      "m",
      new Map(Array.from({ length: many }, (_, at) => [`text ${from + at}`, vector(...numbers)])),
    );
  put(0, 100);
  now += 2 * HOUR;
  // Used again: these stay.
  assert.equal(
    cache.get(
      "m",
      Array.from({ length: 20 }, (_, at) => `text ${at}`),
    ).size,
    20,
  );
  now += 2 * HOUR;
  for (let from = 100; from < 250; from += 10) {
    now += 1000;
    put(from, 10);
  }
  const there = (from: number, to: number): number =>
    cache.get(
      "m",
      Array.from({ length: to - from }, (_, at) => `text ${from + at}`),
    ).size;
  assert.equal(there(0, 20), 20);
  assert.equal(there(20, 60), 0);
  assert.equal(there(240, 250), 10);
  using sqlite = new DatabaseSync(place.at("cache", NAME), { readOnly: true });
  const rows = Number(sqlite.prepare("SELECT count(*) AS n FROM vectors").get()?.["n"]);
  assert.ok(rows >= 100 && rows * 1536 < options.maxBytes, String(rows));
});

test("a damaged cache is set aside and reported, and replaced by a new one", async () => {
  await using place = await scratch();
  await place.write(`cache/${NAME}`, "this was a database once ".repeat(400));
  const { said, warn } = heard();
  using cache = openVectorCache(place.at("cache"), { warn });
  assert.match(
    said.join("\n"),
    /^the vector cache was damaged: it was moved to .*vectors-1\.db\.damaged, and a new/,
  );
  cache.put("m", one("text", 1, 0));
  assert.equal(cache.get("m", ["text"]).size, 1);
  assert.match(await place.read(`cache/${NAME}.damaged`), /^this was a database once/);
});

test("a cache that is damaged while in use is set aside too", async () => {
  await using place = await scratch();
  const { said, warn } = heard();
  {
    using cache = openVectorCache(place.at("cache"), { warn });
    const numbers = Array.from({ length: 400 }, (_, at) => at + 1);
    cache.put("m", new Map(Array.from({ length: 200 }, (_, at) => [`text ${at}`, vector(...numbers)])));
  }
  const { size } = await stat(place.at("cache", NAME));
  const bytes = Buffer.alloc(size, 0xa5);
  const file = new Uint8Array(await (await import("node:fs/promises")).readFile(place.at("cache", NAME)));
  bytes.set(file.subarray(0, 4096));
  await writeFile(place.at("cache", NAME), bytes);
  using cache = openVectorCache(place.at("cache"), { warn });
  assert.equal(cache.get("m", ["text 7"]).size, 0);
  cache.put("m", one("text 7", 1, 0));
  assert.equal(cache.get("m", ["text 7"]).size, 1);
  assert.equal(said.length, 1, said.join("\n"));
});

test("where no cache is possible it is reported once, and everything continues", async () => {
  await using place = await scratch({ cache: "a file where the folder should be" });
  const { said, warn } = heard();
  using cache = openVectorCache(place.at("cache"), { warn });
  cache.put("m", one("text", 1, 0));
  cache.learn("m", 2);
  assert.deepEqual([cache.get("m", ["text"]).size, cache.dimension("m")], [0, undefined]);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^vectors are not cached: .* cannot be used/);
});

const namespace = spawnSync("unshare", ["-rm", "true"]).status === 0;
const skip = namespace ? false : "no mount namespace may be made here (unshare -rm)";

test(
  "on a full disk existing entries can be read, and it is reported once that no more are kept",
  { skip },
  async () => {
    await using place = await scratch();
    const script = path.join(import.meta.dirname, "..", "fixtures", "cache-writer.ts");
    const mounted = 'mount -t tmpfs -o size=2m none "$1"; exec "$2" "$3" "$1"';
    const { stdout, stderr } = spawnSync(
      "unshare",
      ["-rm", "sh", "-ec", mounted, "sh", place.path, process.execPath, script],
      { encoding: "utf8", timeout: 60_000 },
    );
    const told = JSON.parse(stdout || `"${stderr}"`) as {
      said: readonly string[];
      first: number;
      last: number;
    };
    assert.equal(told.said.length, 1, stdout + stderr);
    assert.match(told.said[0] ?? "", /^new vectors are not cached: .* cannot be written/);
    assert.deepEqual([told.first, told.last], [1, 0]);
  },
);
