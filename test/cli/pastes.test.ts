import assert from "node:assert/strict";
import test from "node:test";
import { Pastes } from "../../src/cli/terminal-input.ts";

test("a short line is pasted unchanged, with control characters made visible", () => {
  assert.equal(new Pastes().folded("ls\u001B[31m"), "ls\u241B[31m");
});

test("several lines become one token in the edited line, and are restored when it is sent", () => {
  const pastes = new Pastes();
  const first = pastes.folded("one\ntwo");
  const second = pastes.folded("three\nfour\n");
  assert.deepEqual([first, second], ["[pasted 2 lines #1]", "[pasted 3 lines #2]"]);
  assert.equal(pastes.unfolded(`why ${second} and ${first}?`), "why three\nfour\n and one\ntwo?");
});

test("the same text gets the same token", () => {
  const pastes = new Pastes();
  assert.equal(pastes.folded("one\ntwo"), pastes.folded("one\ntwo"));
});

test("an unknown token is sent as typed", () => {
  assert.equal(new Pastes().unfolded("[pasted 2 lines #7]"), "[pasted 2 lines #7]");
});
