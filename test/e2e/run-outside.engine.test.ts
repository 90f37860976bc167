import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { AWAY, type Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { lastResult } from "./run-requests.ts";

const SECRET = "KUMQUAT-OUTSIDE";
const DONE: Said = { text: "done" };

/** A file beside the workspace, and two links of the workspace that lead there. */
async function beside(): Promise<Scratch> {
  const place = await household({ "a.txt": `inside ${SECRET}\n` }, AWAY);
  await place.write("outside/secret.txt", `${SECRET}\n`, 0o666);
  await symlink(place.at("outside"), place.at("work/way"));
  await symlink("../outside/secret.txt", place.at("work/link.txt"));
  return place;
}

const patchOf = (path: string): string =>
  `*** Begin Patch\n*** Update File: ${path}\n@@\n-${SECRET}\n+taken\n*** End Patch`;

const readers: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
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

for (const [tool, args] of readers)
  test(`${tool} ${JSON.stringify(args)} shows nothing of what is outside`, { skip }, async () => {
    await using place = await beside();
    await using model = await startModel([{ calls: [[tool, args]] }, DONE]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "look outside"]);
    const result = lastResult(model.asked());
    assert.ok(!result.includes(SECRET) && !result.includes("secret.txt\n"), result);
    const { denials } = finishedOf(ran);
    const seesNothing = tool === "glob" && args["path"] === undefined && denials.length === 0;
    if (!seesNothing) assert.deepEqual([ran.code, denials.map((each) => each.tool)], [4, [tool]], result);
  });

const writers: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
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

for (const [tool, args] of writers)
  test(
    `${tool} ${JSON.stringify(args)} changes nothing outside, and is listed as refused`,
    { skip },
    async () => {
      await using place = await beside();
      await using model = await startModel([{ calls: [[tool, args]] }, DONE]);
      const ran = await harness(place, ["run", "--json", ...model.flags, "change what is outside"]);
      const { denials, status } = finishedOf(ran);
      assert.deepEqual(
        [ran.code, status, denials.map((each) => each.tool)],
        [4, "refused", [tool]],
        ran.stderr,
      );
      assert.equal(await place.read("outside/secret.txt"), `${SECRET}\n`);
      assert.equal(existsSync(place.at("outside/new.txt")), false);
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

test("the same tools do all of it inside", { skip }, async () => {
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

test("protected files inside are refused too: .git and the settings of editors", { skip }, async () => {
  await using place = await household({ ".git/config": "[core]\n", "a.txt": "a\n" });
  for (const path of [".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", ".harness/config.json"]) {
    await using model = await startModel([{ calls: [["write_file", { path, content: "evil\n" }]] }, DONE]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "write a setting"]);
    assert.deepEqual([ran.code, finishedOf(ran).denials.length], [4, 1], `${path} ${ran.stderr}`);
  }
  assert.equal(await place.read("work/.git/config"), "[core]\n");
  assert.equal(existsSync(place.at("work/.vscode/tasks.json")), false);
});
