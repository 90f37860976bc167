import assert from "node:assert/strict";
import test from "node:test";
import type { CandidateReport, EventBody } from "../../../src/core/events.ts";
import { AttemptLines, runSummary } from "../../../src/render/tty/run-summary.ts";
import { fakeClock, fakeTerminal } from "../../fakes/terminal.ts";
import { EVERY_EVENT } from "../../fixtures/events.ts";

function shown(columns: number | undefined, quiet = false) {
  const terminal = fakeTerminal(columns, columns !== undefined);
  const { clock, pass } = fakeClock();
  const lines = new AttemptLines(terminal.stream, { quiet, count: 3, clock });
  const take = (candidate: number, body: EventBody, agent?: string): void =>
    lines.take({ ...body, run: "r1", seq: 1, candidate, ...(agent === undefined ? {} : { agent }) });
  const start = (candidate: number): void => take(candidate, EVERY_EVENT["run.started"]);
  return { terminal, lines, take, start, pass };
}

const passed = { command: "npm test", exit_code: 0, rounds: 0 };
const done = { status: "done", exit_code: 0, reason: "", session: "s2", turns: 3, verified: passed } as const;
const red = {
  status: "failed",
  exit_code: 1,
  reason: "`npm test` still fails: sum.js\nline 4",
  session: "s1",
  turns: 1,
} as const;

test("each candidate that has ended gets a line with its result", () => {
  const { terminal, lines, start, pass } = shown(undefined);
  start(1);
  pass(2000);
  lines.ended(1, false, red);
  start(2);
  pass(63_000);
  lines.ended(2, true, done);
  lines.ended(3, false, {
    ...red,
    status: "interrupted",
    exit_code: 130,
    reason: "Another was first.",
    session: "s3",
  });
  lines.end();
  assert.deepEqual(terminal.seen(), [
    "3 candidates · qwen3:8b (ollama) · workspace-write · /code/shop",
    "✗ 1 of 3  s1  1 turn, 2.0 s  exit 1: `npm test` still fails: sum.js",
    "✓ 2 of 3  s2  3 turns, 1 min 3 s  passed npm test",
    "- 3 of 3  s3  1 turn, 0 ms  Another was first.",
    "",
  ]);
});

test("on a terminal the lines have colours, and the current activity is shown below them", () => {
  const { terminal, lines, take, start, pass } = shown(100);
  start(1);
  take(1, { type: "turn.started", turn: 2, record_count: 3 });
  take(1, { type: "call.proposed", call: "c1", tool: "bash", args: { command: "npm test" } });
  take(1, { type: "call.proposed", call: "c2", tool: "bash", args: { command: "of a subagent" } }, "c1");
  pass(12_000);
  assert.equal(terminal.seen().at(-1), "1 of 3, turn 2: bash npm test (12 s)");
  start(2);
  pass(1000);
  assert.equal(terminal.seen().at(-1), "1 of 3, turn 2 (13 s) · 2 of 3, turn 0 (1 s)");
  lines.ended(1, false, red);
  lines.ended(2, true, done);
  lines.end();
  assert.equal(terminal.seen().at(-1), "");
  assert.ok(terminal.written().includes("\u001B[31m✗\u001B[39m 1 of 3"));
  assert.ok(terminal.written().includes("\u001B[32m✓\u001B[39m 2 of 3"));
});

test("quiet shows nothing as candidates end; a hostile text is shown, never obeyed", () => {
  const quiet = shown(80, true);
  quiet.start(1);
  quiet.lines.ended(1, false, red);
  quiet.lines.end();
  assert.equal(quiet.terminal.written(), "");
  const hostile = shown(undefined);
  hostile.lines.ended(1, false, { ...red, reason: "\u001B[2Jgone" });
  assert.doesNotMatch(hostile.terminal.written(), /\u001B/);
});

const told = (session: string, reason: string): CandidateReport => ({
  session,
  status: "failed",
  exit_code: 1,
  reason,
  verified: { command: "npm test", exit_code: 1, rounds: 2 },
  applied: false,
});

test("where no candidate was applied, the summary lists each with the command to look at it", () => {
  const { stream } = fakeTerminal(80);
  const lines = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n");
  const event = {
    ...EVERY_EVENT["run.finished"],
    ...({ run: "r1", seq: 9, status: "failed", exit_code: 1, handoff: [], denials: [] } as const),
    changes: { added: [], modified: [], deleted: [], ignored: 0 },
    reason: "None of 2 candidates passed `npm test`; the folder is unchanged.",
    session: "s2",
    attempts: [told("s1", lines), told("s2", "still 1 failed")],
  };
  const text = runSummary(event, { ms: 1000, quiet: false, changes: "kept" }, stream);
  assert.match(text, /^tried {5}1 {2}s1 {2}failed \(exit 1, npm test: exit 1\)\n {13}line 8\n/m);
  assert.match(text, /line 19\n {10}2 {2}s2 {2}failed \(exit 1, npm test: exit 1\)\n {13}still 1 failed\n/);
  assert.match(text, /^next {6}harness diff s2\n {10}harness apply s2\n {10}harness sessions show s2\n/m);
  const quiet = runSummary(event, { ms: 1000, quiet: true, changes: "kept" }, stream);
  assert.match(quiet, /^tried .*^status .*the folder is\n +unchanged/ms);
});
