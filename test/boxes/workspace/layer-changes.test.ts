import assert from "node:assert/strict";
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { scratch } from "../../fixtures/scratch.ts";
import { unprivileged } from "../../fixtures/unprivileged.ts";
import {
  changesOfUpper,
  closeAgain,
  type OpenedFolder,
} from "../../../src/boxes/workspace/workspace-changes.ts";

const shows = (): Promise<boolean> => Promise.resolve(true);

test("only so much of the holes of files is compared; beyond that a file counts as changed", async () => {
  const place = mkdtempSync(path.join(tmpdir(), "harness-upper-"));
  try {
    const [lower, upper] = ["lower", "upper"].map((name) => path.join(place, name)) as [string, string];
    for (const folder of [lower, upper]) {
      mkdirSync(folder);
      for (const name of ["a", "b", "full"]) writeFileSync(path.join(folder, name), "");
      for (const name of ["a", "b"]) truncateSync(path.join(folder, name), 2 ** 20);
      writeFileSync(path.join(folder, "full"), "x".repeat(2 ** 20));
      for (const name of ["a", "b", "full"]) chmodSync(path.join(folder, name), 0o644);
    }
    const found = async (holes: number) => {
      const { changes } = await changesOfUpper({ lower, upper, shows, holes });
      return [...changes].map(({ path: file, what }) => `${what} ${file}`);
    };
    assert.deepEqual(await found(2 ** 21), []);
    assert.deepEqual(await found(2 ** 20), ["modified b"]);
    truncateSync(path.join(upper, "a"), 2 ** 50);
    truncateSync(path.join(lower, "a"), 2 ** 50);
    assert.deepEqual(await found(2 ** 21), ["modified a"]);
  } finally {
    rmSync(place, { recursive: true });
  }
});

test("what lies in a folder that commands closed is listed, and the folder is closed again", async () => {
  await using place = await scratch({ "lower/old/f": "1", "upper/old/f": "2", "upper/new/deep/f": "1" });
  const [lower, upper] = [place.at("lower"), place.at("upper")];
  await unprivileged(place.path, async () => {
    for (const name of ["lower/old", "upper/old", "upper/new/deep", "upper/new"])
      chmodSync(place.at(name), 0);
    const opened: OpenedFolder[] = [];
    const { changes, incomplete } = await changesOfUpper({ lower, upper, shows, opened });
    assert.deepEqual(
      [...changes].map(({ path: at, what, mode }) => [at, what, mode]),
      [
        ["new", "added", 0],
        ["new/deep", "added", 0],
        ["new/deep/f", "added", 0o644],
        // Its folder below cannot be read: whoever knows the state before can tell.
        ["old/f", "added", 0o644],
      ],
    );
    assert.equal(incomplete, true);
    closeAgain(upper, opened);
    chmodSync(place.at("upper/new"), 0o700);
    const modes = ["upper/old", "upper/new/deep"].map((name) => lstatSync(place.at(name)).mode & 0o777);
    assert.deepEqual(modes, [0, 0]);
    chmodSync(place.at("lower/old"), 0o700);
  });
});
