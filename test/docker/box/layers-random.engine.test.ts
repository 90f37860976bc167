// slow: it compares many random layers; overlay.engine.test.ts has each kind once
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { lstatSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { bytesOfText } from "../../../src/core/raw-data.ts";
import { changesOfUpper } from "../../../src/boxes/workspace/workspace-changes.ts";
import { changesOfLayer } from "../../../src/docker/box/layer-volumes.ts";
import { layerOf } from "../../../src/boxes/workspace/layer-record.ts";
import { CheckpointStore } from "../../../src/sessions/checkpoints/checkpoint-store.ts";
import { move, noteBase, prepareApply } from "../../../src/sessions/apply-layer.ts";
import { memorySteps } from "../../fakes/steps.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { fc } from "../../fixtures/property.ts";
import { type Edit, edits, make } from "../../fixtures/random-tree.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";
import { noOverlay, openBox } from "./open-box.ts";

const RUNS = 40;
const notRoot = process.getuid?.() !== 0 && "only root lays an overlay by itself";
const OPTIONS = "redirect_dir=nofollow,index=off,metacopy=off";

/** What a box leaves behind in its layer, by the kernel's own hand and without the time that a box takes. */
function inOverlay(lower: string, folder: string, work: (merged: string) => void): boolean {
  const layers = ["upper", "work"].map((part) => `${part}dir=${path.join(folder, part)}`).join(",");
  const options = `lowerdir=${lower},${layers},${OPTIONS}`;
  const merged = path.join(folder, "..", "merged");
  spawnSync("/bin/mkdir", ["-p", merged]);
  if (spawnSync("/bin/mount", ["-t", "overlay", "overlay", "-o", options, merged]).status !== 0) return false;
  try {
    work(merged);
    return true;
  } finally {
    spawnSync("/bin/umount", [merged]);
  }
}

const doAll = (root: string, all: readonly Edit[]): void => {
  for (const each of all) make(root, each);
};

test(
  "apply produces exactly the tree seen through a real overlay, including deletions and replaced folders",
  { skip: noOverlay || notRoot, timeout: 300_000 },
  async (t) => {
    await fc.assert(
      fc.asyncProperty(edits, fc.array(edits, { minLength: 1, maxLength: 2 }), async (first, rounds) => {
        await using place = await scratch({ "w/a/b/c": "1\n", "w/a/d": "2\n", "w/ä/x": "3\n" });
        const [workspace, stateDir] = [place.at("w"), place.at("state")];
        doAll(workspace, first);
        {
          // A box that does nothing makes the layer as boxes do.
          await using _box = await openBox(place, { keep: "s" });
        }
        const layer = await layerOf(stateDir, "s");
        assert.ok(layer !== undefined);
        using store = new CheckpointStore({ stateDir, workspace });
        await noteBase(store, "s", undefined);
        let seen = {};
        for (const round of rounds)
          if (
            !inOverlay(workspace, layer.folder, (merged) => {
              doAll(merged, round);
              seen = pictureOf(merged);
            })
          )
            return t.diagnostic("not tried: mounting is refused here");
        const uid = process.getuid?.() ?? 0;
        const changes = await changesOfLayer(layer, { engine: () => Promise.resolve(engine), uid });
        const steps = memorySteps();
        const prepared = await prepareApply(store, { session: "s", layer: changes });
        assert.deepEqual([prepared.refused, changes.incomplete], [[], false]);
        const { whole } = await move(store, { session: "s", steps }, prepared);
        assert.deepEqual([pictureOf(workspace), whole], [seen, true]);
      }),
      { numRuns: RUNS },
    );
  },
);

test(
  "a recreated folder hides its old contents, and files that a user adds there later are not touched",
  { skip: noOverlay || notRoot },
  async () => {
    await using place = await scratch({ "w/d/old": "1\n", "w/d/sub/x": "1\n" });
    const workspace = place.at("w");
    {
      await using opened = await openBox(place, { keep: "s" });
      await opened.sh("rm -r d; mkdir d; echo new >d/new");
    }
    const layer = await layerOf(place.at("state"), "s");
    assert.ok(layer !== undefined);
    await place.write("w/d/later", "user\n");
    const uid = process.getuid?.() ?? 0;
    const { changes } = await changesOfLayer(layer, { engine: () => Promise.resolve(engine), uid });
    assert.deepEqual(
      changes.map(({ what, path: at }) => `${what} ${at}`),
      ["deleted d/later", "added d/new", "deleted d/old", "deleted d/sub", "deleted d/sub/x"],
    );
    const mergedHas = (file: string): Promise<boolean> =>
      Promise.resolve(
        lstatSync(bytesOfText(`${workspace}/${file}`), { throwIfNoEntry: false }) !== undefined,
      );
    const upper = path.join(layer.folder, "upper");
    const shown = await changesOfUpper({ lower: workspace, upper, shows: mergedHas });
    assert.deepEqual(
      [...shown.changes].map(({ path: at }) => at),
      ["d/new"],
    );
  },
);
