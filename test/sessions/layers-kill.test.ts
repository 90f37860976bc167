import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { hasJournal, finishUndo } from "../../src/sessions/checkpoints/undo-changes.ts";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { move, prepareApply } from "../../src/sessions/apply-layer.ts";
import { noteBase } from "../../src/sessions/layer-base.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { layerOf } from "../fixtures/layer-of.ts";
import { scratch } from "../fixtures/scratch.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";
import { edit, fill } from "../kills/checkpoint-lives.ts";

const WRITER = path.join(import.meta.dirname, "..", "fixtures", "apply-writer.ts");
const KILLS = 80;

/** Killed so long after it said that it begins. */
async function killedAfter(ms: number, words: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [WRITER, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed]);
  await sleep(ms);
  child.kill("SIGKILL");
  await closed;
  return text;
}

const FILES = 60;

test(`an apply that is killed is finished, ${KILLS} times`, { timeout: 300_000 }, async (t) => {
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
    const said = await killedAfter(Math.random() * 220, [stateDir, workspace, seen, id]);
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
  assert.ok(cut > 0, "none was killed in the middle, so nothing was tested");
});
