import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
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

test(
  "a disk that fills up during an apply loses nothing, and the apply continues when there is room",
  { skip },
  async (t) => {
    await using place = await scratch();
    const [workspace, seen, stateDir] = [place.at("work"), place.at("seen"), place.at("state")];
    mkdirSync(workspace);
    if (spawnSync(MOUNT, ["-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", workspace]).status !== 0)
      return t.skip("mounting is refused here");
    try {
      writeFileSync(path.join(workspace, "a"), "old\n");
      writeFileSync(path.join(workspace, "ballast"), Buffer.alloc(600_000));
      cpSync(workspace, seen, { recursive: true });
      const steps = memorySteps();
      {
        using store = new CheckpointStore({ stateDir, workspace });
        await noteBase(store, "s", undefined);
        writeFileSync(path.join(seen, "a"), "new\n");
        for (const name of ["b", "c", "d"]) writeFileSync(path.join(seen, name), Buffer.alloc(200_000, name));
        const prepared = await prepareApply(store, { session: "s", layer: layerOf(workspace, seen) });
        const [exit, message] = await refusalOf(() => move(store, { session: "s", steps }, prepared));
        assert.equal(exit, 1);
        assert.match(message, /^the apply stopped halfway: ENOSPC/);
        const half = pictureOf(workspace);
        for (const [name, what] of Object.entries(pictureOf(seen)))
          if (half[name] !== undefined && name !== "/a") assert.equal(half[name], what, name);
      }
      assert.equal(spawnSync(MOUNT, ["-o", "remount,size=4m", workspace]).status, 0);
      using store = new CheckpointStore({ stateDir, workspace });
      assert.match((await finishUndo(store, () => steps)) ?? "", /^An interrupted apply was finished/);
      const { ["/ballast"]: _, ...rest } = pictureOf(workspace);
      const { ["/ballast"]: __, ...wanted } = pictureOf(seen);
      assert.deepEqual(rest, wanted);
    } finally {
      spawnSync("/bin/umount", [workspace]);
      rmSync(seen, { recursive: true, force: true });
    }
  },
);
