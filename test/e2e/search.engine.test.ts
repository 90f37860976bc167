import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFile, cp, mkdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { indexed, indexOf, paths, search } from "./index-of.ts";
import { harness } from "./run-command.ts";

const FILES = {
  "src/door.ts": "/** Opens the portcullis of the castle. */\nexport function openPortcullis(): void {}\n",
  "src/moat.ts": "export const drawbridge = 'lowered by a winch';\n",
  "README.md": "# Castle\n\nHow the garrison is fed.\n",
};

test(
  "a first search creates the index, and prints one line of JSON with exactly the documented keys",
  { skip },
  async () => {
    await using place = await household(FILES);
    const ran = await harness(place, ["search", "--json", "open", "the", "portcullis"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(ran.stdout.split("\n").length, 2);
    const answer = JSON.parse(ran.stdout) as Record<string, unknown>;
    assert.deepEqual(Object.keys(answer), ["results", "store", "stale", "vectors"]);
    const [first] = answer["results"] as Record<string, unknown>[];
    assert.deepEqual(Object.keys(first ?? {}), ["path", "start", "end", "symbol", "score", "preview", "why"]);
    assert.equal(first?.["path"], "src/door.ts");
    assert.deepEqual([answer["store"], answer["stale"]], ["embedded", false]);
  },
);

test("finding nothing is not a failure, and a query may come from a pipe", { skip }, async () => {
  await using place = await household(FILES);
  const none = await search(place, "xylophone quartet");
  assert.deepEqual(none.results, []);
  const piped = await search(place, "-", { input: "the garrison\nis fed\n" });
  assert.deepEqual(paths(piped), ["README.md"]);
  const long = await harness(place, ["search", "-"], { input: "garrison ".repeat(2 ** 17) });
  assert.match(long.stderr, /the query is longer than 1 MiB\n +next: ask in a few words/);
  const person = await harness(place, ["search", "winch"]);
  assert.match(person.stdout, /^src\/moat\.ts:1-1 drawbridge\n/);
  const nobody = await harness(place, ["search", "xylophone"]);
  assert.deepEqual([nobody.code, nobody.stdout, nobody.stderr], [0, "", "note: nothing found\n"]);
  const wrong = await harness(place, ["search", "--limit", "0", "x"]);
  assert.equal(wrong.code, 2, wrong.stderr);
  assert.equal((await harness(place, ["search"])).code, 2);
  assert.equal((await harness(place, ["index", "nowhere"])).code, 2);
});

test("changes, removals and renames are seen by the next search", { skip }, async () => {
  await using place = await household(FILES);
  await indexed(place);
  await appendFile(place.at("work/src/moat.ts"), "export const crocodile = 'hungry';\n");
  assert.deepEqual(paths(await search(place, "crocodile")), ["src/moat.ts"]);
  await rename(place.at("work/src/door.ts"), place.at("work/src/gate.ts"));
  assert.deepEqual(paths(await search(place, "portcullis")), ["src/gate.ts"]);
  await rm(place.at("work/src/moat.ts"));
  assert.deepEqual(paths(await search(place, "crocodile")), []);
  const { chunks } = await indexOf(place);
  await rm(place.at(".local/state/harness/search"), { recursive: true });
  await indexed(place);
  assert.deepEqual((await indexOf(place)).chunks, chunks, "as a fresh index");
});

test("ignore rules apply at once, including those of sub-folders", { skip }, async () => {
  await using place = await household({
    ...FILES,
    "lib/a.ts": "export const turret = 1;\n",
    "lib/b.ts": "export const turret = 2;\n",
    "node_modules/x/index.js": "exports.turret = 3;\n",
    ".vscode/tasks.json": '{ "turret": 4 }\n',
    ".env": "TURRET=5\n",
  });
  assert.deepEqual(paths(await search(place, "turret")).toSorted(), ["lib/a.ts", "lib/b.ts"]);
  assert.equal((await indexOf(place)).files[".env"], "secret");
  await writeFile(place.at("work/.gitignore"), "a.ts\n");
  assert.deepEqual(paths(await search(place, "turret")), ["lib/b.ts"]);
  await writeFile(place.at("work/lib/.gitignore"), "!a.ts\n/b.ts\n");
  assert.deepEqual(paths(await search(place, "turret")), ["lib/a.ts"]);
  await writeFile(place.at("work/.harnessignore"), "lib/\n");
  assert.deepEqual(paths(await search(place, "turret")), []);
  await writeFile(place.at("work/.harnessignore"), "nothing.ts\n".repeat(6000));
  for (const words of [
    ["search", "turret"],
    ["search", "turret"],
    ["index", "--status"],
  ]) {
    const { stderr } = await harness(place, words);
    assert.match(stderr, /no file is indexed: \.harnessignore is longer than 65536 characters/);
  }
  await rm(place.at("work/.harnessignore"));
  await rm(place.at("work/lib/.gitignore"));
  await rm(place.at("work/.gitignore"));
  assert.deepEqual(paths(await search(place, "turret")).toSorted(), ["lib/a.ts", "lib/b.ts"]);
});

/** A shell of the host: for what the file system of Node has no word. */
function sh(place: Scratch, line: string): void {
  const { status, stderr } = spawnSync("sh", ["-c", line], { cwd: place.at("work"), encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

test("nothing outside is read, and odd files do not block indexing", { skip }, async () => {
  await using place = await household(FILES);
  await mkdir(place.at("outside"));
  await writeFile(place.at("outside/secret.ts"), "export const dungeon = 'root:x:0:0';\n");
  await symlink("/etc/passwd", place.at("work/passwd.txt"));
  await symlink(place.at("outside"), place.at("work/out"));
  await symlink(place.at("outside/secret.ts"), place.at("work/src/linked.ts"));
  await symlink("..", place.at("work/src/up"));
  await writeFile(place.at("work/huge.txt"), "dungeon\n");
  await truncate(place.at("work/huge.txt"), 2 ** 30);
  sh(place, "mkfifo pipe.ts src/pipe && mkdir closed");
  await writeFile(
    place.at("work/bytes.ts"),
    Buffer.from("export const dung = '\xff\xfe\x80'; // oubliette\n", "latin1"),
  );
  sh(place, String.raw`printf 'export const oubliette = 1;\n' > "$(printf 'new\nline.ts')"`);
  sh(place, String.raw`printf 'export const oubliette = 1;\n' > "$(printf 'bad\377name.ts')"`);
  sh(place, "printf 'export const oubliette = 2;\n' > '--checkpoint-action=exec=touch PWNED.ts'");
  // Links as they are: what they lead to is not theirs to give away.
  if (process.getuid?.() === 0) sh(place, "chown -hR 1000:1000 .");
  const before = await search(place, "dungeon root");
  assert.deepEqual(before.results, []);
  const { files, chunks } = await indexOf(place);
  assert.equal(files["huge.txt"], "huge");
  assert.deepEqual(Object.keys(files).toSorted(), [
    "--checkpoint-action=exec=touch PWNED.ts",
    "README.md",
    "bytes.ts",
    "huge.txt",
    "new\nline.ts",
    "src/door.ts",
    "src/moat.ts",
  ]);
  assert.ok(chunks.every((each) => !/passwd|linked|^out\//.test(each)));
  const found = await search(place, "oubliette");
  assert.ok(paths(found).includes("new\nline.ts"), JSON.stringify(paths(found)));
  assert.equal(found.stale, false);
  // A name that is no text is counted, and is no change at every look; so is a folder that cannot be looked into.
  sh(place, "chmod 000 closed");
  const again = await harness(place, ["index", "--json", "--no-embed"]);
  sh(place, "chmod 755 closed");
  assert.deepEqual((JSON.parse(again.stdout) as { skipped: unknown }).skipped, { huge: 1, unreadable: 2 });
  const status = await harness(place, ["index", "--status", "--json"]);
  assert.equal((JSON.parse(status.stdout) as { fresh: boolean }).fresh, true);
});

test("an index follows its folder when it is moved, and a copy gets its own", { skip }, async () => {
  await using place = await household(FILES);
  const first = JSON.parse((await indexed(place)).stdout) as { index: string };
  await cp(place.at("work"), place.at("copy"), { recursive: true });
  await giveAway(place.at("copy"));
  const copied = JSON.parse((await indexed(place, ["--cwd", place.at("copy")])).stdout) as {
    index: string;
  };
  assert.notEqual(copied.index, first.index);
  await rename(place.at("work"), place.at("moved"));
  const at = { cwd: place.at("moved") };
  const moved = await harness(place, ["index", "--json", "--no-embed"], at);
  const told = JSON.parse(moved.stdout) as { index: string; changed: number };
  assert.deepEqual([told.index, told.changed], [first.index, 0], moved.stderr);
  assert.match(moved.stderr, /note: this folder was indexed as .*\/work, and has moved/);
  assert.deepEqual(paths(await search(place, "portcullis", at)), ["src/door.ts"]);
});

test("--prune removes only what is no longer needed", { skip }, async () => {
  await using place = await household(FILES);
  await indexed(place);
  await cp(place.at("work"), place.at("copy"), { recursive: true });
  await giveAway(place.at("copy"));
  await indexed(place, ["--cwd", place.at("copy")]);
  await rm(place.at("copy"), { recursive: true });
  const pruned = await harness(place, ["index", "--prune", "--json"]);
  const told = JSON.parse(pruned.stdout) as { removed: { workspace: string }[]; left: unknown[] };
  assert.deepEqual([told.removed.map(({ workspace }) => workspace), told.left], [[place.at("copy")], []]);
  const kept = await search(place, "portcullis");
  assert.deepEqual([paths(kept), kept.stderr], [["src/door.ts"], ""]);
});
