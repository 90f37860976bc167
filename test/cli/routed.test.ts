import assert from "node:assert/strict";
import test from "node:test";
import { routed } from "../../src/cli/command.ts";

test("no command means the chat, with the given options", () => {
  assert.deepEqual(routed([]), ["chat"]);
  assert.deepEqual(routed(["--mode", "read-only"]), ["chat", "--mode", "read-only"]);
});

test("help and version belong to the program, and a command is kept as it is", () => {
  for (const words of [["--help"], ["-h"], ["--version"], ["run", "x"], ["bogus"]])
    assert.deepEqual(routed(words), words);
});
