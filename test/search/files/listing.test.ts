// also slow: rules as many as a tree can have
import assert from "node:assert/strict";
import { mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import test from "node:test";
import type { Box } from "../../../src/core/ports.ts";
import { contentsOf, type Listing } from "../../../src/search/files/box-files.ts";
import { listingIn } from "../../../src/search/files/workspace-listing.ts";
import { fakeBox } from "../../fakes/box.ts";
import { hostBox } from "../../fakes/host-box.ts";
import { gnu, never, RULES } from "../../fixtures/index.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

const FILES = {
  "a.ts": "a",
  "log/x.log": "x",
  "log/keep.log": "k",
  "log/.gitignore": "!keep.log\n",
  ".gitignore": "*.log\n/out/\nsrc/gen\n",
  "out/made.ts": "m",
  "src/gen/g.ts": "g",
  "src/out/o.ts": "o",
  ".env": "s",
  ".harnessignore": "hidden/\n",
  "hidden/h.ts": "h",
  ".git/config": "[core]",
  "vendor/sub/.git": "gitdir: ../../.git/modules/sub",
  "sub/node_modules/m/i.js": "i",
  ".vscode/tasks.json": "{}",
  "vendor/lib/v.go": "v",
  "build/b.ts": "b",
};
const READ = [".gitignore", ".harnessignore", "a.ts", "build/b.ts", "log/.gitignore", "log/keep.log"].concat([
  "src/out/o.ts",
  "vendor/lib/v.go",
]);

const listed = (box: Box, known: Listing["rules"] = []): Promise<Listing> =>
  listingIn({ box, rules: RULES, largest: 100, known, signal: never });

async function contents(
  box: Box,
  paths: readonly string[],
  most = 100,
): Promise<Record<string, string | null>> {
  const found: Record<string, string | null> = {};
  for await (const { path, bytes } of contentsOf(box, paths, { most, signal: never }))
    found[path] = bytes?.toString("latin1") ?? null;
  return found;
}

async function work(files: Readonly<Record<string, string>>): Promise<Scratch> {
  const below = Object.entries(files).map(([name, text]) => [`work/${name}`, text] as const);
  return scratch(Object.fromEntries(below));
}

for (const how of ["find and tar", "one by one"] as const) {
  const skip = how === "find and tar" ? gnu : false;

  test(
    `${how}: rules of every folder apply, and secrets and tool folders are left out`,
    { skip },
    async () => {
      await using place = await work(FILES);
      const box = how === "find and tar" ? hostBox(place.at("work")) : fakeBox({ files: FILES });
      const listing = await listed(box);
      assert.deepEqual([...listing.files.keys()].toSorted(), READ);
      assert.deepEqual(
        [...listing.skipped].map(([path, { why }]) => [path, why]),
        [[".env", "secret"]],
      );
      assert.deepEqual(listing.rules.map(({ path }) => path).toSorted(), [
        ".gitignore",
        ".harnessignore",
        "log/.gitignore",
      ]);
      const texts = await contents(box, ["a.ts", "src/out/o.ts", "nowhere.ts", "log"]);
      assert.deepEqual(texts, { "a.ts": "a", "src/out/o.ts": "o" });
    },
  );

  test(`${how}: a file above the maximum size is not read`, { skip }, async () => {
    const files = { "long.ts": "x".repeat(101), "most.ts": "y".repeat(100) };
    await using place = await work(files);
    const box = how === "find and tar" ? hostBox(place.at("work")) : fakeBox({ files });
    const { files: read, skipped } = await listed(box);
    assert.deepEqual([[...read.keys()], [...skipped.keys()]], [["most.ts"], ["long.ts"]]);
    // It has grown since.
    assert.deepEqual(await contents(box, ["long.ts", "most.ts"]), {
      "long.ts": null,
      "most.ts": "y".repeat(100),
    });
  });
}

test("links, pipes and names of all kinds are listed correctly", { skip: gnu }, async () => {
  await using place = await work({ "a.ts": "a" });
  const at = (name: string): string => place.at("work", name);
  await symlink("/etc/passwd", at("passwd"));
  await symlink("..", at("up"));
  await symlink("a.ts", at(".gitignore"));
  await mkdir(at("deep/".repeat(30)), { recursive: true });
  const long = `${"deep/".repeat(30)}${"n".repeat(200)}.ts`;
  const names = [long, "new\nline.ts", "-rf", "ü 𝄞.ts", "a\\b.ts", "*.ts"];
  for (const name of names) await writeFile(at(name), name.slice(-40));
  await writeFile(Buffer.from(`${place.at("work")}/bad\xff.ts`, "latin1"), "bad");
  await writeFile(at("sparse"), "");
  await truncate(at("sparse"), 90);
  assert.equal(spawnSync("mkfifo", [at("pipe")]).status, 0);
  const box = hostBox(place.at("work"));
  const { files, nameless } = await listed(box);
  assert.equal(nameless, 1);
  assert.deepEqual([...files.keys()].toSorted(), [...names, "a.ts", "sparse"].toSorted());
  const texts = await contents(box, [...files.keys(), "passwd", "pipe", "up"], 400);
  const expected = Object.fromEntries(
    names.map((name) => [name, Buffer.from(name.slice(-40)).toString("latin1")]),
  );
  assert.deepEqual(texts, { ...expected, "a.ts": "a", sparse: "\0".repeat(90) });
});

test("unchanged rules are not read again", { skip: gnu }, async () => {
  await using place = await work({ ".gitignore": "x\n", x: "1" });
  await new Promise((resolve) => void setTimeout(resolve, 150));
  const box = hostBox(place.at("work"));
  const { rules } = await listed(box);
  assert.deepEqual(box.started, ["find", "tar"]);
  assert.deepEqual((await listed(box, rules)).rules, rules);
  assert.deepEqual(box.started, ["find", "tar", "find"]);
});

test("nothing is listed where the rules for hidden files are unknown", { skip: gnu }, async () => {
  await using place = await work({ "a.ts": "a" });
  await symlink("a.ts", place.at("work/.harnessignore"));
  await assert.rejects(listed(hostBox(place.at("work"))), /\.harnessignore cannot be read/);
});

const COUNT = 500;

async function lies(archive: Buffer): Promise<unknown> {
  const box = fakeBox({ commands: { tar: async ({ out }) => (await out(archive), 0) } });
  return contents(box, ["a.ts"]);
}

/** As many rules, and as long ones, as fit in 64 KiB: every path is matched against all rules above it. */
const MANY_64K = "xx*yy\n".repeat(11_000);
const RULES_64K = `xx*${"y".repeat(62)}\n`.repeat(1000);

slowTest("long nested rules are applied, and too many of them are refused", { skip: gnu }, async () => {
  await using place = await work({ "a.ts": "a" });
  const files = Array.from({ length: 60 }, (_, at) => "n/".repeat(at + 1));
  await mkdir(place.at("work", files.at(-1) ?? ""), { recursive: true });
  for (const folder of files)
    await writeFile(place.at("work", folder, ".gitignore"), folder === "n/" ? MANY_64K : RULES_64K);
  const box = hostBox(place.at("work"));
  assert.equal((await listed(box)).rules.length, 60);
  for (let at = 0; at < 10; at += 1) {
    await mkdir(place.at("work", `m${at}`));
    await writeFile(place.at("work", `m${at}`, ".gitignore"), RULES_64K);
  }
  await assert.rejects(listed(box), /hold too many rules/);
});

test("a manipulated listing is not trusted", async () => {
  const numbers = ["1", "1", "1", "1"];
  const records = [
    ["f", ...numbers, "../outside", ""],
    ["f", ...numbers, "/etc/passwd", ""],
    ["f", "x", "1", "1", "1", "a", ""],
  ].map((fields) => fields.join("\0"));
  for (const record of records) {
    const find = fakeBox({ commands: { find: async ({ out }) => (await out(record), 0) } });
    await assert.rejects(listed(find), /cannot be read/, JSON.stringify(record));
  }
  const flood = fakeBox({
    commands: {
      find: async ({ out }) => {
        for (let at = 0; at < 200; at += 1) await out("x".repeat(2 ** 16));
        return 0;
      },
    },
  });
  await assert.rejects(listed(flood), /cannot be read/, "a record without an end");
  await assert.rejects(lies(Buffer.alloc(COUNT * 512, 7)), /cannot be read/);
  assert.deepEqual(await lies(archiveOf("other.ts", "x")), {}, "no file is returned that was not requested");
  assert.deepEqual(await lies(archiveOf("a.ts", "x")), { "a.ts": "x" });
});

test("archive records take time linear in their length", async () => {
  // No record ends before the very last byte.
  const records = Buffer.from("2 ".repeat(2 ** 19 - 8) + "=".repeat(16));
  const archive = Buffer.concat([headerOf("pax", records.length, "x"), records, archiveOf("a.ts", "x")]);
  assert.deepEqual(await lies(archive), { "a.ts": "x" });
});

const record = (path: string): string => `f\0${"1\0".repeat(4)}${path}\0`;

test("unreadable folders are counted, unless they are left out anyway", async () => {
  const files = { ".gitignore": "out/\n", "a.ts": "a" };
  const closed = ["data", "src/data", "out", "node_modules"].map(
    (path) => `closed\0${"1\0".repeat(4)}${path}\0`,
  );
  const records = [record(".gitignore"), record("a.ts"), `d\0${"1\0".repeat(4)}src\0`, ...closed];
  const find = fakeBox({ files, commands: { find: async ({ out }) => (await out(records.join("")), 0) } });
  const listing = await listed(find);
  assert.deepEqual([[...listing.files.keys()], listing.closed], [[".gitignore", "a.ts"], 2]);
});

test("a path too long to open is counted but not kept", async () => {
  const long = `${"n".repeat(200)}/`.repeat(25);
  const find = fakeBox({
    commands: { find: async ({ out }) => (await out(record(`${long}f`) + record("a")), 0) },
  });
  const { files, nameless } = await listed(find);
  assert.deepEqual([[...files.keys()], nameless], [["a"], 1]);
});

/** One file in the oldest form. */
function archiveOf(name: string, text: string): Buffer {
  const header = headerOf(name, text.length, "0");
  return Buffer.concat([header, Buffer.from(text.padEnd(512, "\0")), Buffer.alloc(1024)]);
}

function headerOf(name: string, length: number, type: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write(`${length.toString(8).padStart(11, "0")}\0`, 124);
  header.write(type, 156);
  header.fill(" ", 148, 156);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
