import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { AWAY, type Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { lastResult, resultsIn } from "./run-requests.ts";

const SECRET = "KUMQUAT-OUTSIDE";
const DONE: Said = { text: "done" };

type Call = NonNullable<Said["calls"]>[number];

/** A file next to the workspace, and two links in the workspace that lead there. */
async function beside(): Promise<Scratch> {
  const place = await household({ "a.txt": `inside ${SECRET}\n` }, AWAY);
  await place.write("outside/secret.txt", `${SECRET}\n`, 0o666);
  await symlink(place.at("outside"), place.at("work/way"));
  await symlink("../outside/secret.txt", place.at("work/link.txt"));
  return place;
}

const patchOf = (path: string): string =>
  `*** Begin Patch\n*** Update File: ${path}\n@@\n-${SECRET}\n+taken\n*** End Patch`;

const readers: readonly Call[] = [
  ["read_file", { path: "../outside/secret.txt" }],
  ["read_file", { path: "way/secret.txt" }],
  ["read_file", { path: "link.txt" }],
  ["read_file", { path: "/etc/shadow" }],
  ["list_dir", { path: "../outside" }],
  ["list_dir", { path: "way" }],
  ["grep", { pattern: "KUMQUAT", path: "../outside" }],
  ["grep", { pattern: "KUMQUAT", path: "way" }],
  ["glob", { pattern: "*.txt", path: "../outside" }],
  ["glob", { pattern: "../outside/*.txt" }],
  ["glob", { pattern: "way/*.txt" }],
];

/** All of them in one reply: whether each was refused, by its place, and what the model was told. */
async function tried(place: Scratch, calls: readonly Call[], task: string) {
  await using model = await startModel([{ calls }, DONE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, task]);
  const denied = new Set(finishedOf(ran).denials.map(({ call, tool }) => `${call} ${tool}`));
  const refused = eventsOf(ran).flatMap((event) =>
    event.type === "call.proposed" ? [denied.has(`${event.call} ${event.tool}`)] : [],
  );
  const results = resultsIn(model.asked().at(-1));
  assert.deepEqual([refused.length, results.length], [calls.length, calls.length], ran.stderr);
  return { ran, refused, results };
}

test("no reading tool shows anything from outside the workspace", { skip }, async (t) => {
  await using place = await beside();
  const { ran, refused, results } = await tried(place, readers, "look outside");
  assert.deepEqual([ran.code, finishedOf(ran).status], [4, "refused"], ran.stderr);
  for (const [nth, [tool, args]] of readers.entries())
    await t.test(`${tool} ${JSON.stringify(args)}`, () => {
      const result = results[nth] ?? "";
      assert.ok(!result.includes(SECRET) && !result.includes("secret.txt\n"), result);
      // A pattern that leads out need not be refused: it finds nothing.
      if (tool !== "glob" || args["path"] !== undefined) assert.ok(refused[nth], result);
    });
});

const writers: readonly Call[] = [
  ["write_file", { path: "../outside/secret.txt", content: "taken" }],
  ["write_file", { path: "way/new.txt", content: "taken" }],
  ["write_file", { path: "link.txt", content: "taken" }],
  ["edit_file", { path: "link.txt", old: SECRET, new: "taken" }],
  ["edit_file", { path: "way/secret.txt", old: SECRET, new: "taken" }],
  ["apply_patch", { patch: patchOf("../outside/secret.txt") }],
  ["apply_patch", { patch: patchOf("way/secret.txt") }],
  ["apply_patch", { patch: "*** Begin Patch\n*** Add File: way/new.txt\n+taken\n*** End Patch" }],
  ["bash", { command: "echo taken > ../outside/secret.txt" }],
];

test(
  "no writing tool changes anything outside, and each attempt is listed as refused",
  { skip },
  async (t) => {
    await using place = await beside();
    const { ran, refused, results } = await tried(place, writers, "change what is outside");
    assert.deepEqual([ran.code, finishedOf(ran).status], [4, "refused"], ran.stderr);
    for (const [nth, [tool, args]] of writers.entries())
      await t.test(`${tool} ${JSON.stringify(args)}`, () => {
        assert.ok(refused[nth], results[nth]);
      });
    assert.equal(await place.read("outside/secret.txt"), `${SECRET}\n`, results.join("\n"));
    assert.equal(existsSync(place.at("outside/new.txt")), false, results.join("\n"));
  },
);

test("a command that follows a link out of the workspace finds nothing there", { skip }, async () => {
  await using place = await beside();
  const command = "echo taken > way/new.txt || echo taken > link.txt || cat way/secret.txt link.txt";
  await using model = await startModel([{ calls: [["bash", { command }]] }, DONE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change what is outside"]);
  const ended = eventsOf(ran).find((event) => event.type === "call.ended");
  assert.notEqual(ended?.kind, "ok");
  assert.ok(!lastResult(model.asked()).includes(SECRET));
  assert.equal(await place.read("outside/secret.txt"), `${SECRET}\n`);
  assert.equal(existsSync(place.at("outside/new.txt")), false);
});

test("the same tools work inside the workspace", { skip }, async () => {
  await using place = await beside();
  const inside: readonly Said[] = [
    { calls: [["read_file", { path: "a.txt" }]] },
    { calls: [["edit_file", { path: "a.txt", old: "inside", new: "edited" }]] },
    { calls: [["write_file", { path: "sub/b.txt", content: "b\n" }]] },
    { calls: [["grep", { pattern: "KUMQUAT" }]] },
    { calls: [["glob", { pattern: "**/*.txt" }]] },
    DONE,
  ];
  await using model = await startModel(inside);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change what is inside"]);
  assert.deepEqual([ran.code, finishedOf(ran).denials], [0, []], ran.stderr);
  assert.equal(await place.read("work/a.txt"), `edited ${SECRET}\n`);
  assert.equal(await place.read("work/sub/b.txt"), "b\n");
});

test("protected files inside are refused too: .git and editor settings", { skip }, async () => {
  await using place = await household({ ".git/config": "[core]\n", "a.txt": "a\n" });
  const names = [".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", ".harness/config.json"];
  const calls = names.map((path): Call => ["write_file", { path, content: "evil\n" }]);
  const { ran, refused, results } = await tried(place, calls, "write a setting");
  assert.deepEqual([ran.code, refused], [4, names.map(() => true)], results.join("\n"));
  assert.equal(await place.read("work/.git/config"), "[core]\n");
  assert.equal(existsSync(place.at("work/.vscode/tasks.json")), false);
});
