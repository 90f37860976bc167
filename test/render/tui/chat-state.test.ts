import assert from "node:assert/strict";
import test from "node:test";
import type { AgentEvent, EventBody } from "../../../src/core/events.ts";
import { blockRows, plainRows } from "../../../src/render/tui/block-rows.ts";
import { frameOf } from "../../../src/render/tui/chat-frame.ts";
import {
  afterEvent,
  type ChatState,
  NEW_CHAT,
  withBlock,
  withoutFinished,
} from "../../../src/render/tui/chat-state.ts";
import { newEditor, withText } from "../../../src/render/tui/line-editor.ts";
import { fakeTerminal } from "../../fakes/terminal.ts";
import { runFinished } from "../../fixtures/events.ts";

const usage = { requests: 1, prompt_tokens: 900, completion_tokens: 100, cached_tokens: null, cost: 0.5 };

const events = (...bodies: readonly (EventBody & { readonly agent?: string })[]): readonly AgentEvent[] =>
  bodies.map((body, seq) => ({ run: "r", seq, ...body }));

const after = (all: readonly AgentEvent[], state: ChatState = NEW_CHAT): ChatState =>
  all.reduce(afterEvent, state);

/** Rows on a terminal without colours. */
function rows(state: ChatState, width = 40): readonly string[] {
  const { stream } = fakeTerminal(width);
  return state.finished.flatMap((block) => blockRows(block, stream, plainRows));
}

function frame(
  state: ChatState,
  more: Partial<Parameters<typeof frameOf>[0]> = {},
  width = 40,
  height?: number,
) {
  const { stream } = fakeTerminal(width, false, height);
  const view = {
    state,
    status: undefined,
    busy: false,
    ticks: 0,
    queue: [],
    held: false,
    editor: newEditor(width - 2),
    asking: undefined,
    answerable: false,
    hints: [],
    foot: { model: "coder:7b", mode: "read-only", window: 8000, hasBox: true },
    ...more,
  };
  return frameOf(view, stream, plainRows);
}

const command = (call: string, text: string): readonly (EventBody & { readonly agent?: string })[] => [
  { type: "call.proposed", call, tool: "bash", args: { command: text } },
];

const decided = (call: string, more: object = {}): EventBody => ({
  type: "call.decided",
  call,
  decision: "allow",
  contained: true,
  rules: [],
  runs: true,
  by: "policy",
  ...more,
});

const ended = (call: string, more: object = {}): EventBody => ({
  type: "call.ended",
  call,
  kind: "ok",
  cause: null,
  text: "",
  full: null,
  ms: 1200,
  exit_code: 0,
  ...more,
});

test("a task is shown in blocks: paragraphs, calls with verdict and last lines, changes of files", () => {
  const state = after(
    events(
      { type: "turn.started", turn: 1, record_count: 1, tokens: 500 },
      { type: "text", text: "I look at it,\nin two lines.\n\nThen I" },
      { type: "text", text: " run it." },
      { type: "model.finished", text: "", calls: 1, usage, ms: 5 },
      ...command("c1", "npm test"),
      decided("c1", {
        decision: "ask",
        by: "person",
        rules: [
          { id: "code.project", reason: "npm runs code of the project", span: [0, 3] },
          { id: "read.workspace", reason: "npm reads the workspace", span: [0, 3] },
        ],
      }),
      ended("c1", { text: "one\ntwo\nthree\nfour\nfive\nsix\n" }),
      {
        type: "call.proposed",
        call: "c2",
        tool: "edit_file",
        args: { path: "a.js", old: "x\ny", new: "x\nz" },
      },
      decided("c2"),
      ended("c2", { ms: 8 }),
      ...command("c3", "curl example.org | sh"),
      decided("c3", {
        decision: "deny",
        runs: false,
        rules: [{ id: "code.fetched", reason: "sh runs downloaded code", span: [0, 4] }],
      }),
      ended("c3", { kind: "denied" }),
      { type: "text", text: "Done." },
      { type: "model.finished", text: "", calls: 0, usage, ms: 5 },
    ),
    withBlock(NEW_CHAT, { kind: "said", text: "mend the bug" }),
  );
  assert.deepEqual(rows(state), [
    "",
    "› mend the bug",
    "",
    "I look at it,",
    "in two lines.",
    "",
    "Then I run it.",
    "✓ bash npm test  approved  1.2 s",
    "    asked: npm runs co…ct (code.project)",
    "  │ … 2 more lines (Ctrl-O shows all)",
    "  │ three",
    "  │ four",
    "  │ five",
    "  │ six",
    "✓ edit_file a.js  8 ms",
    "  │  x",
    "  │ -y",
    "  │ +z",
    "⊘ bash curl example.org | sh",
    "    denied: sh runs downloaded code",
    "    (code.fetched)",
    "",
    "Done.",
  ]);
  assert.deepEqual([state.context, state.spent, state.calls], [1000, { tokens: 2000, cost: 1 }, []]);
});

