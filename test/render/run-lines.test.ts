import assert from "node:assert/strict";
import test from "node:test";
import type { AgentEvent, EventBody } from "../../src/core/events.ts";
import { RunLines } from "../../src/render/tty/run-lines.ts";
import { type FakeTerminal, fakeClock, fakeTerminal } from "../fakes/terminal.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";

type Of<T extends EventBody["type"]> = Extract<EventBody, { readonly type: T }>;

interface Call {
  readonly call?: string;
  readonly tool?: string;
  readonly args?: Readonly<Record<string, unknown>>;
  readonly decided?: Partial<Of<"call.decided">>;
  readonly ended?: Partial<Of<"call.ended">>;
}

const ALLOWED = { decision: "allow", contained: true, rules: [], runs: true, by: "policy" } as const;
const WELL = { kind: "ok", cause: null, text: "", full: null, ms: 3 } as const;

function callOf({ call = "c1", tool = "bash", args = {}, decided, ended }: Call): readonly EventBody[] {
  return [
    { type: "call.proposed", call, tool, args },
    { ...ALLOWED, type: "call.decided", call, ...decided },
    { ...WELL, type: "call.ended", call, ...ended },
  ];
}

const refusal = (reason: string): Partial<Of<"call.decided">> => ({
  decision: "deny",
  runs: false,
  rules: [{ id: "path.system", reason, span: [0, 8] }],
});

function play(events: readonly AgentEvent[], terminal: FakeTerminal, quiet = false): void {
  const lines = new RunLines(terminal.stream, { quiet, answerIsSeen: false, clock: fakeClock().clock });
  for (const event of events) lines.take(event);
  lines.end();
}

function told(bodies: readonly EventBody[], columns?: number): string {
  const terminal = fakeTerminal(columns);
  play(stamped(bodies), terminal);
  return terminal.seen().join("\n");
}

const ENDINGS: readonly (readonly [string, Call, string])[] = [
  ["a successful call", { tool: "read_file", args: { path: "src/a.ts" } }, "✓ read_file src/a.ts  3 ms\n"],
  [
    "a command that fails",
    {
      args: { command: "npm test" },
      decided: { decision: "ask", by: "contained" },
      ended: {
        kind: "failed",
        cause: "program",
        text: "[exit 0, 1 ms]\n1 failed\n[exit 2, 1.2 s: what it says itself]",
        exit_code: 1,
        ms: 1200,
      },
    },
    "✗ bash npm test  exit 1  contained  1.2 s\n",
  ],
  [
    "a call that a person approved",
    { args: { command: "make" }, decided: { decision: "ask", by: "person" } },
    "✓ bash make  approved  3 ms\n",
  ],
  [
    "a tool that fails",
    {
      tool: "edit_file",
      args: { path: "a.ts" },
      ended: { kind: "failed", cause: "filesystem", text: "\nno such file\nmore" },
    },
    "✗ edit_file a.ts  failed: no such file  3 ms\n",
  ],
  [
    "a tool that fails for a reason",
    {
      tool: "edit_file",
      args: { path: "a.ts" },
      ended: { kind: "failed", cause: "filesystem", text: "a.ts\nno such file", reason: "no such file" },
    },
    "✗ edit_file a.ts  failed: no such file  3 ms\n",
  ],
  [
    "a command that does not exist",
    {
      args: { command: "mak" },
      ended: { kind: "failed", cause: "program", text: "", exit_code: 127, reason: "command not found" },
    },
    "✗ bash mak  exit 127: command not found  3 ms\n",
  ],
  [
    "a command of a record without reasons",
    { args: { command: "make" }, ended: { kind: "failed", cause: "network", text: "a", exit_code: 6 } },
    "✗ bash make  network  3 ms\n",
  ],
  [
    "a command that ran out of memory",
    {
      args: { command: "make" },
      ended: {
        kind: "failed",
        cause: "memory",
        text: "a\n[exit 137, 1.2 s, memory: something else]\n[advice]",
        exit_code: 137,
        reason: "killed at 256 MiB",
      },
    },
    "✗ bash make  out of memory: killed at 256 MiB  3 ms\n",
  ],
  [
    "a denied call",
    {
      args: { command: "rm -rf /" },
      decided: refusal("deletes the system"),
      ended: { kind: "denied", cause: "policy" },
    },
    "⊘ bash rm -rf /  denied: deletes the system (path.system)\n",
  ],
  [
    "a call that nobody was there to allow",
    {
      args: { command: "make" },
      decided: { ...refusal("who knows"), decision: "ask", by: "nobody" },
      ended: { kind: "denied", cause: "policy" },
    },
    "⊘ bash make  nobody to ask: who knows (path.system)\n",
  ],
  [
    "a call that a person declined",
    {
      args: { command: "make" },
      decided: { decision: "ask", runs: false, by: "person" },
      ended: { kind: "denied", cause: "user" },
    },
    "⊘ bash make  declined\n",
  ],
  [
    "a call with a wrong input",
    {
      tool: "edit_file",
      args: { path: "a.ts" },
      ended: { kind: "invalid", text: "edits: at least one is needed" },
    },
    "✗ edit_file a.ts  invalid: edits: at least one is needed\n",
  ],
  [
    "a call that the tool refuses",
    {
      tool: "write_file",
      args: { path: ".git/config" },
      ended: { kind: "blocked", cause: "filesystem", text: ".git is protected" },
    },
    "⊘ write_file .git/config  blocked: .git is protected  3 ms\n",
  ],
  [
    "a command that took too long",
    { args: { command: "sleep 9" }, ended: { kind: "timed_out", cause: "timeout", ms: 120_000 } },
    "✗ bash sleep 9  timed out  2 min 0 s\n",
  ],
  [
    "a patch by the files that it is about",
    { tool: "apply_patch", args: { patch: "--- a/x.ts\n+++ b/x.ts\n@@\n*** Add File: y z.ts\n" } },
    "✓ apply_patch x.ts, y z.ts  3 ms\n",
  ],
];

