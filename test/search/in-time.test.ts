import assert from "node:assert/strict";
import { test } from "node:test";
import { inTime } from "../../src/search/index-folders.ts";

test("for who has given up no work is begun", async () => {
  const reason = new Error("given up");
  await assert.rejects(
    inTime(() => assert.fail("it was begun"), AbortSignal.abort(reason)),
    reason,
  );
});

test("work that heeds no signal is left behind when it is aborted", { timeout: 10_000 }, async () => {
  const stop = new AbortController();
  const reason = new Error("given up");
  const left = inTime(() => new Promise<never>(() => undefined), stop.signal);
  stop.abort(reason);
  await assert.rejects(left, reason);
});
