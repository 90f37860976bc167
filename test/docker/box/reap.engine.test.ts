import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { makeBoxFolder, type Owner, ownerLabels, thisProcess } from "../../../src/boxes/box-record.ts";
import { listBoxes, memoryOf, removeBoxes } from "../../../src/docker/box/box-list.ts";
import { reap, type Reaped } from "../../../src/docker/box/reap.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image, skip } from "../../fixtures/engine.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { deadOwner, sleeper } from "../../boxes/workspace/processes.ts";
import { cleared, leftOf, realBox, realVolume } from "./real-boxes.ts";

const UID = 64_331;
const OTHER = 64_332;

test("only boxes of this user whose owner is gone are removed", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID, OTHER);
  const [own, dead] = [await thisProcess(), await deadOwner()];
  const living = await realBox({ uid: UID, owner: own });
  const oneShot = await realBox({ uid: UID, owner: own }, { ...ownerLabels(UID) });
  const foreign = await realBox({ uid: OTHER, owner: dead });
  const orphan = await realBox({ uid: UID, owner: dead });
  const rebooted = await realBox({
    uid: UID,
    owner: { ...own, boot: "11111111-2222-3333-4444-555555555555" },
  });
  // An engine may have boxes of several machines, and their users may have the same number.
  const elsewhere = await realBox({
    uid: UID,
    owner: { ...own, boot: "11111111-2222-3333-4444-555555555555", machine: "0123456789abcdef" },
  });
  const reused = await realBox({ uid: UID, owner: { ...own, start: "1" } });
  const reaped = await reap(engine, { uid: UID, stateDir: place.at("state") });
  assert.deepEqual([...reaped.containers].toSorted(), [orphan, rebooted, reused].toSorted());
  assert.deepEqual(reaped.failed, []);
  assert.deepEqual(await leftOf(UID), [living, oneShot, elsewhere].toSorted());
  assert.deepEqual(await leftOf(OTHER), [foreign]);
});

test(
  "the box, volume and folder of a killed owner are removed together, and a living owner's stay",
  { skip },
  async () => {
    await using place = await scratch();
    await using _ = cleared(UID);
    await using run = await sleeper();
    const [state, own] = [place.at("state"), await thisProcess()];
    const one = { uid: UID, owner: run.owner, session: "one" };
    const two = { uid: UID, owner: own, session: "two" };
    const gone = [await realBox(one), await realVolume(one)];
    const stays = [await realBox(two), await realVolume(two)];
    await makeBoxFolder(state, "one", run.owner);
    await makeBoxFolder(state, "two", own);
    const request = { uid: UID, stateDir: state };
    assert.deepEqual((await reap(engine, request)).containers, []);
    await run.kill();
    const { containers, volumes, folders, failed } = await reap(engine, request);
    assert.deepEqual([[...containers, ...volumes], folders, failed], [gone, ["one"], []]);
    assert.deepEqual(await leftOf(UID), stays.toSorted());
    assert.deepEqual(await readdir(place.at("state/boxes")), ["two"]);
  },
);

test("what a remaining box still uses stays, whoever created it", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID);
  const [own, dead] = [await thisProcess(), await deadOwner()];
  await realBox({ uid: UID, owner: own, session: "shared" });
  await realVolume({ uid: UID, owner: dead, session: "shared" });
  await makeBoxFolder(place.at("state"), "shared", dead);
  const { volumes, folders } = await reap(engine, { uid: UID, stateDir: place.at("state") });
  assert.deepEqual([volumes, folders], [[], []]);
});

test("two starts that reap at the same time both succeed, and nothing is left", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID);
  const dead = await deadOwner();
  for (const session of ["a", "b"]) await realBox({ uid: UID, owner: dead, session });
  const request = { uid: UID, stateDir: place.at("state") };
  const [one, two] = await Promise.all([reap(engine, request), reap(engine, request)]);
  for (const { kind, reason } of [...one.failed, ...two.failed]) {
    assert.equal(kind, "container");
    assert.match(reason, /already in progress/);
  }
  assert.deepEqual(await leftOf(UID), []);
});