for (const [what, call, line] of ENDINGS)
  test(`a line shows ${what}`, () => {
    assert.equal(told(callOf(call)), line);
  });

test("a long command is cut in the middle, and a long reason gets its own lines", () => {
  const command = "cd /code/shop && npm run build -- --mode production && npm test";
  assert.equal(told(callOf({ args: { command } }), 40), "✓ bash cd /code/shop…n && npm test  3 ms\n");
  const decided = refusal("deletes what lies outside of the workspace");
  assert.equal(
    told(callOf({ args: { command: "rm -rf /" }, decided, ended: { kind: "denied" } }), 40),
    "⊘ bash rm -rf /\n    denied: deletes what lies outside of\n    the workspace (path.system)\n",
  );
});

test("the model's text beside its calls keeps its lines and indentation, and is bounded", () => {
  const text = ["I do three things:", "  - one", "  - two that is longer than the line", ""].join("\n");
  assert.equal(
    told([{ ...EVERY_EVENT["model.finished"], text }], 24),
    "I do three things:\n  - one\n  - two that is longer\n  than the line\n",
  );
  const long = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
  assert.match(told([{ ...EVERY_EVENT["model.finished"], text: long }]), /^line 7\n… 12 more lines\n$/m);
  assert.equal(told([{ ...EVERY_EVENT["model.finished"], calls: 0, text }]), "");
});

test("control characters from outside are shown, never sent", () => {
  const terminal = fakeTerminal();
  const evil = "\u001B]52;c;x\u0007\r\u202E\n✓ bash";
  const bodies: readonly EventBody[] = [
    { ...EVERY_EVENT["run.started"], model: evil, workspace: evil, session: evil, provider: evil },
    ...callOf({ tool: evil, args: { command: evil }, ended: { kind: "failed", cause: "disk", text: evil } }),
    ...callOf({ args: { command: evil }, decided: refusal(evil), ended: { kind: "denied" } }),
    { ...EVERY_EVENT["model.finished"], text: evil },
    { ...EVERY_EVENT["model.waiting"], reason: evil },
    { ...EVERY_EVENT["model.failed"], reason: evil, remedy: evil },
    { ...EVERY_EVENT.notice, text: evil },
    { ...EVERY_EVENT.compaction, status: "failed", reason: evil },
  ];
  play(stamped(bodies), terminal);
  assert.match(terminal.written(), /␛\]52;c;x␇/);
  assert.doesNotMatch(terminal.written(), /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
});

test("a new attempt without a wait is made at once", () => {
  const waiting = { ...EVERY_EVENT["model.waiting"], ms: 0 };
  assert.match(told([waiting]), /; retrying at once \(attempt 2\)/);
});

test("other events have lines where a person should notice them", () => {
  assert.equal(
    told(Object.values(EVERY_EVENT)),
    [
      "qwen3:8b (ollama) · workspace-write · /code/shop · s1",
      "plan: 1 done, 1 doing, 1 to come, 1 dropped",
      "  ✓ find the sum",
      "  ▸ mend it",
      "  · test it",
      "  ✗ rewrite it",
      "box ready  311 ms",
      "~ rate limited; retrying in 2.0 s (attempt 2)",
      "I look.",
      "✗ model: nobody answers at http://localhost:11434",
      "    next: ollama serve",
      "bash wants to run  (workspace-write)",
      "  │ curl https://example.com/x",
      "  │ ^^^^",
      "· it reaches the network (network.reach): curl",
      "It is not contained: it may read a secret, reach the network, or change something outside the workspace.",
      "user said yes (once) to: curl https://example.com/x",
      "✗ read_file sum.js  exit 1  contained  1.2 s",
      "✗ check: npm test  exit 1  1.2 s",
      "  1 test failed",
      "  [exit 1, 1.2 s]",
      "! not run: there is no tool fix_file; nearest: edit_file, read_file",
      "! a canary was touched: an SSH key (/home/box/.ssh/id_ed25519) by bash -c make > cat /home/box/.ssh/id_ed25519; the run",
      "ends",
      "! 5 turns are left",
      "≡ older turns summarised: about 12,000 -> 4,000 tokens",
      "the unfinished turn is left out",
      "",
    ].join("\n"),
  );
});

