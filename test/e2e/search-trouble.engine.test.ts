// slow: it indexes anew for each way to damage an index; embedded-breaks.test.ts has the store's own
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { sourceTree } from "../../bench/source-tree.ts";
import { Catalog } from "../../src/search/catalog.ts";
import { tryWriter } from "../../src/search/index-folders.ts";
import { COMPILED } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { many } from "../fixtures/property.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { indexed, indexOf, paths, search } from "./index-of.ts";
import { ROOT } from "./package.ts";
import { harness } from "./run-command.ts";

const FILES = { "src/door.ts": "export function openPortcullis(): void {}\n" };

test(
  "while another process writes the index, a search uses the existing one and says so",
  { skip },
  async () => {
    await using place = await household(FILES);
    await indexed(place);
    await appendFile(place.at("work/src/door.ts"), "export const crocodile = 1;\n");
    const { folder } = await indexOf(place);
    {
      using lock = tryWriter(folder);
      assert.ok(lock);
      const found = await search(place, "portcullis crocodile");
      assert.deepEqual([paths(found), found.stale], [["src/door.ts"], true]);
      assert.ok(
        found.stderr.includes(`another harness is writing this index (process ${process.pid}, since `),
      );
      const second = await harness(place, ["index", "--json"]);
      assert.equal(second.code, 1);
      assert.match(second.stdout, /another harness is writing this index/);
    }
    const freed = await search(place, "crocodile");
    assert.deepEqual([paths(freed), freed.stale, freed.stderr], [["src/door.ts"], false, ""]);
  },
);

test("without an engine an old index answers, and a new one cannot be created", { skip }, async () => {
  await using place = await household(FILES);
  const env = { DOCKER_HOST: `unix://${place.at("nowhere.sock")}` };
  const none = await harness(place, ["search", "--json", "portcullis"], { env });
  assert.equal(none.code, 6, none.stderr);
  await indexed(place);
  const fresh = await search(place, "portcullis", { env });
  assert.deepEqual([paths(fresh), fresh.stale, fresh.stderr], [["src/door.ts"], false, ""]);
  await appendFile(place.at("work/src/door.ts"), "export const crocodile = 1;\n");
  const old = await search(place, "portcullis crocodile", { env });
  assert.deepEqual([paths(old), old.stale], [["src/door.ts"], true]);
  assert.match(old.stderr, /^note: the answer may be older than the files: no container engine answers/);
});

/** Waits until the catalog knows of files. */
async function whenSome(place: Scratch): Promise<void> {
  const root = place.at(".local/state/harness/search");
  for (let looks = 0; looks < 5000; looks += 1) {
    for (const name of readdirSync(root)) {
      using catalog = Catalog.read(path.join(root, name));
      if (catalog !== undefined && catalog.files().size > 0) return;
    }
    await sleep(20);
  }
  throw new Error("the catalog never knew of a file");
}

/** Far more than are known when the first is. */
const COUNT = 1200;

test("Ctrl-C keeps what is done, and reports that it is incomplete", { skip }, async () => {
  await using place = await household();
  await sourceTree(place.at("work"), COUNT);
  const child = { stopped: false };
  const ran = await harness(place, ["index", "--no-embed"], {
    whenMade: [
      place.at(".local/state/harness/search"),
      (process) => void whenSome(place).then(() => (child.stopped = process.kill("SIGINT"))),
    ],
  });
  assert.ok(child.stopped, "it was over before it could be stopped");
  assert.equal(ran.code, 130, ran.stderr);
  assert.match(ran.stderr, /next: what is done is kept; harness index continues from there/);
  const { facts, files } = await indexOf(place);
  const done = Object.keys(files).length;
  assert.deepEqual([facts.whole, done > 0 && done < COUNT], [false, true], `${done} files`);
  const status = JSON.parse((await harness(place, ["index", "--status", "--json"])).stdout) as {
    whole: boolean;
  };
  assert.equal(status.whole, false);
  const partial = await search(place, "proxy of a region", { env: { DOCKER_HOST: "unix:///nowhere.sock" } });
  assert.equal(partial.stale, true);
  const rest = JSON.parse((await indexed(place)).stdout) as { files: number; changed: number };
  assert.deepEqual([rest.files, rest.changed], [COUNT, COUNT - done]);
});

test("ten thousand small files", { skip }, async () => {
  await using place = await household();
  for (let folder = 0; folder < 100; folder += 1) {
    const inside = place.at(`work/d${folder}`);
    mkdirSync(inside);
    for (let at = 0; at < 100; at += 1)
      writeFileSync(path.join(inside, `f${at}.txt`), `needle ${folder} ${at}\n`);
  }
  // As `giveAway`, which takes as long as the index for so many.
  if (process.getuid?.() === 0) spawnSync("chown", ["-R", "1000:1000", place.at("work")]);
  const first = JSON.parse((await indexed(place)).stdout) as { files: number; chunks: number };
  assert.deepEqual([first.files, first.chunks], [10_000, 10_000]);
  const found = await search(place, "needle 73 42", { flags: ["--limit", "1"] });
  assert.deepEqual([paths(found), found.stderr], [["d73/f42.txt"], ""]);
});

const namespace = skip === false && spawnSync("unshare", ["-rm", "true"]).status === 0;
const unshared = namespace ? false : skip || "no mount namespace may be made here (unshare -rm)";

