import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { Socket } from "node:net";
import test from "node:test";
import {
  BOX_LABEL,
  boxLabels,
  boxOf,
  isAlive,
  ownerLabels,
  startIn,
  thisProcess,
  UID_LABEL,
  unparkable,
} from "../../src/boxes/box-record.ts";
import { sleeper } from "./workspace/processes.ts";

const skip = process.platform !== "linux" && "reads /proc";

test("the start time is parsed after any program name, and a zombie has none", () => {
  const fields = Array.from({ length: 30 }, (_, index) => String(index + 4)).join(" ");
  assert.equal(startIn(`7 (node) S ${fields}`), "22");
  assert.equal(startIn(`7 (a) Z ) 1 (b) R ${fields}`), "22");
  assert.equal(startIn(`7 (node) Z ${fields}`), undefined);
  assert.equal(startIn(""), undefined);
});

test(
  "this process counts as alive, and one with another start time, boot or pid does not",
  { skip },
  async () => {
    const own = await thisProcess();
    const boot = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
    assert.deepEqual([own.pid, own.boot, /^\d+$/.test(own.start)], [process.pid, boot, true]);
    const others = [
      own,
      { ...own, start: `${own.start}1` },
      { ...own, boot: "11111111-2222-3333-4444-555555555555" },
      { ...own, pid: 4_194_305 },
    ];
    assert.deepEqual(await Promise.all(others.map(isAlive)), [true, false, false, false]);
  },
);

test("a process on another machine is never considered dead", { skip }, async () => {
  const own = await thisProcess();
  const boot = "11111111-2222-3333-4444-555555555555";
  const { machine: _, ...unknown } = own;
  const others = [
    { ...own, boot, machine: "0123456789abcdef" },
    { ...own, boot },
    { ...unknown, boot },
  ];
  assert.deepEqual(await Promise.all(others.map(isAlive)), [true, false, false]);
  assert.match(own.machine ?? "", /^[0-9a-f]{16}$/);
});

test(
  "a process in another pid namespace is never considered dead, and labels keep the namespace",
  { skip },
  async () => {
    const own = await thisProcess();
    assert.match(own.space ?? "", /^pid:\[\d+\]$/);
    const gone = { ...own, pid: 4_194_305 };
    const { space: _, ...unknown } = gone;
    const others = [gone, unknown, { ...gone, space: "pid:[1]" }];
    assert.deepEqual(await Promise.all(others.map(isAlive)), [false, false, true]);
    assert.deepEqual(boxOf(ownerLabels(5, own))?.owner, own);
  },
);

test("a killed process is dead", { skip }, async () => {
  await using child = await sleeper();
  assert.equal(await isAlive(child.owner), true);
  await child.kill();
  assert.equal(await isAlive(child.owner), false);
});

test("a zombie counts as dead, though its pid and start time still exist", { skip }, async () => {
  // The child lives until the third pipe ends; its parent asks for no one's end.
  const parent = spawn("sh", ["-c", "(read -r _ <&3) & echo $!; exec sleep 60"], {
    stdio: ["ignore", "pipe", "ignore", "pipe"],
  });
  const [, stdout, , hold] = parent.stdio;
  assert.ok(stdout !== null && hold instanceof Socket);
  try {
    const [text] = (await once(stdout, "data")) as [Buffer];
    const pid = Number(text.toString());
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const owner = { ...(await thisProcess()), pid, start: startIn(stat) ?? "" };
    assert.equal(await isAlive(owner), true);
    hold.destroy();
    while (!(await readFile(`/proc/${pid}/stat`, "utf8")).includes(") Z "));
    assert.equal(await isAlive(owner), false);
  } finally {
    parent.kill("SIGKILL");
  }
});

const BOX = {
  workspace: "/repo/a b=c",
  uid: 1000,
  owner: { pid: 42, start: "123456", boot: "b" },
  session: "s1",
  created: "2026-11-21T10:00:00.000Z",
  isolation: "bind",
  mode: "read-only",
} as const;

test("labels are read back as they were written", () => {
  const labels = boxLabels(BOX);
  assert.deepEqual(boxOf(labels), { ...BOX, parks: undefined });
  assert.deepEqual(Object.keys(labels).toSorted(), [
    "dev.harness.boot_id",
    "dev.harness.box",
    "dev.harness.created",
    "dev.harness.isolation",
    "dev.harness.mode",
    "dev.harness.owner_pid",
    "dev.harness.owner_start",
    "dev.harness.session",
    "dev.harness.uid",
    "dev.harness.workspace",
  ]);
});

test("a freezable box names its session, and is ignored by versions that do not support that", () => {
  const parks = { session: "s9", stateDir: "/state" };
  const labels = boxLabels({ ...BOX, parks });
  assert.deepEqual(boxOf(labels), { ...BOX, parks });
  assert.notEqual(labels[BOX_LABEL], "1");
  assert.deepEqual(boxOf({ ...labels, "dev.harness.parks": "" })?.parks, undefined);
  assert.deepEqual(boxOf({ ...labels, [BOX_LABEL]: "1" })?.parks, undefined);
  assert.deepEqual(unparkable(labels), boxLabels(BOX));
});

test("missing and invalid labels are undefined, and an owner is complete or absent", () => {
  const nothing = {
    workspace: undefined,
    owner: undefined,
    session: undefined,
    created: undefined,
    isolation: undefined,
    mode: undefined,
    parks: undefined,
  };
  assert.deepEqual(boxOf(ownerLabels(7)), { uid: 7, ...nothing });
  assert.deepEqual(boxOf({ ...boxLabels(BOX), "dev.harness.owner_pid": "-1" })?.owner, undefined);
  assert.deepEqual(boxOf({ ...boxLabels(BOX), "dev.harness.owner_pid": "0" })?.owner, undefined);
  assert.deepEqual(boxOf({ ...boxLabels(BOX), "dev.harness.boot_id": "" })?.owner, undefined);
  const odd = { ...boxLabels(BOX), "dev.harness.mode": "yolo", "dev.harness.created": "soon" };
  assert.deepEqual(boxOf(odd), {
    ...BOX,
    mode: undefined,
    created: undefined,
    parks: undefined,
  });
  for (const foreign of [undefined, null, {}, { [BOX_LABEL]: "1" }, { [UID_LABEL]: "1000" }])
    assert.equal(boxOf(foreign), undefined);
});
