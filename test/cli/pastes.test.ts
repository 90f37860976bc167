import assert from "node:assert/strict";
import test from "node:test";
import { Pastes } from "../../src/cli/terminal-input.ts";

test("a short line is pasted as it is, with its controls shown", () => {
  assert.equal(new Pastes().folded("ls\u001B[31m"), "ls\u241B[31m");
});

test("lines are one token in the line that is edited, and themselves when it is sent", () => {
  const pastes = new Pastes();
  const first = pastes.folded("one\ntwo");
  const second = pastes.folded("three\nfour\n");
  assert.deepEqual([first, second], ["[pasted 2 lines #1]", "[pasted 3 lines #2]"]);
  assert.equal(pastes.unfolded(`why ${second} and ${first}?`), "why three\nfour\n and one\ntwo?");
});

test("the same text has the same token", () => {
  const pastes = new Pastes();
  assert.equal(pastes.folded("one\ntwo"), pastes.folded("one\ntwo"));
});

test("a token that stands for nothing is sent as it is typed", () => {
  assert.equal(new Pastes().unfolded("[pasted 2 lines #7]"), "[pasted 2 lines #7]");
});
