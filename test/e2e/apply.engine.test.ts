import assert from "node:assert/strict";
import test from "node:test";
import { noOverlay } from "../docker/isolation/open-box.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, type Ran, startModel } from "./run-command.ts";

/** A run in a layer over `work` that does what the shell line does. */
async function runInLayer(place: Scratch, line: string, more: readonly string[] = []): Promise<Ran> {
  await using model = await startModel([{ calls: [["bash", { command: line }]] }, { text: "Done." }]);
  const words = [
    "run",
    "--json",
    "--isolation",
    "overlay",
    "--intent",
    "change",
    ...model.flags,
    ...more,
    "do it",
  ];
  return await harness(place, words);
}

const FILES = {
  a: "one\ntwo\nthree\nfour\nfive\nsix\n",
  gone: "x\n",
  "old/file": "moved\n",
};

test(
  "what a run changed in a layer is moved in by apply, and taken back by undo",
  { skip: noOverlay },
  async () => {
    await using place = await household(FILES);
    const ran = await runInLayer(
      place,
      "sed -i s/two/TWO/ a; rm gone; mv old new; mkdir empty; ln -s a link; printf '#!/bin/sh\\n' >run; chmod 755 run",
    );
    const { status } = finishedOf(ran);
    assert.equal(status, "done", ran.stderr + ran.stdout);
    assert.equal(await place.read("work/a"), FILES.a);
    await place.write("work/a", FILES.a.replace("six", "SIX"));
    const applied = await harness(place, ["apply", "--json"]);
    assert.equal(applied.code, 0, applied.stderr + applied.stdout);
    assert.equal(await place.read("work/a"), FILES.a.replace("six", "SIX").replace("two", "TWO"));
    assert.equal(await place.read("work/new/file"), "moved\n");
    const again = await harness(place, ["apply"]);
    assert.deepEqual([again.code, /already there/.test(again.stderr)], [2, true]);
  },
);