test("a volume in use by another container is reported without a failure", { skip }, async () => {
  await using place = await scratch();
  await using _ = cleared(UID, OTHER);
  const dead = await deadOwner();
  const volume = await realVolume({ uid: UID, owner: dead });
  const user = await engine.api.createContainer({
    Image: image,
    Labels: { ...ownerLabels(OTHER) },
    HostConfig: { NetworkMode: "none", Binds: [`${volume}:/data`] },
  });
  const { volumes, failed } = await reap(engine, { uid: UID, stateDir: place.at("state") });
  assert.deepEqual([volumes, failed.map(({ kind, id }) => [kind, id])], [[], [["volume", volume]]]);
  await user.remove();
});

test("a box is listed with its owner and its memory use", { skip }, async () => {
  await using _ = cleared(UID);
  const [own, dead] = [await thisProcess(), await deadOwner()];
  const id = await realBox({ uid: UID, owner: own, workspace: "/a b" });
  const orphan = await realBox({ uid: UID, owner: dead });
  const boxes = await listBoxes(engine, UID);
  const { created, ...rest } = boxes[0] ?? { created: "" };
  assert.ok(Math.abs(Date.parse(created) - Date.now()) < 60_000);
  assert.deepEqual(rest, {
    id,
    workspace: "/a b",
    mode: "workspace-write",
    isolation: "bind",
    owner: { pid: own.pid, alive: true },
    state: "running",
    parked: null,
  });
  assert.deepEqual([boxes[1]?.id, boxes[1]?.owner], [orphan, { pid: dead.pid, alive: false }]);
  const memory = await memoryOf(engine, boxes);
  assert.ok((memory.get(id) ?? 0) > 0, "a sleeping process uses some");
});

test("the teardown removes all boxes and volumes of a user, and nobody else's", { skip }, async () => {
  await using _ = cleared(UID, OTHER);
  const own = await thisProcess();
  for (const uid of [UID, OTHER]) await realVolume({ uid, owner: own });
  await realBox({ uid: UID, owner: own });
  assert.equal(await removeBoxes(engine, UID), 1);
  assert.deepEqual([(await leftOf(UID)).length, (await leftOf(OTHER)).length], [0, 1]);
});

test("boxes of another machine on the same engine are neither listed nor removed", { skip }, async () => {
  await using _ = cleared(UID);
  const boot = "11111111-2222-3333-4444-555555555555";
  const owner = { ...(await thisProcess()), boot, machine: "0123456789abcdef" };
  const theirs = [await realBox({ uid: UID, owner }), await realVolume({ uid: UID, owner })];
  assert.deepEqual(await listBoxes(engine, UID), []);
  assert.equal(await removeBoxes(engine, UID), 0);
  assert.deepEqual(await leftOf(UID), theirs.toSorted());
});

const NEW_NAMESPACE = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
const noNamespace = spawnSync("unshare", [...NEW_NAMESPACE, "true"]).status !== 0;

test(
  "a process in another container leaves this process's boxes alone, and this one leaves its boxes alone while they run",
  { skip: skip || (noNamespace && "no pid namespace may be made here (unshare)") },
  async () => {
    await using place = await scratch();
    await using _ = cleared(UID);
    const request = { uid: UID, stateDir: place.at("state") };
    const ours = await realBox({ uid: UID, owner: await thisProcess() });
    const script = fileURLToPath(new URL("../../fixtures/reap-elsewhere.ts", import.meta.url));
    const words = [...NEW_NAMESPACE, process.execPath, script, String(UID), request.stateDir];
    const { stdout } = await promisify(execFile)("unshare", words);
    const there = JSON.parse(stdout) as { readonly owner: Owner; readonly reaped: Reaped };
    assert.deepEqual([there.reaped.containers, there.reaped.failed], [[], []]);
    const theirs = await realBox({ uid: UID, owner: there.owner, session: "theirs" });
    assert.deepEqual((await reap(engine, request)).containers, []);
    assert.deepEqual(await leftOf(UID), [ours, theirs].toSorted());
  },
);
