import assert from "node:assert/strict";
import test from "node:test";
import { notesTool, noteTool } from "../../src/tools/notes.ts";
import { memoryNotes } from "../fakes/tool-context.ts";
import { called } from "../fixtures/call.ts";

test("notes are found again, newest first, in any letter case", async () => {
  const context = { notes: memoryNotes() };
  assert.equal((await called(notesTool(context), {})).text, "no notes yet");
  await called(noteTool(context), { title: "Build", body: "make all", tags: ["how"] });
  assert.equal((await called(noteTool(context), { title: "Tests", body: "npm test" })).text, "noted: Tests");
  assert.equal(
    (await called(notesTool(context), {})).text,
    "# Tests (2026-11-21)\nnpm test\n\n# Build (2026-11-21, how)\nmake all",
  );
  assert.equal(
    (await called(notesTool(context), { query: "HOW" })).text,
    "# Build (2026-11-21, how)\nmake all",
  );
  assert.equal((await called(notesTool(context), { query: "none" })).text, 'no note has "none"');
});

test("a title is one line, and not empty", async () => {
  const context = { notes: memoryNotes() };
  const noted = await called(noteTool(context), { title: " two\n lines ", body: "b" });
  assert.deepEqual([noted.kind, noted.text], ["ok", "noted: two lines"]);
  assert.equal((await called(noteTool(context), { title: " \n", body: "b" })).kind, "invalid");
  assert.equal((await called(notesTool(context), {})).text, "# two lines (2026-11-21)\nb");
});

test("a list of notes is bounded, and says if there are more", async () => {
  const context = { notes: memoryNotes() };
  for (let note = 0; note < 12; note += 1)
    await called(noteTool(context), { title: `n${note}`, body: "short" });
  const many = (await called(notesTool(context), {})).text;
  assert.deepEqual(
    [many.match(/^# n/gm)?.length, many.endsWith("[there are more: give a query]")],
    [10, true],
  );
  for (let note = 0; note < 3; note += 1)
    await called(noteTool(context), { title: "long", body: "😀".repeat(4500) });
  const long = (await called(notesTool(context), { query: "long" })).text;
  assert.ok(long.length < 8100 && long.isWellFormed());
  assert.match(long, /…\n\n\[there are more/);
});