const miss = (kind: "not_alone" | "unread", tool: string) =>
  told([{ type: "call.missed", call: "c", tool, kind, nearest: [] }]);

test("a call that was not run is reported in a line", () => {
  assert.equal(
    miss("not_alone", "read_file"),
    "! not run: read_file is one of several calls within a text\n",
  );
  assert.equal(
    miss("unread", "edit_file"),
    "! edit_file on a file that was not read: the file was shown instead\n",
  );
});

test("quiet shows only errors", () => {
  const terminal = fakeTerminal(80);
  play(stamped(Object.values(EVERY_EVENT)), terminal, true);
  assert.equal(
    terminal.written(),
    "✗ model: nobody answers at http://localhost:11434\n    next: ollama serve\n",
  );
});

test("colours are sent only to a terminal that supports them", () => {
  const coloured = fakeTerminal(80, true);
  play(stamped(callOf({ tool: "glob", args: { pattern: "*" } })), coloured);
  assert.equal(
    coloured.written(),
    "\u001B[32m✓\u001B[39m \u001B[1mglob\u001B[22m *\u001B[2m  3 ms\u001B[22m\n",
  );
  const plain = fakeTerminal(80);
  play(stamped(callOf({ tool: "glob", args: { pattern: "*" } })), plain);
  assert.equal(plain.written(), "✓ glob *  3 ms\n");
});

test("calls of a subagent are shown below the call that it works for, even when two work in parallel", () => {
  const task = (call: string, prompt: string): readonly EventBody[] =>
    callOf({ call, tool: "task", args: { prompt } });
  const inside = callOf({ tool: "grep", args: { pattern: "x" } });
  const [one, two] = [task("a", "find x"), task("b", "find y")];
  const events = [
    ...stamped([...one.slice(0, 2), ...two.slice(0, 2)]),
    ...stamped(inside, "a"),
    ...stamped(inside, "b"),
    ...stamped(inside, "a"),
    ...stamped([...one.slice(2), ...two.slice(2)]),
  ];
  const terminal = fakeTerminal();
  play(events, terminal);
  assert.equal(
    terminal.written(),
    [
      "▸ task find x",
      "    ✓ grep x  3 ms",
      "▸ task find y",
      "    ✓ grep x  3 ms",
      "▸ task find x",
      "    ✓ grep x  3 ms",
      "✓ task find x  3 ms",
      "✓ task find y  3 ms",
      "",
    ].join("\n"),
  );
});

test("a plan is shown completely, then only its changes; the call that made it adds nothing", () => {
  const steps = [
    { text: "find it", status: "doing" },
    { text: "mend it", status: "pending" },
  ] as const;
  const next = [
    { text: "find it", status: "done" },
    { text: "mend it", status: "doing" },
  ] as const;
  const other = [{ text: "\u001b[31mrewrite it", status: "dropped" }] as const;
  const call = callOf({ tool: "plan", args: { steps: ["[>] find it"] } });
  const shown = told([
    ...call,
    { type: "plan", steps },
    { type: "plan", steps },
    { type: "plan", steps: next },
    { type: "plan", steps: other },
    { type: "plan", steps: [] },
  ]);
  assert.equal(
    shown,
    `plan: 1 doing, 1 to come
  ▸ find it
  · mend it
plan: 1 done, 1 doing
  ✓ find it
  ▸ mend it
plan: 1 dropped
  ✗ ␛[31mrewrite it
plan: no steps
`,
  );
});

const taskEvent = (status: "begun" | "done" | "failed", text: string, task?: string): EventBody => ({
  type: "task",
  ...(task === undefined ? {} : { task }),
  status,
  text,
});

test("a background task has a heading with its prompt, and a line for its end", () => {
  const inside = callOf({ tool: "grep", args: { pattern: "x" } });
  const events = [
    ...stamped([taskEvent("begun", "find x", "t1")], "a1"),
    ...stamped([taskEvent("begun", "find y")], "a2"),
    ...stamped(inside, "a1"),
    ...stamped(inside, "a2"),
    ...stamped([taskEvent("done", "")], "a2"),
    ...stamped([taskEvent("failed", "it did not finish", "t1")], "a1"),
  ];
  const terminal = fakeTerminal();
  play(events, terminal);
  assert.equal(
    terminal.written(),
    `▸ t1 find x
    ✓ grep x  3 ms
▸ task find y
    ✓ grep x  3 ms
▸ t1 find x
    ✗ t1 failed: it did not finish
`,
  );
});

test("a command that a person edited is listed as it ran", () => {
  const [proposed, ...rest] = callOf({ args: { command: "make all" } });
  const edited = { type: "call.edited", call: "c1", args: { command: "make check" } } as const;
  assert.equal(told(proposed === undefined ? [] : [proposed, edited, ...rest]), "✓ bash make check  3 ms\n");
});