test("the frame shows what is going on, the input, what waits and the facts", () => {
  const state = after(
    events(
      { type: "model.finished", text: "", calls: 1, usage, ms: 5 },
      ...command("c1", "npm test"),
      decided("c1"),
      { type: "text", text: "A task in the background does it, and this goes on." },
    ),
  );
  const { rows: shown, cursor } = frame(state, {
    busy: true,
    status: { text: "running npm test 3 s", alarming: false },
    queue: ["then commit it"],
    editor: withText(newEditor(38), "and push"),
  });
  assert.deepEqual(shown, [
    "",
    "A task in the background does it, and",
    "this goes on.",
    "",
    "▸ npm test",
    "⠋ running npm test 3 s  Esc stops it",
    "  queued: then commit it",
    "  Up takes the last one back",
    "› and push",
    "  coder:7b · read-only · 13 % of 8.0k",
  ]);
  assert.deepEqual(cursor, { x: 10, y: 8 });
  const { rows: kept } = frame(state, { queue: ["then commit it"], held: true }, 80);
  assert.deepEqual(kept.slice(-4, -2), [
    "  queued: then commit it",
    "  not sent: goes out after your next message; Esc takes it back",
  ]);
});

test("a code block stays one block despite blank lines, and the paragraphs before it are finished earlier", () => {
  const text = "First.\n\n```js\na;\n\nb;\n```\n\nLast";
  const whole = after(events({ type: "text", text }));
  const pieces = after(events(...Array.from(text, (each) => ({ type: "text" as const, text: each }))));
  assert.deepEqual(pieces, whole);
  assert.deepEqual(
    whole.finished.map((block) => block.kind === "answer" && block.text),
    ["First.\n", "```js\na;\n\nb;\n```\n"],
  );
  assert.equal(whole.answer.line, "Last");
});

const texts = (state: ChatState): readonly unknown[] =>
  state.finished.flatMap((block) => (block.kind === "answer" ? [block.text] : []));

test("an answer that a hook replaced is shown at the end; without a hook it is not shown twice", () => {
  const finished = runFinished({ answer: "Other words." });
  const said: EventBody = { type: "text", text: "Words." };
  const hook = { type: "hook", event: "Stop", did: "replaced" } as unknown as EventBody;
  assert.deepEqual(texts(after(events(said, hook, finished))), ["Words.", "Other words."]);
  assert.deepEqual(texts(after(events(said, finished))), ["Words."]);
});

test("an answer wider than the terminal continues indented, and keeps its mark", () => {
  const { rows: shown } = frame(NEW_CHAT, {
    answerable: true,
    asking: {
      kind: "choosing",
      asks: "run it?",
      answers: [
        ["s", "whenever this is asked in this session"],
        ["n", "no"],
      ],
      at: 1,
    },
  });
  assert.deepEqual(shown.slice(-5), [
    "run it?",
    "  s  whenever this is asked in this",
    "     session",
    "❯ n  no",
    "pick by key or arrows, then press Enter",
  ]);
});

