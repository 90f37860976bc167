import assert from "node:assert/strict";
import test from "node:test";
import { sinceMoment } from "../../src/cli/commands/policy/replay.ts";
import { refusalOf } from "../fixtures/refusal.ts";

const NOW = Date.parse("2026-05-10T12:00:00Z");

test("a time is a duration ago or a date", () => {
  const rows = [
    ["90", "2026-05-10T11:58:30.000Z"],
    ["30m", "2026-05-10T11:30:00.000Z"],
    ["2h", "2026-05-10T10:00:00.000Z"],
    ["7d", "2026-05-03T12:00:00.000Z"],
    ["2026-05-01", "2026-05-01T00:00:00.000Z"],
    ["2026-05-01T10:00:00Z", "2026-05-01T10:00:00.000Z"],
    ["2026-05-01T10:00:00+02:00", "2026-05-01T08:00:00.000Z"],
  ] as const;
  assert.deepEqual(
    rows.map(([text]) => [text, new Date(sinceMoment(text, NOW)).toISOString()]),
    rows,
  );
});

test("anything else is an error", async () => {
  for (const text of ["", "soon", "-1d", "2026-13-01", "7 d", "1e9d"])
    assert.equal((await refusalOf(() => sinceMoment(text, NOW)))[0], 2, text);
});
