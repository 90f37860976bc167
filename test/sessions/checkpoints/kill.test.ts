// also slow: all its kills
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { finishUndo, hasJournal, restore, undo } from "../../../src/sessions/checkpoints/undo-changes.ts";
import { Packs } from "../../../src/sessions/checkpoints/packs.ts";
import { RunCheckpoints } from "../../../src/sessions/checkpoints/recorder.ts";
import { CheckpointStore } from "../../../src/sessions/checkpoints/checkpoint-store.ts";
import { openStore } from "../../../src/sessions/session-store.ts";
import { ABOUT } from "../../contract/store-words.ts";
import { part } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";
import { present, textsIn } from "../../kills/checkpoint-lives.ts";
import { killed } from "../../kills/killed.ts";

const WRITER = path.join(import.meta.dirname, "../../fixtures/checkpoint-writer.ts");
const KILLS = part(10);
// The third is by number and in the middle.
const KILLS_OF_UNDO = part(12);

/** Kills the writer this long after its first output; returns all its complete lines. */
async function killedAfter(ms: number, words: readonly string[]): Promise<readonly string[]> {
  const child = spawn(process.execPath, [WRITER, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed]);
  await sleep(ms);
  child.kill("SIGKILL");
  await closed;
  return text.split("\n").slice(0, -1);
}

test(`no kept state is lost or torn by ${KILLS} kills`, { timeout: 300_000 }, async (t) => {
  await using place = await scratch();
  const [state, work] = [place.at("state"), place.at("work")];
  mkdirSync(work);
  const kept = new Map<string, number>();
  let seed = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    for (const line of await killedAfter(Math.random() * 120, ["keep", state, work, String(seed)])) {
      const [id = "", known = ""] = line.split(" ");
      kept.set(id, Number(known));
      seed = Number(known) + 1;
    }
    if (kill % 5 !== 4) continue;
    using store = new CheckpointStore({ stateDir: state, workspace: work });
    for (const id of store.trees.ids()) {
      const texts = textsIn(store, store.trees.load(id));
      const known = kept.get(id);
      if (known === undefined) assert.ok(!Object.values(texts).includes("lost"), id);
      else assert.deepEqual(texts, present(known), id);
    }
    for (const id of kept.keys()) assert.ok(store.trees.ids().includes(id), `${id} is gone`);
  }
  t.diagnostic(`${kept.size} states`);
});

test(`a killed undo is completed, ${KILLS_OF_UNDO} times`, { timeout: 300_000 }, async (t) => {
  let [cut, whole] = [0, 0];
  for (let kill = 0; kill < KILLS_OF_UNDO; kill += 1) {
    await using place = await scratch();
    const [stateDir, workspace] = [place.at("state"), place.at("work")];
    for (const [name, text] of Object.entries(present(kill))) await place.write(`work/${name}`, text);
    using sessions = openStore(stateDir);
    const { id, steps } = sessions.create({ ...ABOUT, workspace });
    const before = pictureOf(workspace);
    const open = (): CheckpointStore => new CheckpointStore({ stateDir, workspace });
    {
      await using run = new RunCheckpoints({ session: id, steps, open, notice: assert.fail });
      await run.around({ call: "c", turn: 1, lasting: false }, async () => {
        for (const [name, text] of Object.entries(present(kill + 90)))
          await place.write(`work/${name}`, text);
        for (let at = 0; at < 200; at += 1) writeFileSync(path.join(workspace, `new${at}`), `${at}`);
      });
    }
    // Every second one by number, which comes in the middle however slow the machine is.
    const byNumber = { kind: "step", at: 5 + (kill % 20) * 20, half: kill % 4 === 0 } as const;
    const moment = kill % 2 === 0 ? byNumber : ({ kind: "time", ms: 10 + Math.random() * 80 } as const);
    const words = ["undo", stateDir, workspace, id];
    const { lines: said } = await killed("fixtures/checkpoint-writer.ts", words, moment);
    using store = open();
    if (hasJournal(store.folder)) cut += 1;
    if (said.includes("undone")) whole += 1;
    await finishUndo(store, () => steps);
    await undo(store, { session: id, steps, target: 0, redo: false, dryRun: false, skip: false });
    assert.deepEqual(pictureOf(workspace), before);
    assert.equal(hasJournal(store.folder), false);
  }
  t.diagnostic(`${cut} were cut short, ${whole} had ended`);
  assert.ok(cut > 0, "no process was killed in the middle, so nothing was tested");
});

const notRoot = process.getuid?.() === 0 ? false : "only root gives files away";

test(
  "a folder whose owner was not set yet when its writer was killed gets its owner",
  { skip: notRoot },
  async () => {
    await using place = await scratch({ "work/own/x": "", "work/kept/x": "" });
    const root = place.at("work");
    chownSync(root, 1000, 1000);
    using packs = new Packs(place.at("packs"));
    const folder = { kind: "folder", mode: 0o755 } as const;
    const ops = [
      { path: "own", from: null, to: folder },
      { path: "kept", from: folder, to: { ...folder, mode: 0o750 } },
      { path: "new", from: null, to: { ...folder, owner: "1001:1001" } },
    ];
    restore(ops, { root, packs, aside: "aside" });
    const owners = ["own", "kept", "new"].map((name) => statSync(place.at("work", name)).uid);
    // A folder that existed before keeps its owner.
    assert.deepEqual(owners, [1000, 0, 1001]);
  },
);

test("removing old states, killed before any change, leaves the remaining ones complete", async () => {
  for (let at = 1, ended = false; !ended; at += 1) {
    await using place = await scratch();
    const [stateDir, workspace] = [place.at("state"), place.at("work")];
    {
      for (const [name, text] of Object.entries(present(1))) await place.write(`work/${name}`, text);
      using store = new CheckpointStore({ stateDir, workspace });
      for (let step = 0; step < 5; step += 1) {
        await place.write("work/new", `${step}`);
        await store.take("s");
      }
    }
    const moment = { kind: "step", at, half: false } as const;
    ({ ended } = await killed("fixtures/checkpoint-writer.ts", ["forget", stateDir, workspace, "s"], moment));
    using store = new CheckpointStore({ stateDir, workspace });
    for (const id of store.trees.ids())
      assert.ok(!Object.values(textsIn(store, store.trees.load(id))).includes("lost"));
  }
});
