import assert from "node:assert/strict";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { EventBody } from "../../src/core/events.ts";
import { type Diagnosed, failureOf, RunDiagnostics } from "../../src/telemetry/run-diagnostics.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";
import { callOf, finished, said, started } from "../fixtures/report.ts";

const SAID = "quokka";

function diagnosed(bodies: readonly EventBody[]): readonly Diagnosed[] {
  const run = new RunDiagnostics();
  return stamped(bodies).flatMap((event) => run.take(event) ?? []);
}

const TASK = `mend the ${SAID}\nthe tests of the ${SAID} fail`;

test("the log of a run keeps what happened, but no text that was said, passed or printed", () => {
  const entries = diagnosed([
    { ...started(TASK), workspace: SAID },
    { type: "turn.started", turn: 1, record_count: 1 },
    { type: "text", text: SAID },
    { type: "thinking", text: SAID },
    { type: "plan", steps: [{ text: SAID, status: "doing" }] },
    { type: "task", task: "t1", status: "begun", text: SAID },
    said(SAID),
    ...callOf({
      call: "c1",
      args: { command: SAID },
      decided: { rules: [{ id: "r", reason: SAID, span: [0, 1] }] },
      ended: { kind: "failed", cause: "program", text: SAID, full: SAID, reason: SAID, exit_code: 2 },
    }),
    { type: "call.missed", call: SAID, tool: SAID, kind: "unread", nearest: [SAID] },
    { type: "approval", call: "c1", tool: "bash", text: SAID, said: "once", by: SAID, from: "flag" },
    { ...EVERY_EVENT["check.started"], command: SAID },
    { ...EVERY_EVENT["check.ended"], command: SAID, text: SAID },
    { ...EVERY_EVENT.canary, path: SAID, command: SAID, by: [SAID] },
    // A server that repeats the request in its message.
    { type: "model.failed", kind: "server", reason: `cannot read: ${TASK}`, remedy: "" },
    { type: "notice", text: `The model is told: the tests of the ${SAID} fail` },
    finished({ answer: SAID }),
  ]);
  assert.doesNotMatch(JSON.stringify(entries), new RegExp(SAID));
  assert.deepEqual(
    entries.map(({ level, what }) => `${level} ${what}`),
    [
      "info run started",
      "debug turn",
      "debug plan",
      "info subagent",
      "info reply",
      "debug decided",
      "info call",
      "warn call missed",
      "info answered",
      "info check",
      "error canary touched",
      "error model failed",
      "warn notice",
      "info run finished",
    ],
  );
  assert.deepEqual(entries[6]?.fields, {
    tool: "bash",
    kind: "failed",
    cause: "program",
    exit_code: 2,
    ms: 240,
  });
  assert.equal(entries[11]?.fields["reason"], "cannot read: [what was asked]");
});

test("a value that a server did not count is null, and a long reason is cut", () => {
  const usage = {
    requests: 1,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    cost: null,
  };
  const [reply, waiting] = diagnosed([
    { ...said("x"), usage },
    { type: "model.waiting", reason: "r".repeat(5000), ms: 1, attempt: 2 },
  ]);
  assert.deepEqual([reply?.fields["in"], reply?.fields["first_token_ms"]], [null, null]);
  assert.equal(String(waiting?.fields["reason"]).length, 301);
});

test("a failure has its name, causes and location, and at most a line of its message", () => {
  const inner = new TypeError("not a function");
  const thrown = new HarnessError(
    EXIT.sandbox,
    "the engine is gone",
    "./start.sh",
    new Error("lost", { cause: inner }),
  );
  const { level, fields } = failureOf(thrown);
  assert.deepEqual(
    [level, fields["name"], fields["message"], fields["exit"], fields["remedy"], fields["causes"]],
    [
      "error",
      "HarnessError",
      "the engine is gone",
      6,
      "./start.sh",
      ["Error: lost", "TypeError: not a function"],
    ],
  );
  assert.match(String(fields["stack"]), /^\s+at .*run-diagnostics\.test\.ts/);
  assert.doesNotMatch(String(fields["stack"]), /the engine is gone/);
  const suppressed = failureOf(new SuppressedError(new Error("second"), new Error("first"), "both"));
  assert.deepEqual(suppressed.fields["causes"], ["Error: first"]);
  assert.deepEqual(
    [failureOf("text").fields["message"], failureOf(null).fields["message"]],
    ["text", "null"],
  );
});
