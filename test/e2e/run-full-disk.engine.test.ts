import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, startModel } from "./run-command.ts";

const noMount = process.getuid?.() === 0 ? false : "only root mounts a small disk";

/** Until nothing more fits there. */
function fill(file: string): void {
  for (const size of [2 ** 20, 2 ** 12, 1]) while (grown(file, size));
}

function grown(file: string, size: number): boolean {
  try {
    writeFileSync(file, Buffer.alloc(size), { flag: "a" });
    return true;
  } catch {
    return false;
  }
}

test(
  "a run whose state folder is full reports its changes so far, and where they are",
  { skip: skip || noMount },
  async () => {
    await using place = await household({ "own.txt": "the user's\n" });
    const state = place.at(".local/state/harness");
    const filler = path.join(state, "filler");
    await mkdir(state, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=12m", "tmpfs", state]);
    try {
      await using model = await startModel((_chat, nth) => {
        if (nth === 0) return { calls: [["write_file", { path: "made.txt", content: "made\n" }]] };
        fill(filler);
        return { text: "It is made. ".repeat(20_000) };
      });
      const ran = await harness(place, ["run", "--json", "--intent", "change", ...model.flags, "make it"]);
      const { session, changes, reason, status } = finishedOf(ran);
      assert.deepEqual([ran.code, status, changes?.added], [1, "failed", ["made.txt"]], ran.stderr);
      assert.match(reason, /no space is left on the disk.*; next: df -h /);
      assert.match(
        reason,
        new RegExp(`are in ${place.at("work")}: .*harness undo ${session} takes them back$`),
      );
      rmSync(filler);
      const undone = await harness(place, ["undo", session]);
      assert.equal(undone.code, 0, undone.stderr);
      assert.ok(!existsSync(place.at("work/made.txt")));
      assert.equal(await place.read("work/own.txt"), "the user's\n");
    } finally {
      execFileSync("umount", ["-l", state]);
    }
  },
);
