import assert from "node:assert/strict";
import test from "node:test";
import { HOOK_EVENTS, type HookEvent } from "../../src/core/added-programs.ts";
import { readAnswer } from "../../src/extensions/hook-programs.ts";

const said = (event: HookEvent, out: unknown, exitCode = 0, stderr = "") =>
  readAnswer(event, {
    kind: "ended",
    exitCode,
    stdout: Buffer.from(typeof out === "string" ? out : JSON.stringify(out)),
    stderr,
  });

test("of each event only what belongs to it is taken", () => {
  const rows: readonly (readonly [HookEvent, unknown, object])[] = [
    ["PreToolUse", { decision: "skip", reason: "no" }, { skip: "no" }],
    ["PreToolUse", { decision: "skip" }, { skip: "it gave no reason" }],
    ["PreToolUse", { args: { command: "ls" } }, { args: { command: "ls" } }],
    ["PostToolUse", { text: "less" }, { text: "less" }],
    ["PostToolUse", { text: "" }, { text: "" }],
    ["Stop", { continue: "run the tests" }, { continue: "run the tests" }],
    ["Stop", { text: "done" }, { text: "done" }],
    ["SessionStart", { text: "it is Monday" }, { text: "it is Monday" }],
    ["PreCompact", { text: "keep this" }, { text: "keep this" }],
    ["PreCompact", { state: { n: 1, gone: null } }, { state: { n: 1, gone: null } }],
  ];
  for (const [event, out, taken] of rows) assert.deepEqual(said(event, out), { kind: "said", ...taken });
  for (const event of HOOK_EVENTS)
    for (const silent of ["", " \n"]) assert.deepEqual(said(event, silent), { kind: "said" });
});

test("no hook can approve anything: what is no answer of its event is broken", () => {
  const wrong: readonly (readonly [HookEvent, unknown])[] = [
    ["PreToolUse", { decision: "allow" }],
    ["PreToolUse", { decision: "approve", args: {} }],
    ["PreToolUse", { decision: "skip", args: {} }],
    ["PreToolUse", { reason: "because" }],
    ["PreToolUse", { args: [] }],
    ["PreToolUse", { args: "ls" }],
    ["PreToolUse", { permission: "allow" }],
    ["PreToolUse", { text: "fine" }],
    ["PostToolUse", { kind: "ok" }],
    ["PostToolUse", { text: 1 }],
    ["Stop", { text: "a", continue: "b" }],
    ["SessionStart", { continue: "b" }],
    ["PreCompact", "garbage"],
    ["PreToolUse", "{}{}"],
    ["PreToolUse", "[]"],
    ["PreToolUse", "null"],
  ];
  for (const [event, out] of wrong)
    assert.equal(said(event, out).kind, "broken", `${event} ${JSON.stringify(out)}`);
});

test("2 is a veto where there is one, anything else but 0 is broken", () => {
  assert.deepEqual(said("PreToolUse", "", 2, "no force\n"), { kind: "said", skip: "no force" });
  assert.deepEqual(said("Stop", "", 2), { kind: "broken", why: "it exited with 2" });
  assert.deepEqual(said("PreToolUse", { args: {} }, 1, "oops\nmore"), {
    kind: "broken",
    why: "it exited with 1: oops",
  });
  assert.deepEqual(readAnswer("Stop", { kind: "broken", why: "it hung" }), {
    kind: "broken",
    why: "it hung",
  });
});

test("nothing that it says acts on a terminal, and what it adds is bounded", () => {
  const loud = said("SessionStart", { text: `\u001B[2Jhello${"x".repeat(99_999)}` });
  assert.ok(loud.kind === "said" && loud.text !== undefined);
  assert.ok(!loud.text.includes("\u001B") && loud.text.length <= 16 * 1024);
  const veto = said("PreToolUse", { decision: "skip", reason: `\u001B]0;x\u0007${"y".repeat(5000)}` });
  assert.ok(veto.kind === "said" && (veto.skip?.length ?? 0) <= 1000 && !veto.skip?.includes("\u001B"));
  const bytes = readAnswer("Stop", {
    kind: "ended",
    exitCode: 0,
    stdout: Buffer.from([0x7b, 0xff, 0x7d]),
    stderr: "",
  });
  assert.deepEqual(bytes, { kind: "broken", why: "its output is not UTF-8" });
});
