import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { makeFolder, whileLocked } from "../../src/platform/folders.ts";
import { FileLock } from "../../src/platform/sqlite.ts";
import { scratch } from "../fixtures/scratch.ts";

const thrownBy = (folder: string): NodeJS.ErrnoException => {
  try {
    makeFolder(folder);
  } catch (thrown) {
    return thrown as NodeJS.ErrnoException;
  }
  assert.fail(`${folder} was made`);
};

test("a folder is made with its parents, for its owner alone unless another mode is given", async () => {
  await using place = await scratch();
  makeFolder(place.at("a/b/c"));
  makeFolder(place.at("a/b/c"));
  assert.deepEqual(
    ["a", "a/b", "a/b/c"].map((each) => statSync(place.at(each)).mode & 0o777),
    [0o700, 0o700, 0o700],
  );
  makeFolder(place.at("a/open"), 0o755);
  assert.equal(statSync(place.at("a/open")).mode & 0o777, 0o755);
});

test("a link to a folder counts as a folder", async () => {
  await using place = await scratch({ "there/.keep": "" });
  await symlink("there", place.at("link"));
  makeFolder(place.at("link/below"));
  assert.ok(statSync(place.at("there/below")).isDirectory());
});

test("an obstacle is an error that names the folder to be made", async () => {
  await using place = await scratch({ file: "" });
  await symlink("nowhere", place.at("loose"));
  for (const taken of ["file", "loose"])
    for (const below of ["", "/b/c"]) {
      const { code, message } = thrownBy(place.at(taken) + below);
      assert.ok(code === "ENOTDIR" || code === "ENOENT", `${taken}${below}: ${code}`);
      assert.ok(message.startsWith(`the folder ${place.at(taken)}${below} cannot be made`), message);
    }
});

test(
  "where the file system cannot hold the folder, making it fails with the cause",
  { skip: process.platform !== "linux" && "there is no /proc here" },
  () => {
    for (const folder of ["/proc/none", "/proc/none/b", "/proc/self/none/b", "/sys/none/b"]) {
      const { code, message, syscall } = thrownBy(folder);
      assert.ok(
        code === "ENOENT" || code === "EPERM" || code === "EACCES" || code === "EROFS",
        `${folder}: ${code}`,
      );
      assert.equal(syscall, "mkdir");
      assert.ok(message.includes(folder) && !message.includes("mkdir '"), message);
    }
  },
);

test("work that is done while the folder is locked is done by one at a time, and an error ends the lock", async () => {
  await using place = await scratch();
  const folder = place.at("a/b");
  const order: string[] = [];
  const nested = whileLocked(folder, 0, () => {
    using other = new FileLock(`${folder}/lock`, 0);
    assert.throws(() => other.take("reserved"), /locked/);
    order.push("first");
    throw new Error("halfway");
  });
  await assert.rejects(nested, /halfway/);
  assert.equal(await whileLocked(folder, 0, () => order.push("second")), 2);
  assert.deepEqual(order, ["first", "second"]);
});
