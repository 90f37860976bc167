import assert from "node:assert/strict";
import { test } from "node:test";
import { diskTroubleOf, sqliteCodeOf } from "../../src/core/errors.ts";

const sqlite = (errcode: unknown): Error =>
  Object.assign(new Error("x"), { code: "ERR_SQLITE_ERROR", errcode });

test("errors of SQLite and the system are classified by what can be done about them", () => {
  assert.deepEqual(
    [5, 6, 8, 10, 11, 13, 14, 26, 19].map((code) => diskTroubleOf(sqlite(code))),
    ["busy", "busy", "read-only", "unreachable", "damaged", "full", "unreachable", "damaged", "other"],
  );
  assert.deepEqual(
    ["ENOSPC", "EROFS", "EACCES", "EISDIR", "ENOENT", "EPIPE"].map((code) =>
      diskTroubleOf(Object.assign(new Error("x"), { code })),
    ),
    ["full", "read-only", "read-only", "taken", "unreachable", "other"],
  );
  assert.deepEqual([undefined, "text", new Error("x")].map(diskTroubleOf), ["other", "other", "other"]);
});

test("an extended code contains its primary code, and other errors have none", () => {
  assert.equal(sqliteCodeOf(sqlite(266)), 10);
  assert.equal(sqliteCodeOf(sqlite("14")), 0);
  assert.equal(sqliteCodeOf(new Error("x")), undefined);
});
