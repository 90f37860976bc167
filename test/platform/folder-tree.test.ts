import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, link, mkdir, readdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { bytesOfName, FolderTree, textOfName } from "../../src/platform/folder-tree.ts";
import type { TreeEntry } from "../../src/core/behaviour.ts";
import { scratch } from "../fixtures/scratch.ts";

const { signal } = new AbortController();

async function listed(entries: ReturnType<FolderTree["entries"]>): Promise<readonly TreeEntry[]> {
  const all: TreeEntry[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}

test("each entry is listed with its kind, mode, size and target, and no link is followed", async () => {
  await using place = await scratch({ "a/file.txt": "hello", "a/run.sh": "#!/bin/sh\n" });
  await chmod(place.at("a/run.sh"), 0o4755);
  await symlink("..", place.at("a/up"));
  await symlink("/etc/hostname", place.at("a/out"));
  await link(place.at("a/file.txt"), place.at("a/same.txt"));
  execFileSync("mkfifo", [place.at("a/pipe")]);
  const tree = new FolderTree(place.path);
  const found = new Map((await listed(tree.entries(signal))).map((entry) => [entry.path, entry]));
  assert.deepEqual([...found.keys()].toSorted(), [
    "a",
    "a/file.txt",
    "a/out",
    "a/pipe",
    "a/run.sh",
    "a/same.txt",
    "a/up",
  ]);
  assert.deepEqual(found.get("a/file.txt"), {
    path: "a/file.txt",
    kind: "file",
    mode: 0o644,
    size: 5,
    names: 2,
  });
  assert.equal(found.get("a/run.sh")?.mode, 0o4755);
  assert.equal(found.get("a/out")?.target, "/etc/hostname");
  assert.deepEqual([found.get("a/pipe")?.kind, found.get("a/pipe")?.target], ["odd", "pipe"]);
  assert.equal(Buffer.from((await tree.read("a/file.txt", 3)) ?? []).toString(), "hel");
  assert.equal(Buffer.from((await tree.read("a/file.txt", 9, 3)) ?? []).toString(), "lo");
  for (const none of ["a/out", "a/pipe", "a", "../x", "a/none"])
    assert.equal(await tree.read(none, 9), undefined, none);
});

test("a file that was replaced, or a folder that became a link, is not read", async () => {
  await using place = await scratch({
    "in/a": "ours",
    "in/b/c": "ours",
    "other/c": "theirs",
    "other/a": "theirs",
  });
  const tree = new FolderTree(place.at("in"));
  await listed(tree.entries(signal));
  await rename(place.at("other/a"), place.at("in/a"));
  await rename(place.at("in/b"), place.at("in/old"));
  await symlink("../other", place.at("in/b"));
  assert.equal(await tree.read("a", 9), undefined);
  assert.equal(await tree.read("b/c", 9), undefined);
});

test("names of arbitrary bytes lead back to their file", async () => {
  await using place = await scratch();
  const names = [
    [0xff, 0x61],
    [0x61, 0xc3],
    [0xed, 0xa0, 0x80],
    [0x0a, 0x1b],
    [0xf0, 0x9f, 0x98, 0x80],
  ].map((bytes) => Buffer.from(bytes));
  for (const name of names) {
    assert.deepEqual(bytesOfName(textOfName(name)), name);
    await writeFile(Buffer.concat([Buffer.from(`${place.path}/`), name]), "x");
  }
  const tree = new FolderTree(place.path);
  const found = await listed(tree.entries(signal));
  assert.equal(found.length, names.length);
  for (const entry of found)
    assert.equal((await tree.read(entry.path, 9))?.length, 1, JSON.stringify(entry.path));
});

test("an empty file of a terabyte is read only as far as requested", async () => {
  await using place = await scratch({ huge: "" });
  await truncate(place.at("huge"), 2 ** 40);
  const tree = new FolderTree(place.path);
  const [entry] = await listed(tree.entries(signal));
  assert.equal(entry?.size, 2 ** 40);
  assert.equal((await tree.read("huge", 1000))?.length, 1000);
});

test("folders nested too deep to be opened end the descent, not the listing", async () => {
  await using place = await scratch({ beside: "" });
  const name = "d".repeat(200);
  let at = place.path;
  for (let depth = 0; depth < 15; depth += 1) await mkdir((at = path.join(at, name)));
  for (let round = 0; round < 3; round += 1) {
    await mkdir(place.at("top"));
    await rename(place.at(name), place.at("top", name));
    await rename(place.at("top"), place.at(name));
  }
  const found = await listed(new FolderTree(place.path).entries(signal));
  assert.ok(found.some((entry) => entry.path === "beside"));
  assert.ok(found.length >= 15);
  assert.ok((await readdir(place.path)).includes(name));
  await rm(place.path, { recursive: true, force: true });
});

test("listing stops when its signal is aborted", async () => {
  await using place = await scratch({ a: "", b: "" });
  await assert.rejects(listed(new FolderTree(place.path).entries(AbortSignal.abort())), {
    name: "AbortError",
  });
});

test("a folder is entered after everything beside it was listed, unless the caller leaves it out", async () => {
  await using place = await scratch({ "a/x": "", "b/y": "", c: "" });
  const told: string[] = [];
  const beside: (readonly string[])[] = [];
  const enters = (folder: string): boolean => {
    beside.push(told.filter((each) => !each.includes("/")).toSorted());
    return folder !== "b";
  };
  for await (const { path: at } of new FolderTree(place.path).entries(signal, enters)) told.push(at);
  assert.deepEqual(told.toSorted(), ["a", "a/x", "b", "c"]);
  assert.deepEqual(beside, [
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
});
