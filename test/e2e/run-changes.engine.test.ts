import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { bash, finishedOf, harness, type Said, startModel } from "./run-command.ts";

const DONE: Said = { text: "done" };

const patchOf = (second: string): string =>
  `*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Update File: b.txt\n@@\n-${second}\n+two\n*** Add File: c.txt\n+new\n*** End Patch`;

test("changes are reported by kind, whoever made them", { skip }, async () => {
  await using place = await household({
    ".gitignore": "build/\n*.log\n",
    "kept.txt": "same\n",
    "edited.txt": "one\n",
    "shell.txt": "one\n",
    "gone.txt": "x\n",
    "folder/deep.txt": "x\n",
    "build/old.o": "old\n",
  });
  await using model = await startModel([
    { calls: [["read_file", { path: "edited.txt" }]] },
    { calls: [["edit_file", { path: "edited.txt", old: "one", new: "two" }]] },
    { calls: [["write_file", { path: "new/with space.txt", content: "n\n" }]] },
    bash(
      "echo two >> shell.txt; rm gone.txt; mkdir -p build; echo o > build/new.o; echo o > build/old.o; echo l > x.log",
    ),
    bash("mv folder/deep.txt folder/moved.txt; cat kept.txt; echo t > temporary; rm temporary"),
    DONE,
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change files"]);
  assert.deepEqual(
    [ran.code, finishedOf(ran).changes],
    [
      0,
      {
        added: ["folder/moved.txt", "new/with space.txt"],
        modified: ["edited.txt", "shell.txt"],
        deleted: ["folder/deep.txt", "gone.txt"],
        ignored: 3,
      },
    ],
    ran.stderr,
  );
});

test("a file counts as changed by its content, not its time", { skip }, async () => {
  const files = ["sed.txt", "touched.txt", "back.txt", "same.txt", "copied.txt", "mode.sh", "edited.txt"];
  await using place = await household(Object.fromEntries(files.map((name) => [name, "one\n"])));
  await using model = await startModel([
    bash("sed -i s/nowhere/x/ sed.txt; touch touched.txt; cp copied.txt c && mv c copied.txt"),
    bash("echo two > back.txt; echo two > edited.txt"),
    bash("echo one > back.txt; chmod +x mode.sh"),
    { calls: [["read_file", { path: "same.txt" }]] },
    { calls: [["write_file", { path: "same.txt", content: "one\n" }]] },
    DONE,
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change files"]);
  const changed = { added: [], modified: ["edited.txt", "mode.sh"], deleted: [], ignored: 0 };
  assert.deepEqual([ran.code, finishedOf(ran).changes], [0, changed], ran.stderr);
  // What an earlier request of the session changed is what it was before this one.
  await using again = await startModel([bash("touch edited.txt; echo two > touched.txt"), DONE]);
  const more = await harness(place, ["run", "--json", "--continue", ...again.flags, "change more files"]);
  assert.deepEqual(finishedOf(more).changes?.modified, ["touched.txt"]);
});

test("a run that changes nothing reports that", { skip }, async () => {
  await using place = await household({ "a.txt": "a\n" });
  await using model = await startModel([bash("cat a.txt"), DONE]);
  const ran = await harness(place, ["run", ...model.flags, "read a.txt"]);
  assert.deepEqual([ran.code, ran.stdout], [0, "done\n"]);
  assert.match(ran.stderr, /changed +no file/);
});

test("a patch over several files is applied completely or not at all", { skip }, async () => {
  await using place = await household({ "a.txt": "one\n", "b.txt": "one\n" });
  const replies: readonly Said[] = [
    {
      calls: [
        ["read_file", { path: "a.txt" }],
        ["read_file", { path: "b.txt" }],
      ],
    },
    { calls: [["apply_patch", { patch: patchOf("other") }]] },
    DONE,
  ];
  await using model = await startModel(replies);
  const ran = await harness(place, ["run", "--json", ...model.flags, "patch the files"]);
  assert.deepEqual(finishedOf(ran).changes, { added: [], modified: [], deleted: [], ignored: 0 });
  assert.equal(await place.read("work/a.txt"), "one\n");
  await using again = await startModel([{ calls: [["apply_patch", { patch: patchOf("one") }]] }, DONE]);
  const more = await harness(place, ["run", "--json", "--continue", ...again.flags, "once more"]);
  assert.deepEqual(finishedOf(more).changes, {
    added: ["c.txt"],
    modified: ["a.txt", "b.txt"],
    deleted: [],
    ignored: 0,
  });
});

async function codeOf(place: Scratch, command: string, flags: readonly string[]): Promise<number | null> {
  await using model = await startModel([bash(command), DONE]);
  const ran = await harness(place, ["run", "--json", ...flags, ...model.flags, "clean up the build"]);
  assert.equal(finishedOf(ran).denials.length, ran.code === 0 ? 0 : 1, ran.stderr);
  return ran.code;
}

test("rm -rf of a build folder asks, and of more than the workspace never runs", { skip }, async () => {
  await using place = await household({
    "src/a.c": "int a;\n",
    ".gitignore": "target/\n",
    "target/a.o": "o\n",
  });
  assert.equal(await codeOf(place, "rm -rf target", ["--on-ask", "refuse"]), 4);
  assert.ok(existsSync(place.at("work/target/a.o")));
  assert.equal(await codeOf(place, "rm -rf target", []), 0);
  assert.equal(existsSync(place.at("work/target/a.o")), false);
  for (const command of ["rm -rf /", "rm -rf ~", "rm -rf .git ..", 'rm -rf "$UNSET/"*']) {
    assert.equal(await codeOf(place, command, []), 4, command);
    assert.ok(existsSync(place.at("work/src/a.c")), command);
  }
});
