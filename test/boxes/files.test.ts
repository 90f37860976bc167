import assert from "node:assert/strict";
import test from "node:test";
import { asResult, withoutFolders } from "../../src/boxes/box.ts";
import type { Change } from "../../src/core/ports.ts";
import { FileRefused } from "../../src/boxes/runner-files.ts";

const refused = (code: string) => asResult(Promise.reject(new FileRefused(code, "/w/a", "write")));

test("a refusal becomes a value, and only a refusal by a mount is blocked", async () => {
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

test("any other error is the loss of the box and is rethrown", async () => {
  const loss = new Error("lost");
  await assert.rejects(asResult(Promise.reject(loss)), loss);
});

test("folders are not changes of their own, everything else is, on every read", () => {
  const list: readonly Change[] = [
    { what: "added", kind: "folder", path: "f", mode: 0o755 },
    { what: "added", kind: "file", path: "f/a", mode: 0o644 },
    { what: "deleted", kind: "odd", path: "d", mode: 0 },
  ];
  const files = withoutFolders(list);
  for (let times = 0; times < 2; times += 1) assert.deepEqual([...files], list.slice(1));
});
