import assert from "node:assert/strict";
import test from "node:test";
import { bashTool } from "../../src/tools/bash.ts";
import { noteTool } from "../../src/tools/note.ts";
import { notesTool } from "../../src/tools/notes.ts";
import { showFullTool } from "../../src/tools/show-full.ts";
import { taskTool } from "../../src/tools/task.ts";
import { fakeDesk } from "../fakes/desk.ts";

test("what a model reads of these tools with every request stays small", () => {
  const desk = fakeDesk();
  const tools = [
    bashTool(desk),
    showFullTool(desk),
    noteTool(desk),
    notesTool(desk),
    taskTool(() => Promise.resolve({ kind: "ok", text: "" })),
  ];
  const offers = tools.map(({ name, description, schema }) => ({ name, description, schema }));
  const bytes = Buffer.byteLength(JSON.stringify(offers));
  assert.ok(bytes <= 1700, `${bytes} bytes`);
});
