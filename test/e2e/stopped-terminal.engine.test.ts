import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { skip as noEngine } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { noScreen, onScreen } from "./drawn-chat.ts";
import { type Replies, startModel } from "./run-command.ts";

const skip = noScreen || noEngine;
const PATIENCE_MS = 60_000;

/** It begins when the first file is there, and says much meanwhile. */
const replies: Replies = ({ messages }) => {
  const done = messages.filter(({ role }) => role === "tool").length;
  if (done > 5) return { text: "All of it is done." };
  const command =
    done === 0
      ? "touch begun; while [ ! -e go ]; do sleep 0.1; done"
      : `seq 1 300; echo ${done} > ${done}.txt`;
  return { text: `Step ${done}. ${"A long word about it. ".repeat(100)}`, calls: [["bash", { command }]] };
};

async function isThere(file: string): Promise<void> {
  const over = AbortSignal.timeout(PATIENCE_MS);
  while (!existsSync(file)) {
    if (over.aborted) throw new Error(`${file} never came`);
    await sleep(50);
  }
}

test(
  "a run continues while its terminal is stopped, and everything is shown afterwards",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel(replies);
    await using screen = await onScreen(place, ["run", ...model.flags, "'make five files'"]);
    await isThere(place.at("work/begun"));
    // The terminal's own: nothing that is written comes through any more.
    await screen.press("C-s");
    await place.write("work/go", "");
    await isThere(place.at("work/5.txt"));
    assert.doesNotMatch(await screen.all(), /All of it is done\.|Step 5/);
    await screen.press("C-q");
    await screen.until(/left with 0/);
    const all = await screen.all();
    assert.match(all, /^All of it is done\.$/m);
    assert.ok(
      all.indexOf("All of it is done.") > all.indexOf("harness sessions show"),
      "the answer is below",
    );
    assert.match(all, /✓ bash seq 1 300; echo 5 > 5\.txt/);
  },
);
