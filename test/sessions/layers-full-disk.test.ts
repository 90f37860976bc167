import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { finishUndo } from "../../src/sessions/checkpoints/undo-changes.ts";
import { move, noteBase, prepareApply } from "../../src/sessions/apply-layer.ts";
import { memorySteps } from "../fakes/steps.ts";
import { layerOf } from "../fixtures/layer-of.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch } from "../fixtures/scratch.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";

const MOUNT = "/bin/mount";
const skip = process.getuid?.() !== 0 && "only root mounts a small file system";

/** A workspace on a small disk, and what a box saw of it. */
async function onSmallDisk(
  t: TestContext,
  size: string,
  work: (at: {
    readonly workspace: string;
    readonly seen: string;
    readonly stateDir: string;
  }) => Promise<void>,
): Promise<void> {
  await using place = await scratch();
  const [workspace, seen, stateDir] = [place.at("work"), place.at("seen"), place.at("state")];
  mkdirSync(workspace);
  if (spawnSync(MOUNT, ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", workspace]).status !== 0)
    return t.skip("mounting is refused here");
  try {
    writeFileSync(path.join(workspace, "a"), "old\n");
    writeFileSync(path.join(workspace, "ballast"), Buffer.alloc(600_000));
    cpSync(workspace, seen, { recursive: true });
    await work({ workspace, seen, stateDir });
  } finally {
    spawnSync("/bin/umount", [workspace]);
    rmSync(seen, { recursive: true, force: true });
  }
}

test("an apply without room changes nothing and says how much is missing", { skip }, async (t) => {
  await onSmallDisk(t, "1m", async ({ workspace, seen, stateDir }) => {
    using store = new CheckpointStore({ stateDir, workspace });
    await noteBase(store, "s", undefined);
    writeFileSync(path.join(seen, "a"), "new\n");
    for (const name of ["b", "c", "d"]) writeFileSync(path.join(seen, name), Buffer.alloc(200_000, name));
    const before = pictureOf(workspace);
    const prepared = await prepareApply(store, { session: "s", layer: layerOf(workspace, seen) });
    const steps = memorySteps();
    const [exit, message] = await refusalOf(() => move(store, { session: "s", steps }, prepared));
    assert.equal(exit, 1);
    assert.match(
      message,
      /^there is no room in .*: the changes need 588 KiB, and 4\d\d KiB are free; nothing/,
    );
    assert.deepEqual([pictureOf(workspace), steps.all()], [before, []]);
    // What makes room itself needs none.
    rmSync(path.join(seen, "ballast"));
    const smaller = await prepareApply(store, { session: "s", layer: layerOf(workspace, seen) });
    await move(store, { session: "s", steps }, smaller);
    assert.deepEqual(pictureOf(workspace), pictureOf(seen));
  });
});

test(
  "a disk that fills up during an apply loses nothing, and the apply continues when there is room",
  { skip },
  async (t) => {
    await onSmallDisk(t, "5m", async ({ workspace, seen, stateDir }) => {
      const steps = memorySteps();
      {
        using store = new CheckpointStore({ stateDir, workspace });
        await noteBase(store, "s", undefined);
        writeFileSync(path.join(seen, "a"), "new\n");
        // Equal pieces of a file are taken for holes, which need no room.
        writeFileSync(path.join(seen, "b"), Buffer.alloc(2 * 4 * 2 ** 20, "b"));
        const prepared = await prepareApply(store, { session: "s", layer: layerOf(workspace, seen) });
        const [exit, message] = await refusalOf(() => move(store, { session: "s", steps }, prepared));
        assert.equal(exit, 1);
        assert.match(message, /^the apply stopped halfway, at b, after 0 of 2 paths: ENOSPC/);
        const half = pictureOf(workspace);
        for (const [name, what] of Object.entries(pictureOf(seen)))
          if (half[name] !== undefined && name !== "/a") assert.equal(half[name], what, name);
      }
      assert.equal(spawnSync(MOUNT, ["-o", "remount,size=10m", workspace]).status, 0);
      using store = new CheckpointStore({ stateDir, workspace });
      assert.match((await finishUndo(store, () => steps)) ?? "", /^An interrupted apply was finished/);
      assert.deepEqual(pictureOf(workspace), pictureOf(seen));
    });
  },
);
