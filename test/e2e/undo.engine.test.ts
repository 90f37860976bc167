import assert from "node:assert/strict";
import { chmod, symlink } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";
import { household } from "./box-command.ts";
import { eventsOf, harness, startModel } from "./run-command.ts";

const FILES = {
  "a.txt": "one\ntwo\nthree\n",
  "old/name.txt": "moved\n",
  "gone.txt": "bye\n",
  "tool.sh": "#!/bin/sh\n",
  ".gitignore": "*.log\n",
  "build.log": "kept too\n",
};

async function workspace(): Promise<Scratch> {
  const place = await household(FILES);
  await symlink("a.txt", place.at("work/link"));
  await chmod(place.at("work/tool.sh"), 0o644);
  await giveAway(place.at("work")).catch(() => undefined);
  return place;
}

const COMMAND =
  "mv old/name.txt new.txt && rm -r old gone.txt && chmod 755 tool.sh && ln -sf tool.sh link && mkdir -p deep/er && echo x > deep/er/file && rm build.log && : > empty";

test("a run's changes by tools and commands are shown and can be taken back", { skip }, async () => {
  await using place = await workspace();
  const before = pictureOf(place.at("work"));
  await using model = await startModel([
    { calls: [["read_file", { path: "a.txt" }]] },
    { calls: [["edit_file", { path: "a.txt", old: "two", new: "2" }]] },
    { calls: [["bash", { command: COMMAND }]] },
    { text: "done" },
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change the files of this project"]);
  assert.equal(ran.code, 0, ran.stderr);
  const kinds = eventsOf(ran).flatMap((event) => (event.type === "call.ended" ? [event.kind] : []));
  assert.deepEqual(kinds, ["ok", "ok", "ok"], ran.stdout);
  const after = pictureOf(place.at("work"));
  assert.notDeepEqual(after, before);

  const stat = await harness(place, ["diff", "--stat"]);
  assert.equal(stat.code, 0, stat.stderr);
  for (const line of [
    "M a.txt  +1 -1",
    "R old/name.txt -> new.txt",
    "D gone.txt",
    "M tool.sh  100644 -> 100755",
  ])
    assert.ok(stat.stdout.includes(line), `${line} is not in\n${stat.stdout}`);
  const diff = await harness(place, ["diff"]);
  assert.match(diff.stdout, /^-two\n\+2$/m);

  const dry = await harness(place, ["undo", "--dry-run"]);
  assert.equal(dry.code, 0, dry.stderr);
  assert.deepEqual(pictureOf(place.at("work")), after);
  const undone = await harness(place, ["undo"]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.deepEqual(pictureOf(place.at("work")), before);
  assert.equal((await harness(place, ["diff", "--stat"])).stdout, "0 paths changed, +0 -0 lines\n");
  const redone = await harness(place, ["undo", "--redo"]);
  assert.equal(redone.code, 0, redone.stderr);
  assert.deepEqual(pictureOf(place.at("work")), after);
  await harness(place, ["run", "--continue", ...model.flags, "what is there now?"]);
  const told =
    model
      .asked()
      .at(-1)
      ?.messages.findLast(({ role }) => role === "user")?.content ?? "";
  assert.match(
    told,
    /^what is there now\?\n\n\[harness\] Undone \(step \d+\): .*"a\.txt".*\n\n\[harness\] Redone \(step \d+\): /,
  );
});

test("a killed run can be undone", { skip }, async () => {
  await using place = await workspace();
  const before = pictureOf(place.at("work"));
  await using model = await startModel([
    { calls: [["bash", { command: "echo first > first.txt" }]] },
    { calls: [["bash", { command: "rm a.txt; touch half-way; sleep 60" }]] },
  ]);
  const ran = await harness(place, ["run", ...model.flags, "change the files of this project"], {
    whenMade: [place.at("work/half-way"), (child) => child.kill("SIGKILL")],
  });
  assert.equal(ran.code, null);
  // The box of the dead is gone when its lock is: what holds the workspace is the process.
  const undone = await harness(place, ["undo"]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.match(undone.stderr, /was killed/);
  assert.deepEqual(pictureOf(place.at("work")), before);
});

test("undo is refused while a run works in the folder", { skip }, async () => {
  await using place = await workspace();
  await using model = await startModel([{ calls: [["bash", { command: "touch begun; sleep 60" }]] }]);
  const refusals: Promise<{ readonly code: number | null; readonly stderr: string }>[] = [];
  await harness(place, ["run", ...model.flags, "change the files of this project"], {
    whenMade: [
      place.at("work/begun"),
      (child) => {
        const refused = harness(place, ["undo"]);
        refusals.push(refused);
        void refused.finally(() => child.kill("SIGTERM"));
      },
    ],
  });
  const [refused] = await Promise.all(refusals);
  assert.equal(refused?.code, 6);
  assert.match(refused.stderr, /in use by another run/);
});