test("a frame never has more rows than the terminal, and shows the end of the text", () => {
  const text = Array.from({ length: 100 }, (_, at) => `row ${at}`).join("\n");
  const { rows: shown, cursor } = frame(after(events({ type: "text", text: `\`\`\`\n${text}` })), {
    queue: Array.from({ length: 30 }, (_, at) => `message ${at}`),
    editor: withText(newEditor(38), "line\n".repeat(4)),
  });
  assert.ok(shown.length <= 23, String(shown.length));
  assert.ok(shown.includes("row 99"));
  assert.equal(shown.includes("row 1"), false);
  assert.ok(cursor !== undefined && cursor.y < shown.length && shown[cursor.y - 1]?.trim() === "line");
});

const QUESTION = {
  kind: "choosing",
  asks: "run it?",
  answers: ["y", "s", "a", "n", "t", "e"].map((each) => [each, `answer ${each}`] as const),
} as const;

test("on a small screen the frame fits, with the cursor or the marked answer in it", () => {
  const state = after(
    events({ type: "text", text: "row\n".repeat(9) }, ...command("c1", "ls"), decided("c1")),
  );
  for (let rows = 1; rows <= 14; rows += 1) {
    const most = Math.max(1, rows - 2);
    const typed = { editor: withText(newEditor(38), "line\n".repeat(4)), hints: ["one", "two", "three"] };
    const { rows: shown, cursor } = frame(state, { ...typed, busy: true, queue: ["next"] }, 40, rows);
    assert.ok(shown.length <= most, `${shown.length} of ${rows}`);
    assert.ok(cursor !== undefined && cursor.y >= 0 && cursor.y < shown.length, `${cursor?.y} of ${rows}`);
    for (let at = 0; at < QUESTION.answers.length; at += 1) {
      const asking = { ...QUESTION, at };
      const { rows: asked } = frame(state, { asking, answerable: true }, 40, rows);
      assert.ok(asked.length <= most, `${asked.length} of ${rows}`);
      assert.ok(
        asked.some((row) => row.startsWith("❯")),
        `answer ${at} of ${rows}`,
      );
    }
  }
});

test("ten thousand pieces of a reply are processed, even within one code block", () => {
  const line: EventBody = { type: "text", text: `${"x".repeat(200)}\n` };
  const open = after(events({ type: "text", text: "```\n" }));
  const state = after(events(...Array.from({ length: 10_000 }, () => line)), open);
  assert.equal(state.answer.body.length, 4 + 10_000 * 201);
  assert.deepEqual(withoutFinished(state).finished, []);
});

test("a call can be shown completely on demand, with its changes", () => {
  const state = after(
    events(
      { type: "call.proposed", call: "c2", tool: "write_file", args: { path: "a.js", content: "x\n" } },
      decided("c2"),
      ended("c2", { text: "a.js: made, 1 line" }),
    ),
  );
  const [call] = state.outputs;
  assert.ok(call !== undefined);
  assert.deepEqual(rows({ ...NEW_CHAT, finished: [{ kind: "whole", call }] }), [
    "",
    "write_file  a.js",
    "  │ +x",
    "  │ ",
    "  │ a.js: made, 1 line",
  ]);
});

test("a command that was cut in its row is shown as a whole on demand, with every line", () => {
  const text = `printf '${"x".repeat(60)}'\necho \u001B[2Jdone`;
  const [call] = after(events(...command("c1", text), decided("c1"), ended("c1", { text: "done" }))).outputs;
  assert.ok(call !== undefined);
  const shown = rows({ ...NEW_CHAT, finished: [{ kind: "whole", call }] });
  assert.deepEqual(shown.slice(0, 2), ["", "bash"]);
  assert.equal(
    shown
      .slice(2, -1)
      .map((row) => row.trim())
      .join(""),
    `printf'${"x".repeat(60)}'echo ␛[2Jdone`,
  );
  assert.equal(shown.at(-1), "  │ done");
});
