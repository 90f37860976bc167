import assert from "node:assert/strict";
import test from "node:test";
import type { Spawn } from "../../src/tools/tool-context.ts";
import { taskTool } from "../../src/tools/task.ts";
import { called, prepared } from "../fixtures/call.ts";

test("a part of the task is handed over with ten turns, or as many as were asked for", async () => {
  const asked: unknown[] = [];
  const spawn: Spawn = (part) => (asked.push(part), Promise.resolve({ kind: "ok", text: "done" }));
  assert.deepEqual(await called(taskTool(spawn), { prompt: "look" }), { kind: "ok", text: "done" });
  await called(taskTool(spawn), { prompt: "look", max_turns: 40 });
  await called(taskTool(spawn), { prompt: "look", max_turns: "400" });
  assert.deepEqual(asked, [
    { prompt: "look", maxTurns: 10 },
    { prompt: "look", maxTurns: 40 },
    { prompt: "look", maxTurns: 40 },
  ]);
  assert.equal(prepared(taskTool(spawn), { prompt: "look" }).beside, true);
});

test("what comes back is at most 8,192 bytes, and keeps how it ended", async () => {
  const failed = { kind: "failed", cause: "program" } as const;
  const spawn =
    (text: string): Spawn =>
    () =>
      Promise.resolve({ ...failed, text });
  const whole = "é".repeat(4096);
  assert.deepEqual(await called(taskTool(spawn(whole)), { prompt: "x" }), { ...failed, text: whole });
  const { kind, text } = await called(taskTool(spawn(`${whole}.`)), { prompt: "x" });
  assert.equal(kind, "failed");
  assert.match(text, /^é+\n\[the rest was left out\]$/);
  assert.ok(Buffer.byteLength(text) <= 8192 && Buffer.byteLength(text) > 8000);
});
