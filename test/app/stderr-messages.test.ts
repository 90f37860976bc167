import assert from "node:assert/strict";
import test from "node:test";
import { longNote, noteText } from "../../src/app/stderr-messages.ts";

test("a note stays one line, and the further lines of a long one are indented", () => {
  assert.equal(noteText("a\nerror: b"), "note: a\u240Aerror: b\n");
  assert.equal(longNote("a\nerror: b\u001B[2J"), "note: a\n  error: b\u241B[2J\n");
  assert.equal(longNote("a"), "note: a\n");
});
