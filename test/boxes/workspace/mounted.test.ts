import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import test from "node:test";
import { boxFolders, makeBoxFolder, thisProcess } from "../../../src/boxes/box-record.ts";
import { lockWorkspace } from "../../../src/boxes/workspace/workspace-lock.ts";
import { scratch } from "../../fixtures/scratch.ts";

const skip =
  (process.platform !== "linux" || process.getuid?.() !== 0) &&
  "only root on Linux may mount what this needs";

/** Mounts for the scope; undefined where even root may not. */
function mount(...words: readonly string[]): Disposable | undefined {
  if (spawnSync("/bin/mount", words).status !== 0) return undefined;
  return { [Symbol.dispose]: () => void spawnSync("/bin/umount", [words.at(-1) ?? ""]) };
}

test("a full disk is reported as full, and nothing half-made is left", { skip }, async (t) => {
  await using place = await scratch();
  await mkdir(place.at("state"));
  await mkdir(place.at("a"));
  using full = mount("-t", "tmpfs", "-o", "size=16k,nr_inodes=20", "tmpfs", place.at("state"));
  if (full === undefined) return t.skip("mounting is refused here");
  await writeFile(place.at("state/ballast"), Buffer.alloc(65_536)).catch(() => undefined);
  const { dev, ino } = await stat(place.at("a"));
  const request = { path: place.at("a"), dev, ino, write: true, stateDir: place.at("state") };
  await assert.rejects(lockWorkspace(request), {
    exit: 6,
    message: /^no space for a lock: ENOSPC/,
    remedy: /^free some space there: df -h /,
  });
  assert.deepEqual(await readdir(place.at("state/locks")), []);
  await assert.rejects(makeBoxFolder(place.at("state"), "b", await thisProcess()), { message: /ENOSPC/ });
  assert.deepEqual(await readdir(place.at("state/boxes")), []);
});

test("a box's folder with a mount on it is left alone", { skip }, async (t) => {
  await using place = await scratch({ "repo/file": "safe" });
  const folder = await makeBoxFolder(place.at("state x"), "b", await thisProcess());
  await mkdir(`${folder}/merged`);
  using bound = mount("--bind", place.at("repo"), `${folder}/merged`);
  if (bound === undefined) return t.skip("mounting is refused here");
  assert.deepEqual(
    (await boxFolders(place.at("state x"))).map(({ kept }) => kept),
    [`something is mounted on ${folder}/merged`],
  );
});

test("locking a folder also locks its bind mounts and the folders inside", { skip }, async (t) => {
  await using place = await scratch({ "repo/sub/file": "", "other/file": "" });
  using bound = mount("--bind", place.at("repo"), place.at("other"));
  if (bound === undefined) return t.skip("mounting is refused here");
  const lock = async (folder: string): Promise<AsyncDisposable> => {
    const { dev, ino } = await stat(place.at(folder));
    return await lockWorkspace({
      path: place.at(folder),
      dev,
      ino,
      write: true,
      stateDir: place.at("state"),
    });
  };
  await using _ = await lock("repo");
  for (const folder of ["other", "other/sub"])
    await assert.rejects(lock(folder), { exit: 6, message: /is in use by another run in \S+\/repo \(pid/ });
});
