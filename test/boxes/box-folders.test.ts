import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, stat, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import test from "node:test";
import type { Engine } from "../../src/docker/engine.ts";
import { makeBoxFolder, removeTree, thisProcess } from "../../src/boxes/box-record.ts";
import { announce, newName } from "../../src/boxes/workspace/workspace-lock.ts";
import { reap, type Reaped } from "../../src/docker/box/reap.ts";
import { deep } from "../fixtures/deep.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { deadOwner } from "./workspace/processes.ts";

const skip = process.platform !== "linux" && "reads /proc";

/** An engine without a container or volume of ours. */
const bare = {
  api: {
    listContainers: () => Promise.resolve([]),
    listVolumes: () => Promise.resolve({ Volumes: null, Warnings: null }),
  },
} as unknown as Engine;

const NOTHING: Reaped = { containers: [], volumes: [], folders: [], locks: [], kept: [], failed: [] };

const at = (id: string, name: string): string => `state/boxes/${id}/${name}`;

const sweep = (place: Scratch): Promise<Reaped> => reap(bare, { uid: 64_322, stateDir: place.at("state") });

test("a box folder is private, created as a whole, and never created twice", { skip }, async () => {
  await using place = await scratch();
  const owner = await thisProcess();
  const folder = await makeBoxFolder(place.at("state"), "s-1", owner);
  assert.equal(folder, place.at("state/boxes/s-1"));
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  assert.deepEqual(JSON.parse(await place.read("state/boxes/s-1/owner")), owner);
  await assert.rejects(makeBoxFolder(place.at("state"), "s-1", owner), { exit: 6 });
  assert.deepEqual(await readdir(place.at("state/boxes")), ["s-1"]);
  for (const id of ["", "..", ".x", "a/b"])
    await assert.rejects(makeBoxFolder(place.at("state"), id, owner), TypeError);
});

test(
  "with nothing there, or only folders of living processes, the sweep removes nothing",
  { skip },
  async () => {
    await using place = await scratch();
    assert.deepEqual(await sweep(place), NOTHING);
    const owner = await thisProcess();
    await makeBoxFolder(place.at("state"), "live", owner);
    await mkdir(place.at("state/boxes/.making.0123456789abcdef"));
    await mkdir(place.at("state/boxes/no-owner"));
    const claim = { path: "/a", self: "1:1", above: [], write: true };
    await announce(place.at("state/locks"), newName(owner), { claim, since: "" });
    assert.deepEqual(await sweep(place), NOTHING);
    assert.equal((await readdir(place.at("state/boxes"))).length, 3);
  },
);

test(
  "the folders of dead runs are removed, including sockets and half-made ones, and unapplied changes stay",
  { skip },
  async () => {
    await using place = await scratch();
    const [state, owner] = [place.at("state"), await deadOwner()];
    const box = (id: string): Promise<string> => makeBoxFolder(state, id, owner);
    const server = createServer().listen(`${await box("socket")}/proxy.sock`);
    await once(server, "listening");
    await mkdir(`${await box("empty")}/upper`);
    for (const id of ["changed", "done", "marked", "half"]) await box(id);
    await place.write(at("changed", "upper/file"), "work");
    await place.write(at("done", "upper/file"), "work");
    await place.write(at("done", "finished"), "");
    await place.write(at("marked", "keep"), "");
    await place.write(at("marked", "finished"), "");
    await place.write(`state/boxes/.half.0123456789abcdef/owner`, JSON.stringify(owner));
    await place.write(`state/boxes/.half.0123456789abcdef/upper/file`, "half removed");
    const { folders, kept, failed } = await sweep(place);
    server.close();
    assert.deepEqual(folders.toSorted(), [".half.0123456789abcdef", "done", "empty", "half", "socket"]);
    assert.deepEqual(kept.map(({ id, reason }) => `${id}: ${reason}`).toSorted(), [
      "changed: it holds changes that were not applied",
      "marked: it is marked as kept",
    ]);
    assert.deepEqual(failed, []);
    assert.deepEqual((await readdir(place.at("state/boxes"))).toSorted(), ["changed", "marked"]);
    assert.equal(await place.read(at("changed", "upper/file")), "work");
  },
);

test("links are removed, not followed", { skip }, async () => {
  await using place = await scratch({ "outside/file": "safe" });
  const folder = await makeBoxFolder(place.at("state"), "x", await deadOwner());
  await symlink(place.at("outside"), `${folder}/link`);
  await symlink(place.at("outside"), place.at("state/boxes/other"));
  assert.deepEqual((await sweep(place)).folders, ["x"]);
  assert.equal(await place.read("outside/file"), "safe");
});

test(
  "the locks of dead processes are removed with all their files, and other files stay",
  { skip },
  async () => {
    await using place = await scratch({ "state/locks/README": "mine" });
    const { stem } = newName(await deadOwner());
    for (const kind of ["lock", "held", "new"]) await place.write(`state/locks/${stem}.${kind}`, "");
    assert.equal((await sweep(place)).locks.length, 3);
    assert.deepEqual(await readdir(place.at("state/locks")), ["README"]);
  },
);

test("an unusable state directory is reported, and the sweep goes on", { skip }, async () => {
  await using place = await scratch({ "state/boxes": "a file", "state/locks": "a file" });
  const { failed } = await sweep(place);
  assert.deepEqual(
    failed.map(({ kind }) => kind),
    ["folder", "lock"],
  );
});

test("an engine that does not answer ends the sweep with 6", { skip }, async () => {
  await using place = await scratch();
  const gone = {
    api: { listContainers: () => Promise.reject(new Error("gone")), listVolumes: () => Promise.resolve({}) },
  } as unknown as Engine;
  await assert.rejects(reap(gone, { uid: 1, stateDir: place.at("state") }), { exit: 6 });
});

test("a tree is removed however deep it is", async () => {
  await using place = await scratch({ "tree/a": "1" });
  deep(place.at("tree"), 1200, "f");
  await removeTree(place.at("tree"));
  assert.ok(!existsSync(place.at("tree")));
});
