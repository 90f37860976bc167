import assert from "node:assert/strict";
import test from "node:test";
import { systemPrompt } from "../../src/agent/context/prompt.ts";
import { toolsFor } from "../../src/tools/index.ts";
import { bashTool } from "../../src/tools/bash.ts";
import { notesTool, noteTool } from "../../src/tools/notes.ts";
import { planTool } from "../../src/tools/plan.ts";
import { showFullTool } from "../../src/tools/show-full.ts";
import { taskTool } from "../../src/tools/task.ts";
import { fakeToolContext, fakeSubagents } from "../fakes/tool-context.ts";

test("the descriptions of these tools in every request stay small", () => {
  const context = fakeToolContext();
  const tools = [
    bashTool(context),
    showFullTool(context),
    noteTool(context),
    notesTool(context),
    planTool(() => undefined),
    taskTool(fakeSubagents(() => Promise.resolve({ kind: "ok", text: "" }))),
  ];
  const offers = tools.map(({ name, description, schema }) => ({ name, description, schema }));
  const bytes = Buffer.byteLength(JSON.stringify(offers));
  assert.ok(bytes <= 1900, `${bytes} bytes`);
});

test("the first request of a plain run, with the prompt and all built-in tools, is at most 1,600 tokens", () => {
  const context = fakeToolContext({
    plan: () => undefined,
    subagents: fakeSubagents(() => Promise.resolve({ kind: "ok", text: "" })),
    index: { search: () => Promise.reject(new Error("not asked")) },
  });
  const tools = toolsFor(context).map(({ name, description, schema }) => ({
    type: "function",
    function: { name, description, parameters: schema },
  }));
  assert.equal(tools.length, 14);
  const facts = { workspace: "/home/developer/project", domains: [], instructions: "" };
  const content = systemPrompt({ ...facts, mode: "workspace-write" });
  const bytes = Buffer.byteLength(JSON.stringify([{ role: "system", content }, tools]));
  assert.ok(bytes / 4 <= 1600, `${bytes / 4} tokens`);
});
