import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { changesOfUpper } from "../../../src/boxes/workspace/workspace-changes.ts";

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
