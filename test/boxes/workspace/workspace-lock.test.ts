import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { HarnessError } from "../../../src/core/errors.ts";
import { thisProcess } from "../../../src/boxes/box-record.ts";
import {
  announce,
  type Claim,
  conflicts,
  lockWorkspace,
  markHeld,
  newName,
} from "../../../src/boxes/workspace/workspace-lock.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { deadOwner } from "./processes.ts";

const skip = process.platform !== "linux" && "reads /proc";

async function lock(place: Scratch, folder: string, write: boolean): Promise<AsyncDisposable> {
  await mkdir(place.at(folder), { recursive: true });
  const { dev, ino } = await stat(place.at(folder));
  return await lockWorkspace({ path: place.at(folder), dev, ino, write, stateDir: place.at("state") });
}

/** Whether a second lock is granted while a first one is held. */
async function beside(
  first: readonly [string, boolean],
  second: readonly [string, boolean],
): Promise<boolean> {
  await using place = await scratch();
  await using _first = await lock(place, ...first);
  try {
    await using _second = await lock(place, ...second);
    return true;
  } catch (thrown) {
    if (thrown instanceof HarnessError && thrown.exit === 6) return false;
    throw thrown;
  }
}

test("readers share a folder, and a writer is alone on it, above it and inside it", { skip }, async () => {
  assert.equal(await beside(["a", false], ["a", false]), true);
  assert.equal(await beside(["a", true], ["a", true]), false);
  assert.equal(await beside(["a", true], ["a", false]), false);
  assert.equal(await beside(["a", false], ["a", true]), false);
  assert.equal(await beside(["a", true], ["a/b/c", true]), false);
  assert.equal(await beside(["a/b/c", true], ["a", true]), false);
  assert.equal(await beside(["a/b", false], ["a", true]), false);
  assert.equal(await beside(["a/b", false], ["a", false]), true);
  assert.equal(await beside(["a", true], ["ab", true]), true);
  assert.equal(await beside(["a/b", true], ["a/c", true]), true);
});

const claim = (path: string, self: string, above: readonly string[] = []): Claim => ({
  path,
  self,
  above,
  write: true,
});

test("a bind-mounted folder is recognised as the same folder, and so is what is inside it", () => {
  assert.equal(conflicts(claim("/a", "1:5"), claim("/mnt/x", "1:5")), true);
  assert.equal(conflicts(claim("/a", "1:5"), claim("/mnt/x/b", "1:6", ["1:5", "1:2"])), true);
  assert.equal(conflicts(claim("/mnt/x/b", "1:6", ["1:5"]), claim("/a", "1:5")), true);
  assert.equal(conflicts(claim("/", "1:2"), claim("/a", "1:6")), true);
  assert.equal(conflicts(claim("/a", "1:5", ["1:2"]), claim("/b", "2:5", ["1:2"])), false);
});

test(
  "a refusal names the holder, the time and the remedy, and a release frees the workspace",
  { skip },
  async () => {
    await using place = await scratch();
    const first = await lock(place, "a", true);
    const [exit, message] = await refusalOf(() => lock(place, "a", true));
    assert.equal(exit, 6);
    assert.match(
      message,
      new RegExp(`/a is in use by another run \\(pid ${process.pid}, since 20\\d\\d-.*Z\\)$`),
    );
    await assert.rejects(lock(place, "a", true), { remedy: /leave it if it is a chat or an editor/ });
    await assert.rejects(lock(place, "a/b", true), /\/a\/b is in use by another run in \S+\/a \(pid/);
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    await using reader = await lock(place, "a", false);
    assert.ok(reader);
    await assert.rejects(lock(place, "a", true), { remedy: /--mode read-only, or --isolation overlay/ });
  },
);

test("lock files are private and are removed on release", { skip }, async () => {
  await using place = await scratch();
  {
    await using _ = await lock(place, "a", true);
    assert.equal((await stat(place.at("state/locks"))).mode & 0o777, 0o700);
    const names = await readdir(place.at("state/locks"));
    assert.deepEqual(new Set(names.map((name) => path.extname(name))), new Set([".held", ".lock"]));
    for (const name of names) assert.equal((await stat(place.at("state/locks", name))).mode & 0o777, 0o600);
  }
  assert.deepEqual(await readdir(place.at("state/locks")), []);
});

test("a jumping clock does not affect locks", { skip }, async (t) => {
  await using place = await scratch();
  t.mock.timers.enable({ apis: ["Date"], now: new Date("1990-01-01") });
  await using _ = await lock(place, "a", true);
  t.mock.timers.setTime(Date.parse("2090-01-01"));
  await assert.rejects(lock(place, "a", true), /since 1990/);
});

test("locks of dead processes and of another boot are ignored", { skip }, async () => {
  await using place = await scratch();
  const own = await thisProcess();
  for (const owner of [await deadOwner(), { ...own, boot: "other-boot" }, { ...own, start: "1" }]) {
    const name = newName(owner);
    const whole = { path: place.at("a"), self: "0:0", above: [], write: true };
    await announce(place.at("state/locks"), name, { claim: whole, since: "" });
    await markHeld(place.at("state/locks"), name);
  }
  await using got = await lock(place, "a", true);
  assert.ok(got);
});

test(
  "a living run's unreadable lock blocks everyone, and unrelated files are left alone",
  { skip },
  async () => {
    await using place = await scratch({ "state/locks/README": "mine" });
    {
      await using _ = await lock(place, "b", true);
    }
    const { stem } = newName(await thisProcess());
    for (const kind of ["lock", "held"]) await writeFile(place.at("state/locks", `${stem}.${kind}`), "{");
    const [exit, message] = await refusalOf(() => lock(place, "a", false));
    assert.equal(exit, 6);
    assert.match(message, /may be in use by another run .*its lock cannot be read/);
    assert.equal(await readFile(place.at("state/locks/README"), "utf8"), "mine");
  },
);

test("a holder that never decides is given up on", { skip }, async () => {
  await using place = await scratch();
  const whole = { path: place.at("a"), self: "0:0", above: [], write: true };
  await announce(place.at("state/locks"), newName(await thisProcess()), { claim: whole, since: "then" });
  await assert.rejects(lock(place, "a", true), /in use by another run \(pid \d+, since then\)/);
  assert.equal((await readdir(place.at("state/locks"))).length, 1, "only the other's file is left");
});

test("an unusable state directory is reported with a remedy", { skip }, async () => {
  await using place = await scratch({ "state/locks": "a file" });
  const [exit, message] = await refusalOf(() => lock(place, "a", true));
  assert.equal(exit, 6);
  assert.match(message, /the lock cannot be taken: .*state\/locks/);
  await symlink("/dev/full/none", place.at("nowhere"));
  await assert.rejects(
    lockWorkspace({ path: place.at("a"), dev: 1, ino: 1, write: true, stateDir: place.at("nowhere") }),
    { remedy: /ls -ld .*XDG_STATE_HOME/ },
  );
});

test(
  "a folder without write permission is refused",
  { skip: skip || (process.getuid?.() === 0 && "root may write everywhere") },
  async () => {
    await using place = await scratch();
    await mkdir(place.at("state"), { mode: 0o500 });
    await assert.rejects(lock(place, "a", true), { exit: 6, message: /the lock cannot be taken: EACCES/ });
    await chmod(place.at("state"), 0o700);
  },
);