/** In a namespace of its own, over a state folder of which this is done. */
async function over(
  state: string,
  mount: string,
  words: readonly string[],
  cwd: string,
): Promise<readonly unknown[]> {
  const line = `mount ${mount} && shift && exec "$@"`;
  const harnessWords = [path.join(ROOT, "bin/harness"), ...words];
  const env = { PATH: process.env["PATH"], HOME: path.dirname(cwd), ...COMPILED };
  const run = promisify(execFile)("unshare", ["-rm", "sh", "-c", line, "sh", state, ...harnessWords], {
    cwd,
    env,
  });
  return run.then(
    ({ stdout }) => [0, stdout],
    ({ code, stdout }: { code: number; stdout: string }) => [code, stdout],
  );
}

test("a full disk has its own cause, and indexing continues from there", { skip: unshared }, async () => {
  await using place = await household();
  await sourceTree(place.at("work"), 400);
  const state = place.at(".local/state/harness/search");
  await mkdir(state, { recursive: true });
  const words = ["index", "--json", "--no-embed", "-q"];
  const [code, stdout] = await over(state, `-t tmpfs -o size=1m none ${state}`, words, place.at("work"));
  assert.equal(code, 1, String(stdout));
  assert.match(String(stdout), /no space is left on the disk/);
  const rest = JSON.parse((await indexed(place)).stdout) as { files: number };
  assert.equal(rest.files, 400);
});

test(
  "an unwritable state folder has its own cause, and its index still answers",
  { skip: unshared },
  async () => {
    await using place = await household(FILES);
    await indexed(place);
    const state = place.at(".local/state/harness/search");
    const mount = `--bind ${state} ${state} && mount -o remount,ro,bind ${state}`;
    const [found, answer] = await over(state, mount, ["search", "--json", "portcullis"], place.at("work"));
    assert.equal(found, 0, String(answer));
    assert.deepEqual(paths(JSON.parse(String(answer)) as never), ["src/door.ts"]);
    const [code, why] = await over(state, mount, ["index", "--json"], place.at("work"));
    assert.equal(code, 1);
    assert.match(String(why), /is not writable/);
  },
);

/** What a disk, a full one or a hand may leave of a database. */
const DAMAGES: Readonly<Record<string, (file: string, bytes: Buffer) => Promise<void>>> = {
  "is none": (file) => writeFile(file, "this is no database, and was never one".repeat(200)),
  "is cut in two": (file, bytes) => writeFile(file, bytes.subarray(0, bytes.length >> 1)),
  // The opening looks at none of these pages.
  "has an empty page": (file, bytes) =>
    writeFile(file, Buffer.from(bytes).fill(0, bytes.length >> 1, (bytes.length >> 1) + 4096)),
  "has no second page": (file, bytes) => writeFile(file, Buffer.from(bytes).fill(0, 4096, 8192)),
  "is empty": (file) => writeFile(file, ""),
  "is gone": (file) => rm(file),
  "is gone, and its journal stays": async (file) => {
    await rm(file);
    for (const end of ["-wal", "-shm"]) await writeFile(`${file}${end}`, Buffer.alloc(9000, 3));
  },
};

test("a damaged index is set aside and rebuilt", { skip }, async () => {
  const more = Array.from(
    { length: 40 },
    (_, n) => [`src/f${n}.ts`, `export function helper${n}() {}\n`] as const,
  );
  await using place = await household({ ...FILES, ...Object.fromEntries(more) });
  await indexed(place);
  const { folder, chunks } = await indexOf(place);
  // Each damage in every run: to the one, and to the other in another run.
  const [all, turn] = [many(1) > 1, randomInt(2)];
  for (const [at, name] of ["catalog.db", "store/index.db"].entries())
    for (const [nth, [what, damage]] of Object.entries(DAMAGES).entries()) {
      if (!all && (at + nth + turn) % 2 === 0) continue;
      const file = path.join(folder, name);
      await damage(file, await readFile(file));
      const found = await search(place, "portcullis");
      assert.deepEqual([found.results[0]?.path, found.stale], ["src/door.ts", false], `${name} ${what}`);
      assert.equal(
        /damaged/.test(found.stderr),
        !/gone|empty$/.test(what),
        `${name} ${what}: ${found.stderr}`,
      );
      assert.deepEqual((await indexOf(place)).chunks, chunks, `${name} ${what}`);
    }
});

test("a folder in place of an index file is named, and stays", { skip }, async () => {
  await using place = await household(FILES);
  await indexed(place);
  const { folder } = await indexOf(place);
  for (const name of ["catalog.db", "store/index.db", "writer.lock"]) {
    const file = path.join(folder, name);
    await rename(file, `${file}.mine`);
    for (const beside of ["-wal", "-shm"]) await rm(file + beside, { force: true });
    await mkdir(file);
    await writeFile(path.join(file, "theirs"), "kept");
    await appendFile(place.at("work/src/door.ts"), "export const crocodile = 1;\n");
    // Without its lock an index can still be asked.
    const searches = name === "writer.lock" ? [] : [["search", "portcullis"]];
    for (const words of [...searches, ["index", "--no-embed"]]) {
      const ran = await harness(place, words);
      assert.equal(ran.code, 1, `${name}: ${ran.stderr}`);
      assert.match(ran.stderr, new RegExp(`${name} is not a file\\)\n\\s+next: ls -ld .*; move it away`));
    }
    assert.equal(await readFile(path.join(file, "theirs"), "utf8"), "kept");
    await rm(file, { recursive: true });
    await rename(`${file}.mine`, file);
    assert.deepEqual(paths(await search(place, "crocodile")), ["src/door.ts"]);
  }
});
