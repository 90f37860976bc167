import assert from "node:assert/strict";
import test from "node:test";
import { routed } from "../../src/cli/command.ts";

test("no command means the chat, with the options there are", () => {
  assert.deepEqual(routed([]), ["chat"]);
  assert.deepEqual(routed(["--mode", "read-only"]), ["chat", "--mode", "read-only"]);
});

test("help and version are the program's, and a command is itself", () => {
  for (const words of [["--help"], ["-h"], ["--version"], ["run", "x"], ["bogus"]])
    assert.deepEqual(routed(words), words);
});
