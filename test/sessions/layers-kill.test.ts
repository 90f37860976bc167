// also slow: all its kills
import assert from "node:assert/strict";
import { cpSync, mkdirSync } from "node:fs";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { hasJournal, finishUndo } from "../../src/sessions/checkpoints/undo-changes.ts";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { move, noteBase, prepareApply } from "../../src/sessions/apply-layer.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { layerOf } from "../fixtures/layer-of.ts";
import { part } from "../fixtures/property.ts";
import { scratch } from "../fixtures/scratch.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";
import { edit, fill } from "../kills/checkpoint-lives.ts";
import { killed } from "../kills/killed.ts";

const KILLS = part(10);

const FILES = 60;

test(`a killed apply is completed, ${KILLS} times`, { timeout: 300_000 }, async (t) => {
  let [cut, ended] = [0, 0];
  for (let kill = 0; kill < KILLS; kill += 1) {
    await using place = await scratch();
    const [stateDir, workspace, seen] = [place.at("state"), place.at("work"), place.at("seen")];
    mkdirSync(workspace);
    fill(workspace, FILES);
    cpSync(workspace, seen, { recursive: true, verbatimSymlinks: true });
    using sessions = openStore(stateDir);
    const { id, steps } = sessions.create({ ...ABOUT, workspace });
    using store = new CheckpointStore({ stateDir, workspace });
    await noteBase(store, id, undefined);
    edit(seen, FILES);
    await sleep(25);
    // Every second one by number, which comes in the middle however slow the machine is.
    const byNumber = { kind: "step", at: 5 + (kill % 28) * 14, half: kill % 4 === 0 } as const;
    const moment = kill % 2 === 0 ? byNumber : ({ kind: "time", ms: Math.random() * 220 } as const);
    const { lines: said } = await killed("fixtures/apply-writer.ts", [stateDir, workspace, seen, id], moment);
    if (hasJournal(store.folder)) cut += 1;
    if (said.includes("applied")) ended += 1;
    using after = new CheckpointStore({ stateDir, workspace });
    await finishUndo(after, () => steps);
    assert.equal(hasJournal(after.folder), false);
    const rest = await prepareApply(after, { session: id, layer: layerOf(workspace, seen) });
    assert.deepEqual(rest.refused, []);
    await move(after, { session: id, steps }, rest);
    assert.deepEqual(pictureOf(workspace), pictureOf(seen));
  }
  t.diagnostic(`${cut} were cut short, ${ended} had ended`);
  assert.ok(cut > 0, "no process was killed in the middle, so nothing was tested");
});
