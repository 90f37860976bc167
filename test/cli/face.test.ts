import assert from "node:assert/strict";
import test from "node:test";
import { ChatView } from "../../src/cli/chat/chat-screen.ts";
import type { EventBody } from "../../src/core/events.ts";
import { fakeTerminal } from "../fakes/terminal.ts";
import { runFinished } from "../fixtures/events.ts";

const USAGE = { requests: 1, prompt_tokens: 1, completion_tokens: 1, cached_tokens: null, cost: null };

/** Both streams of a chat on one screen. */
function shown(...bodies: readonly EventBody[]): string {
  const { stream, written } = fakeTerminal(80);
  const face = new ChatView(stream, stream, false);
  for (const [at, body] of bodies.entries()) face.take({ ...body, run: "r", seq: at + 1 });
  face.end();
  return written().replaceAll(/\r?\u001B\[[0-9;?]*[A-Za-z]/g, "");
}

const said = (text: string): EventBody => ({ type: "text", text });
const finished = (text: string, calls: number): EventBody => ({
  type: "model.finished",
  text,
  calls,
  usage: USAGE,
  ms: 1,
});

test("a status line never interrupts a line of the answer", () => {
  const screen = shown(
    said("Hello "),
    { type: "box.ready", ms: 300 },
    said("there"),
    finished("Hello there", 0),
  );
  assert.equal(screen, "Hello there\nbox ready  300 ms\n");
});

test("an answer keeps its line end, and gets one if it has none", () => {
  assert.equal(shown(said("one\n"), finished("one\n", 0)), "one\n");
  assert.equal(shown(said("\n\none"), finished("\n\none", 0)), "one\n");
});

test("text before a call is shown above the call's line", () => {
  const screen = shown(
    said("I look."),
    finished("I look.", 1),
    { type: "call.proposed", call: "c1", tool: "bash", args: { command: "ls" } },
    {
      type: "call.decided",
      call: "c1",
      decision: "allow",
      contained: true,
      rules: [],
      runs: true,
      by: "policy",
    },
    { type: "call.ended", call: "c1", kind: "ok", cause: null, text: "a", full: null, ms: 5 },
  );
  assert.equal(screen, "I look.\n✓ bash ls  5 ms\n");
});

test("an answer replaced by a hook is shown in its new form", () => {
  const screen = shown(
    said("It is AKIA1."),
    finished("It is AKIA1.", 0),
    { type: "hook", event: "Stop", hook: "mask", owner: "user", did: "replaced", ms: 1 },
    runFinished({ reason: "why", answer: "It is [masked]." }),
  );
  assert.match(screen, /^It is AKIA1\.\n[^\n]*mask[^\n]*replaced[^\n]*\nIt is \[masked\]\.\n$/);
});

test("a subagent's text is not shown as the answer", () => {
  const { stream, written } = fakeTerminal(80);
  const face = new ChatView(stream, stream, false);
  face.take({ ...said("secret thoughts"), run: "r", seq: 1, agent: "a1" });
  face.end();
  assert.doesNotMatch(written(), /secret/);
});

test("a background task that works or asks does not split the answer", () => {
  const { stream, written } = fakeTerminal(80);
  const face = new ChatView(stream, stream, false);
  const child = { run: "r", seq: 2, agent: "a1" } as const;
  face.take({ ...said("Hello "), run: "r", seq: 1 });
  face.take({ type: "task", task: "t1", status: "begun", text: "look", ...child });
  face.take({ type: "turn.started", turn: 1, record_count: 1, tokens: 1, ...child });
  face.take({ ...finished("", 0), ...child });
  face.take({ type: "task", task: "t1", status: "done", text: "", ...child });
  face.take({ ...said("there"), run: "r", seq: 3 });
  const resume = face.pause();
  stream.write("may it run? ");
  face.take({ ...said(", you."), run: "r", seq: 4 });
  face.take({ ...finished("", 0), run: "r", seq: 5 });
  face.take({ ...said("Next."), run: "r", seq: 6 });
  stream.write("y\n");
  resume();
  face.end();
  const screen = written().replaceAll(/\r?\u001B\[[0-9;?]*[A-Za-z]/g, "");
  assert.equal(screen, "Hello there\n▸ t1 look\n    ✓ t1 done\nmay it run? y\n, you.\nNext.\n");
});

test("a closed terminal is not written to", () => {
  const { stream, written } = fakeTerminal(80);
  const face = new ChatView(stream, stream, false);
  face.close();
  face.take({ ...said("late"), run: "r", seq: 1 });
  face.end();
  assert.equal(written(), "");
});
