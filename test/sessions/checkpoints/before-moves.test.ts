import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import test from "node:test";
import { spaceFor, withoutForeign } from "../../../src/sessions/checkpoints/before-moves.ts";
import type { Entry } from "../../../src/sessions/checkpoints/entry.ts";
import type { ChangePlan } from "../../../src/sessions/checkpoints/undo-plan.ts";
import { scratch } from "../../fixtures/scratch.ts";

const file = (size: number, mode = 0o644): Entry => ({ kind: "file", mode, size, pieces: [`p${size}`] });
const folder = (mode = 0o755): Entry => ({ kind: "folder", mode });

test("moves need what they write in whole blocks, less what goes first or makes way", () => {
  const add = { path: "a", from: null, to: file(5000) };
  const gone = { path: "b", from: file(4096), to: null };
  const change = { path: "c", from: file(9000), to: file(9001) };
  const mode = { path: "d", from: file(7), to: file(7, 0o755) };
  assert.deepEqual(spaceFor([add, mode], 4096), { bytes: 8192, files: 1 });
  assert.deepEqual(spaceFor([add, gone], 4096), { bytes: 4096, files: 0 });
  assert.deepEqual(spaceFor([change, add], 4096), { bytes: 12_288, files: 1 });
});

test("what belongs to another user is refused with what hangs on it, and the rest stays in the plan", async () => {
  await using place = await scratch();
  const root = place.at("work");
  mkdirSync(`${root}/theirs`, { recursive: true });
  for (const name of ["theirs/old", "mode", "mine"]) writeFileSync(`${root}/${name}`, "");
  const ops = [
    { path: "mine", from: file(1), to: file(2) },
    { path: "mode", from: file(1), to: file(1, 0o755) },
    { path: "theirs", from: folder(), to: null },
    { path: "theirs/new", from: null, to: folder() },
    { path: "theirs/new/deep", from: null, to: file(1) },
    { path: "theirs/old", from: file(1), to: null },
  ];
  const plan: ChangePlan = { ops, merged: [], refused: [], left: [] };
  const uid = (process.geteuid?.() ?? 0) + 1;
  const others = { uid, mayWrite: (at: string | Buffer) => String(at) === root };
  const { ops: left, refused } = withoutForeign(plan, root, others);
  const why = "you may not write to the folder theirs, which belongs to another user";
  assert.deepEqual(
    [left.map(({ path }) => path), refused],
    [
      ["mine"],
      [
        { path: "mode", reason: "it belongs to another user" },
        { path: "theirs/new", reason: why },
        { path: "theirs/old", reason: why },
      ],
    ],
  );
  for (const own of [uid - 1, null])
    assert.equal(withoutForeign(plan, root, { ...others, uid: own }).ops.length, ops.length);
});
