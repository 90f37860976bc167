import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { RunCheckpoints } from "../../../src/sessions/checkpoints/recorder.ts";
import { CheckpointStore } from "../../../src/sessions/checkpoints/checkpoint-store.ts";
import { undo } from "../../../src/sessions/checkpoints/undo-changes.ts";
import { memorySteps } from "../../fakes/steps.ts";
import { assertCostly, fc } from "../../fixtures/property.ts";
import { type Edit, edits, make } from "../../fixtures/random-tree.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";

const PLAIN = { session: "s", target: 0, redo: false, dryRun: false, skip: false };

async function withWorkspace(work: (root: string, state: string) => Promise<void>): Promise<void> {
  const place = mkdtempSync(path.join(tmpdir(), "harness-undo-"));
  const root = path.join(place, "work");
  mkdirSync(root);
  try {
    await work(root, path.join(place, "state"));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

const doAll = (root: string, all: readonly Edit[]): void => {
  for (const each of all) make(root, each);
};

test("undo restores any tree after any edits, and redo the edits", { timeout: 300_000 }, async () => {
  await assertCostly(
    fc.asyncProperty(edits, fc.array(edits, { minLength: 1, maxLength: 4 }), async (first, calls) => {
      await withWorkspace(async (root, stateDir) => {
        doAll(root, first);
        const start = pictureOf(root);
        const open = (): CheckpointStore => new CheckpointStore({ stateDir, workspace: root });
        const steps = memorySteps();
        const pictures = [start];
        {
          await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
          for (const [turn, call] of calls.entries()) {
            await run.around({ call: `c${turn}`, turn, lasting: false }, () =>
              Promise.resolve(doAll(root, call)),
            );
            pictures.push(pictureOf(root));
          }
        }
        using store = open();
        const to = Math.floor(calls.length / 2);
        for (const target of [to, 0]) {
          const undone = await undo(store, { ...PLAIN, steps, target });
          assert.deepEqual(undone.refused, []);
          assert.deepEqual(pictureOf(root), pictures[target]);
        }
        const again = await undo(store, { ...PLAIN, steps });
        assert.equal(again.done, false);
        if (JSON.stringify(start) === JSON.stringify(pictures[to])) return;
        await undo(store, { ...PLAIN, steps, redo: true });
        assert.deepEqual(pictureOf(root), pictures[to]);
      });
    }),
    30,
  );
});
