import assert from "node:assert/strict";
import test from "node:test";
import { Box, render, Text } from "ink";
import { createElement } from "react";
import type { AgentEvent } from "../../../src/core/events.ts";
import { blockRows, plainRows } from "../../../src/render/tui/block-rows.ts";
import { Canvas } from "../../../src/render/tui/canvas.ts";
import { frameOf } from "../../../src/render/tui/chat-frame.ts";
import { afterEvent, NEW_CHAT, withBlock } from "../../../src/render/tui/chat-state.ts";
import { newEditor } from "../../../src/render/tui/line-editor.ts";
import { fakeTerminal } from "../../fakes/terminal.ts";

// own process: it starts many programs, and each start costs by the memory of the process

/** Sequences that terminals obey, and characters that reverse a line. */
const HOSTILE = [
  "\u001B]52;c;ZXZpbA==\u0007",
  "\u001B]0;title\u001B\\",
  "\u001B]8;;https://evil.test\u001B\\link\u001B]8;;\u001B\\",
  "\u001B[2J\u001B[3J\u001B[H",
  "\u001B[?1049h\u001B[?1000h\u001B[?2004l",
  "\u001B[6n\u001B[c",
  "\u001BP+q544e\u001B\\",
  "\u009D52;c;ZXZpbA==\u009C",
  "\u202Eexe.txt\u2066\u200B",
  "\u001Bc\u0007\b\u000E",
  "\u001B[38;2;1;2;3mcolour\u001B[0m",
].join(" ");

/** Everything in the output except plain text and the sequences that Ink itself needs. */
function rest(written: string): string {
  return written.replaceAll(
    /\r|\n|\u001B\[(?:(?:\d{1,3}(?:;\d{1,3})*)?m|\d*(?:;\d*)?[ABCDEFGH]|[0-2]?[JK]|\?(?:25|2026)[hl])/g,
    "",
  );
}

const CONTROL = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u;

test("no text of a model, a tool or a person acts on the terminal", async () => {
  const { stream, written } = fakeTerminal(80, true);
  const call = { run: "r", seq: 0, call: "c1" };
  const all: readonly AgentEvent[] = [
    { run: "r", seq: 0, type: "text", text: `${HOSTILE}\n\n${HOSTILE}` },
    { ...call, type: "call.proposed", tool: HOSTILE, args: { command: `echo ${HOSTILE}` } },
    {
      ...call,
      type: "call.decided",
      decision: "ask",
      contained: true,
      rules: [{ id: HOSTILE, reason: HOSTILE, span: [0, 1] }],
      runs: true,
      by: "person",
    },
    { run: "r", seq: 0, type: "notice", text: HOSTILE },
    {
      ...call,
      type: "call.ended",
      kind: "failed",
      cause: "program",
      text: `${HOSTILE}\n`.repeat(20),
      full: null,
      ms: 1,
    },
  ];
  let state = all.reduce(afterEvent, withBlock(NEW_CHAT, { kind: "said", text: HOSTILE }));
  const [ended] = state.outputs;
  assert.ok(ended !== undefined);
  state = withBlock(withBlock(state, { kind: "whole", call: ended }), { kind: "lines", text: HOSTILE });
  const above = state.finished.flatMap((block) => blockRows(block, stream, plainRows));
  const canvas = new Canvas(stream);
  for (const queue of [[HOSTILE], [HOSTILE, HOSTILE]]) {
    const view = {
      state: afterEvent(state, { run: "r", seq: 1, type: "text", text: HOSTILE }),
      status: { text: HOSTILE, alarming: false },
      busy: true,
      ticks: 0,
      queue,
      held: true,
      editor: newEditor(78),
      asking: undefined,
      answerable: false,
      hints: [HOSTILE],
      foot: { model: HOSTILE, mode: "read-only", window: undefined, hasBox: false },
    };
    canvas.draw(above, frameOf(view, stream, plainRows));
    await canvas.written();
  }
  canvas.close();
  assert.match(written(), /\u241B\]52;c;ZXZpbA==/, "the text is shown");
  assert.doesNotMatch(rest(written()), CONTROL);
  assert.equal(written().includes("\u001B[38;2;1;2;3m"), false, "hostile text sets no colour either");
});

test("hostile text passed directly to Ink is stopped by the output stream", async () => {
  const { stream, written } = fakeTerminal(200, true);
  const frames = stream.frames();
  const instance = render(
    createElement(Box, { flexDirection: "column" }, createElement(Text, null, `${HOSTILE} end`)),
    { stdout: frames, stderr: frames, interactive: true, patchConsole: false },
  );
  await instance.waitUntilRenderFlush();
  frames.write(HOSTILE);
  instance.unmount();
  assert.match(written(), /end/);
  assert.doesNotMatch(rest(written()), CONTROL);
});

test("permanent rows are written once, and only the frame is removed at the end", async () => {
  const { stream, written } = fakeTerminal(40);
  const canvas = new Canvas(stream);
  canvas.draw(["first"], { rows: ["frame 1"], cursor: { x: 2, y: 0 } });
  await canvas.written();
  canvas.draw(["second"], { rows: ["frame 2"], cursor: undefined });
  await canvas.written();
  canvas.draw([], { rows: ["frame 3"], cursor: undefined });
  await canvas.written();
  canvas.close();
  for (const once of ["first", "second"]) assert.equal(written().split(once).length, 2, once);
  assert.ok(
    written().lastIndexOf("frame 3") < written().lastIndexOf("\u001B[?25h"),
    "the cursor is shown again",
  );
  assert.equal(canvas.isOpen, false);
});
