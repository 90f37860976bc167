import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, type Replies, type Said, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

const READ: Said = { calls: [["read_file", { path: "a.txt" }]] };
const edit = (old: string, young: string): Said => ({
  calls: [["edit_file", { path: "a.txt", old, new: young }]],
});
const DONE: Said = { text: "done" };
const FILES = { "a.txt": "one\nkept\n" };

test(
  "an edit of an unread file fails with instructions, and works once the file is read",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using model = await startModel([
      edit("one", "1"),
      READ,
      edit("one", "two"),
      edit("two", "three"),
      DONE,
    ]);
    const ran = await harness(place, ["run", ...model.flags, "change a.txt"]);
    assert.equal(ran.code, 0, ran.stderr);
    const [unread, , first, own] = resultsIn(model.asked()[4]);
    assert.match(unread ?? "", /read_file|read it/i);
    assert.match(first ?? "", /1 place changed/);
    assert.match(own ?? "", /1 place changed/);
    assert.equal(await place.read("work/a.txt"), "three\nkept\n");
  },
);

for (const [what, call] of [
  ["edit_file", edit("one", "1")],
  ["write_file", { calls: [["write_file", { path: "a.txt", content: "mine\n" }]] }],
  [
    "apply_patch",
    {
      calls: [
        ["apply_patch", { patch: "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch" }],
      ],
    },
  ],
] as const satisfies readonly (readonly [string, Said])[])
  test(
    `${what} keeps what somebody else wrote meanwhile, until the file is read again`,
    { skip },
    async () => {
      await using place = await household(FILES);
      const changed = "one\nkept\nby somebody else\n";
      const replies: Replies = (_chat, nth) => {
        if (nth === 1) writeFileSync(place.at("work/a.txt"), changed);
        return [READ, call, { text: "gave up" }][nth] ?? DONE;
      };
      await using model = await startModel(replies);
      const ran = await harness(place, ["run", "--json", ...model.flags, "change a.txt"]);
      assert.match(resultsIn(model.asked()[2]).at(-1) ?? "", /changed/);
      assert.equal(await place.read("work/a.txt"), changed);
      assert.deepEqual(finishedOf(ran).denials, []);
      await using again = await startModel([READ, call, DONE]);
      const more = await harness(place, ["run", "--continue", ...again.flags, "change it now"]);
      assert.equal(more.code, 0, more.stderr);
      assert.notEqual(await place.read("work/a.txt"), changed);
    },
  );

test(
  "after --continue an unchanged file need not be read again, a changed one must be",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using reading = await startModel([READ, DONE]);
    await harness(place, ["run", ...reading.flags, "fix a.txt"]);
    await using editing = await startModel([edit("one", "two"), DONE]);
    const edited = await harness(place, ["run", "--continue", ...editing.flags, "fix it"]);
    assert.deepEqual([edited.code, await place.read("work/a.txt")], [0, "two\nkept\n"], edited.stderr);
    await place.write("work/a.txt", "two\nother\n");
    await using blind = await startModel([edit("two", "three"), DONE]);
    await harness(place, ["run", "--continue", ...blind.flags, "fix it again"]);
    assert.equal(await place.read("work/a.txt"), "two\nother\n");
    assert.match(resultsIn(blind.asked()[1]).at(-1) ?? "", /changed/);
  },
);

test("a command that changes a file makes earlier reads of it outdated", { skip }, async () => {
  await using place = await household(FILES);
  const byShell: Said = { calls: [["bash", { command: "sed -i s/one/eins/ a.txt" }]] };
  await using model = await startModel([
    READ,
    byShell,
    edit("kept", "lost"),
    READ,
    edit("kept", "new"),
    DONE,
  ]);
  await harness(place, ["run", ...model.flags, "change a.txt"]);
  assert.equal(await place.read("work/a.txt"), "eins\nnew\n");
});
