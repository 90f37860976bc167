import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmod, link, mkdir, readdir } from "node:fs/promises";
import test from "node:test";
import { changesOfReturned, returnedTree, returnTree } from "../../../src/boxes/workspace/session-layer.ts";
import { noteLeftOut } from "../../../src/boxes/workspace/layer-record.ts";
import { archiveOf, unpack, type ArchiveLimits } from "../../../src/boxes/workspace/workspace-archive.ts";
import { changesOfCopy } from "../../../src/boxes/workspace/workspace-changes.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { unprivileged } from "../../fixtures/unprivileged.ts";

test("a returned tree replaces the previous one, and nothing else is left", async () => {
  await using place = await scratch({ "layer/tree/a": "old", "layer/tree.new/a": "new" });
  await returnTree(place.at("layer"), place.at("layer/tree.new"));
  assert.deepEqual([await readdir(place.at("layer")), await place.read("layer/tree/a")], [["tree"], "new"]);
});

test("a kill between two trees leaves one of them: the old one until the new one is in place", async () => {
  await using place = await scratch({ "layer/tree.old/a": "old", "layer/tree.new/a": "half" });
  assert.equal(await returnedTree(place.at("layer")), place.at("layer/tree"));
  assert.equal(await place.read("layer/tree/a"), "old");
  await using later = await scratch({ "layer/tree.old/a": "old", "layer/tree/a": "new" });
  assert.equal(await returnedTree(later.at("layer")), later.at("layer/tree"));
  assert.equal(await later.read("layer/tree/a"), "new");
});

test("a session has no changes until a box has returned something", async () => {
  await using place = await scratch({ "work/a": "x", "layer/layer": "{}" });
  const layer = {
    session: "s",
    workspace: place.at("work"),
    isolation: "copy" as const,
    volume: null,
    engine: "kubernetes" as const,
    made: 1,
    folder: place.at("layer"),
  };
  const { changes, incomplete } = await changesOfReturned(layer);
  assert.deepEqual([changes, incomplete], [[], false]);
});

const copyOf = (place: Scratch, missing: readonly string[] = []) => ({
  session: "s",
  workspace: place.at("work"),
  isolation: "copy" as const,
  volume: "v",
  missing,
  made: Date.now(),
  folder: place.at("layer"),
});

test("what lies in a folder that commands closed in the copy is not taken for deleted", async () => {
  const files = { "d/same": "1", "d/changed": "1", "d/deleted": "1", f: "1" };
  await using place = await scratch({
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`work/${name}`, text])),
    "tree/d/same": "1",
    "tree/d/changed": "2",
    "tree/d/new": "1",
    "tree/f": "2",
  });
  await chmod(place.at("work/d"), 0o755);
  await unprivileged(place.path, async () => {
    await chmod(place.at("tree/d"), 0);
    await chmod(place.at("tree/f"), 0);
    const { changes } = await changesOfCopy(copyOf(place), place.at("tree"));
    assert.deepEqual(
      [...changes].map(({ path, what, mode }) => [path, what, mode]),
      [
        ["d", "modified", 0],
        ["d/changed", "modified", 0o644],
        ["d/deleted", "deleted", 0o644],
        ["d/new", "added", 0o644],
        ["f", "modified", 0],
      ],
    );
    assert.equal(await place.read("tree/d/new"), "1");
    assert.equal(await place.read("tree/f"), "2");
  });
});

test("a FIFO in a copy is a change, also under a second name and in place of a file", async () => {
  await using place = await scratch({ "work/replaced": "1", "seen/plain": "1", "layer/layer": "{}" });
  const seen = place.at("seen");
  execFileSync("mkfifo", [`${seen}/fifo`, `${seen}/replaced`]);
  await link(`${seen}/fifo`, `${seen}/second`);
  await mkdir(place.at("layer/tree"));
  // Read at once: what a process wrote that has ended is dropped if nobody reads it.
  const archive = spawn("tar", ["-C", place.path, "-c", "seen"], { stdio: ["ignore", "pipe", "inherit"] });
  await noteLeftOut(place.at("layer"), await unpack(archive.stdout, place.at("layer/tree")));
  const { changes } = await changesOfCopy(copyOf(place), place.at("layer/tree"));
  assert.deepEqual(
    [...changes].map(({ path, what, kind }) => [path, what, kind]),
    [
      ["fifo", "added", "odd"],
      ["plain", "added", "file"],
      ["replaced", "deleted", "file"],
      ["replaced", "added", "odd"],
      ["second", "added", "odd"],
    ],
  );
});

const names = (count: number): string => `tree/${Array(count).fill("d".repeat(200)).join("/")}`;

test("a copy whose folders end where paths are too long may not be whole", async () => {
  await using place = await scratch({ "work/a": "1", "layer/layer": "{}", "tree/a": "1" });
  const incomplete = async (): Promise<boolean> =>
    (await changesOfCopy(copyOf(place), place.at("tree"))).incomplete;
  await mkdir(place.at(names(10)), { recursive: true });
  assert.equal(await incomplete(), false);
  await mkdir(place.at(names(18)), { recursive: true });
  assert.equal(await incomplete(), true);
  await place.write(`${names(18)}/f`, "1");
  assert.equal(await incomplete(), false);
});

test("what could not be copied is not deleted when it can be read later", async () => {
  await using place = await scratch({ "work/d/in": "1", "work/e": "1", "work/gone": "1", "tree/x": "1" });
  await mkdir(place.at("tree/d"));
  const { changes } = await changesOfCopy(copyOf(place, ["d", "e"]), place.at("tree"));
  assert.deepEqual(
    [...changes].map(({ path, what }) => [path, what]),
    [
      ["gone", "deleted"],
      ["x", "added"],
    ],
  );
});

test("an unpacked tree is limited in bytes and in number of entries", async () => {
  await using place = await scratch({ "tree/a": "1234", "tree/b": "5678" });
  const into = async (name: string, most: ArchiveLimits): Promise<void> => {
    await mkdir(place.at(name));
    await unpack(
      archiveOf(place.at("tree"), "tree", () => undefined),
      place.at(name),
      most,
    );
  };
  await into("fits", { bytes: 8, entries: 3 });
  assert.equal(await place.read("fits/b"), "5678");
  await assert.rejects(into("large", { bytes: 7, entries: 3 }), /more bytes than this machine accepts/);
  await assert.rejects(into("many", { bytes: 8, entries: 2 }), /more entries than this machine accepts/);
});
