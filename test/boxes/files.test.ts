import assert from "node:assert/strict";
import test from "node:test";
import { asResult, withoutFolders } from "../../src/boxes/box.ts";
import type { Change } from "../../src/core/ports.ts";
import { FileRefused } from "../../src/boxes/runner-files.ts";

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

test("a folder is no change of its own, and what is not a folder is, read out again each time", () => {
  const list: readonly Change[] = [
    { what: "added", kind: "folder", path: "f", mode: 0o755 },
    { what: "added", kind: "file", path: "f/a", mode: 0o644 },
    { what: "deleted", kind: "odd", path: "d", mode: 0 },
  ];
  const files = withoutFolders(list);
  for (let times = 0; times < 2; times += 1) assert.deepEqual([...files], list.slice(1));
});
