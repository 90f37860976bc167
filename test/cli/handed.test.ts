import assert from "node:assert/strict";
import test from "node:test";
import { HandoffNotes } from "../../src/cli/chat/chat-screen.ts";
import type { Handoff } from "../../src/core/run-record.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

test("each path that the host would execute is reported once in a chat", () => {
  const handed = new HandoffNotes();
  const { stream } = fakeTerminal(80);
  const hooks: Handoff = { path: ".husky/x", tier: "dangerous", reason: "git runs it" };
  const lock: Handoff = { path: "a\u001b[31m.lock", tier: "look", reason: "a lock file" };
  assert.equal(handed.lines([], stream), "");
  assert.match(
    handed.lines([hooks], stream),
    /^! check these before you run anything here:\n {2}! \.husky\/x: git runs it\n$/,
  );
  const second = handed.lines([hooks, lock], stream);
  assert.match(second, / {2}\? a␛\[31m\.lock: a lock file/);
  assert.doesNotMatch(second, /husky/);
  assert.equal(handed.lines([hooks, lock], stream), "");
});
