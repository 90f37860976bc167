import assert from "node:assert/strict";
import test from "node:test";
import { offersOf } from "../../src/agent/simple-tools.ts";
import { isFields } from "../../src/core/raw-data.ts";
import { toolsFor } from "../../src/tools/index.ts";
import { fakeSubagents, fakeToolContext } from "../fakes/tool-context.ts";

const TOOLS = toolsFor(
  fakeToolContext({
    plan: () => undefined,
    subagents: fakeSubagents(() => Promise.resolve({ kind: "ok", text: "" })),
    index: { search: () => Promise.reject(new Error("not asked")) },
  }),
);
const argumentsOf = (schema: Readonly<Record<string, unknown>>): readonly string[] =>
  isFields(schema["properties"]) ? Object.keys(schema["properties"]) : [];

const bytes = (of: unknown): number => Buffer.byteLength(JSON.stringify(of));

test("a small model is offered fewer tools, each with only the arguments that matter, all required", () => {
  const offers = offersOf(TOOLS, true);
  assert.deepEqual(
    offers.map(({ name }) => name),
    [
      "read_file",
      "list_dir",
      "glob",
      "grep",
      "edit_file",
      "write_file",
      "bash",
      "show_full",
      "semantic_search",
    ],
  );
  const edit = offers.find(({ name }) => name === "edit_file") ?? assert.fail();
  assert.deepEqual(
    [argumentsOf(edit.schema), edit.schema["required"]],
    [
      ["path", "old", "new"],
      ["path", "old", "new"],
    ],
  );
  for (const { name, description, schema } of offers) {
    const left = argumentsOf(TOOLS.find((tool) => tool.name === name)?.schema ?? {}).filter(
      (argument) => argument !== "path" && !argumentsOf(schema).includes(argument),
    );
    for (const argument of left)
      assert.doesNotMatch(
        description,
        new RegExp(`\\b${argument}\\b`),
        `${name} is described with ${argument}`,
      );
  }
  assert.ok(bytes(offers) < bytes(offersOf(TOOLS, false)) / 2);
});

test("other models are offered every tool as it is", () => {
  assert.deepEqual(
    offersOf(TOOLS, false),
    TOOLS.map(({ name, description, schema }) => ({ name, description, schema })),
  );
});
