import assert from "node:assert/strict";
import test from "node:test";
import type { ToolResult } from "../../src/core/tool.ts";
import { taskTool } from "../../src/tools/task.ts";
import { fakeSubagents } from "../fakes/tool-context.ts";
import { called, prepared } from "../fixtures/call.ts";

test("a part of the task is delegated with ten turns, or as many as requested", async () => {
  const asked: unknown[] = [];
  const tool = taskTool(
    fakeSubagents((part) => (asked.push(part), Promise.resolve({ kind: "ok", text: "done" }))),
  );
  assert.deepEqual(await called(tool, { prompt: "look" }), { kind: "ok", text: "done" });
  await called(tool, { prompt: "look", max_turns: 40 });
  await called(tool, { prompt: "look", max_turns: "400", background: "false", task: "" });
  assert.deepEqual(asked, [
    { prompt: "look", maxTurns: 10 },
    { prompt: "look", maxTurns: 40 },
    { prompt: "look", maxTurns: 40 },
  ]);
  assert.equal(prepared(tool, { prompt: "look" }).concurrent, true);
});

test("a background task is started, checked, waited for and cancelled by its id", async () => {
  const tool = taskTool(fakeSubagents(() => assert.fail("it was waited for")));
  const table = [
    [{ prompt: "look", background: true }, "begun: look"],
    [{ prompt: "look", run_in_background: "true" }, "begun: look"],
    [{ task: "t1" }, '{"id":"t1","waitMs":0,"cancel":false}'],
    [{ task: "t1", prompt: "", timeout: "5" }, '{"id":"t1","waitMs":5000,"cancel":false}'],
    [{ task: "t1", timeout: 9999 }, '{"id":"t1","waitMs":600000,"cancel":false}'],
    [{ task: "t2", cancel: true }, '{"id":"t2","waitMs":0,"cancel":true}'],
  ] as const;
  for (const [args, text] of table) assert.equal((await called(tool, args)).text, text);
  for (const args of [{}, { prompt: "" }, { prompt: "x", task: "t1" }, { background: true }]) {
    const call = tool.prepare(args);
    assert.deepEqual(call.kind === "invalid" && call.issues, ['give one of "prompt" and "task"']);
  }
});

test("a result is at most 8,192 bytes, and keeps how it ended", async () => {
  const failed = { kind: "failed", cause: "program" } as const;
  const saying = (text: string) =>
    taskTool(fakeSubagents((): Promise<ToolResult> => Promise.resolve({ ...failed, text })));
  const whole = "é".repeat(4096);
  assert.deepEqual(await called(saying(whole), { prompt: "x" }), { ...failed, text: whole });
  const { kind, text } = await called(saying(`${whole}.`), { prompt: "x" });
  assert.equal(kind, "failed");
  assert.match(text, /^é+\n\[the rest was left out\]$/);
  assert.ok(Buffer.byteLength(text) <= 8192 && Buffer.byteLength(text) > 8000);
});
