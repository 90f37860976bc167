import assert from "node:assert/strict";
import test from "node:test";
import { asResult, changesOf } from "../../../src/docker/box/files.ts";
import { type Change, FileRefused } from "../../../src/docker/runner/files.ts";

const refused = (code: string) => asResult(Promise.reject(new FileRefused(code, "/w/a", "write")));

test("a refusal is a value; only that of a wall is blocked", async () => {
  assert.deepEqual(await asResult(Promise.resolve(5)), { kind: "ok", value: 5 });
  for (const [code, kind] of [
    ["EROFS", "blocked"],
    ["EBUSY", "blocked"],
    ["EPERM", "blocked"],
    ["EACCES", "failed"],
    ["ENOENT", "failed"],
  ] as const)
    assert.deepEqual(await refused(code), {
      kind,
      cause: "filesystem",
      code,
      path: "/w/a",
      reason: `/w/a: write: ${code}`,
    });
});

test("whatever else is thrown is the loss of the box, and thrown on", async () => {
  const loss = new Error("lost");
  await assert.rejects(asResult(Promise.reject(loss)), loss);
});

const change = (what: Change["what"], kind: Change["kind"], path: string): Change => ({
  what,
  kind,
  path,
  mode: 0,
});

test("changes go by what happened to them; odd ones are named once more unless they are gone", () => {
  const list = [
    change("added", "file", "a"),
    change("added", "odd", "o"),
    change("modified", "link", "m"),
    change("deleted", "odd", "d"),
  ];
  assert.deepEqual(changesOf(list, true), {
    added: ["a", "o"],
    modified: ["m"],
    deleted: ["d"],
    odd: ["o"],
    incomplete: true,
  });
});
