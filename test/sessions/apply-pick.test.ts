import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import test from "node:test";
import { pickParts } from "../../src/app/sessions/apply-changes.ts";
import type { Prompter } from "../../src/app/run/prompter.ts";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { move, noteBase, prepareApply } from "../../src/sessions/apply-layer.ts";
import { memorySteps } from "../fakes/steps.ts";
import { layerOf } from "../fixtures/layer-of.ts";
import { scratch } from "../fixtures/scratch.ts";

const TEN = Array.from({ length: 10 }, (_, at) => `${at}\n`).join("");

/** The workspace after these answers, what was shown, and the remaining changes. */
async function picked(answers: string) {
  await using place = await scratch({ "work/a": TEN, "work/b": "1\n" });
  const [workspace, seen, stateDir] = [place.at("work"), place.at("seen"), place.at("state")];
  cpSync(workspace, seen, { recursive: true });
  using store = new CheckpointStore({ stateDir, workspace });
  await noteBase(store, "s", undefined);
  writeFileSync(place.at("seen/a"), TEN.replace("1\n", "one\n").replace("8\n", "eight\n"));
  writeFileSync(place.at("seen/b"), "2\n");
  writeFileSync(place.at("seen/c"), "new\n");
  const layer = () => ({ session: "s", layer: layerOf(workspace, seen) });
  const shown: string[] = [];
  const left = answers.split(" ") as Awaited<ReturnType<Prompter["pickPart"]>>[];
  const ask: Prompter["pickPart"] = () => Promise.resolve(left.shift() ?? "quit");
  const means = { show: (text: string) => void shown.push(text), ask };
  const chosen = await pickParts(await prepareApply(store, layer()), store, means);
  const { whole } = await move(store, { session: "s", steps: memorySteps() }, chosen);
  const rest = (await prepareApply(store, layer())).ops.map(({ path }) => path);
  const [a, b] = [await place.read("work/a"), await place.read("work/b")];
  const c = await place.read("work/c").catch(() => null);
  return { lines: [a.includes("one"), a.includes("eight")], b, c, shown, whole, rest };
}

test("only the chosen parts of a file are applied; the others are offered again", async () => {
  const { lines, b, c, shown, whole, rest } = await picked("no yes no yes");
  assert.deepEqual([lines, b, c], [[false, true], "1\n", "new\n"]);
  assert.deepEqual([whole, rest], [false, ["a", "b"]]);
  assert.equal(shown.length, 4);
  assert.match(shown[0] ?? "", /-1\n\+one\n/);
  assert.doesNotMatch(shown[0] ?? "", /eight/);
});

test("all takes the current part and the rest, quit takes neither", async () => {
  const all = await picked("no all");
  assert.deepEqual([all.lines, all.b, all.c, all.rest], [[false, true], "2\n", "new\n", ["a"]]);
  const quit = await picked("yes quit");
  assert.deepEqual([quit.lines, quit.b, quit.c], [[true, false], "1\n", null]);
  const whole = await picked("all");
  assert.deepEqual([whole.whole, whole.rest], [true, []]);
});
