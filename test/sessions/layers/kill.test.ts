import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { hasJournal } from "../../../src/sessions/checkpoints/journal.ts";
import { CheckpointStore } from "../../../src/sessions/checkpoints/store.ts";
import { finishUndo } from "../../../src/sessions/checkpoints/undo.ts";
import { move, prepareApply } from "../../../src/sessions/layers/apply.ts";
import { noteBase } from "../../../src/sessions/layers/base.ts";
import { openStore } from "../../../src/sessions/store.ts";
import { ABOUT } from "../../contract/store-words.ts";
import { layerOf } from "../../fixtures/layer-of.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";

const WRITER = path.join(import.meta.dirname, "../../fixtures/apply-writer.ts");
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

function fill(root: string): void {
  for (const folder of [".git/refs", "old", "same", "flips"])
    mkdirSync(path.join(root, folder), { recursive: true });
  for (let at = 0; at < 60; at += 1) {
    writeFileSync(path.join(root, `old/${at}`), `${at}\n`.repeat(at));
    writeFileSync(path.join(root, `same/${at}`), `${at}\n`);
    writeFileSync(path.join(root, `.git/refs/${at}`), `${at}\n`);
  }
}

function edit(root: string): void {
  rmSync(path.join(root, "old"), { recursive: true });
  rmSync(path.join(root, "flips"), { recursive: true });
  symlinkSync("same", path.join(root, "flips"));
  mkdirSync(path.join(root, "new/empty"), { recursive: true });
  for (let at = 0; at < 60; at += 1) {
    writeFileSync(path.join(root, `new/${at}`), "x".repeat(at * 1000), {
      mode: at % 2 === 0 ? 0o755 : 0o600,
    });
    writeFileSync(path.join(root, `same/${at}`), `${at}\nmore\n`);
    writeFileSync(path.join(root, `.git/refs/${at}`), `new ${at}\n`);
  }
}

test(`an apply that is killed is finished, ${KILLS} times`, { timeout: 300_000 }, async (t) => {
  let [cut, ended] = [0, 0];
  for (let kill = 0; kill < KILLS; kill += 1) {
    await using place = await scratch();
    const [stateDir, workspace, seen] = [place.at("state"), place.at("work"), place.at("seen")];
    mkdirSync(workspace);
    fill(workspace);
    cpSync(workspace, seen, { recursive: true, verbatimSymlinks: true });
    using sessions = openStore(stateDir);
    const { id, steps } = sessions.create({ ...ABOUT, workspace });
    using store = new CheckpointStore({ stateDir, workspace });
    await noteBase(store, id, undefined);
    edit(seen);
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
