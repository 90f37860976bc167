import assert from "node:assert/strict";
import test from "node:test";
import { projectToolsForm, toolsForm } from "../../src/core/added-programs.ts";

const tool = { description: "looks up", command: "lookup" };
const deep = (levels: number): unknown => (levels === 0 ? {} : { properties: deep(levels - 1) });

test("a tool has a name, a description, a command and at most a small schema", () => {
  const good: readonly unknown[] = [
    {},
    { lookup: tool },
    { "look-up_2": { ...tool, command: ["lookup", "--json"], schema: { type: "object" }, timeout: "5s" } },
    { lookup: { ...tool, reads: true, state: true } },
  ];
  const wrong: readonly unknown[] = [
    [],
    { "look up": tool },
    { "": tool },
    { ["x".repeat(65)]: tool },
    { lookup: { ...tool, description: "" } },
    { lookup: { ...tool, description: "x".repeat(2001) } },
    { lookup: { ...tool, command: "" } },
    { lookup: { ...tool, schema: { type: "array" } } },
    { lookup: { ...tool, schema: deep(20) } },
    { lookup: { ...tool, schema: { description: "x".repeat(20_000) } } },
    { lookup: { ...tool, timeout: "2h" } },
    { lookup: { ...tool, sandbox: false } },
    Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`t${at}`, tool])),
  ];
  for (const given of good) assert.ok(toolsForm.safeParse(given).success, JSON.stringify(given));
  for (const given of wrong)
    assert.ok(!toolsForm.safeParse(given).success, JSON.stringify(given).slice(0, 200));
});

test("only the user can say that a tool changes nothing", () => {
  assert.ok(projectToolsForm.safeParse({ lookup: { ...tool, state: true } }).success);
  assert.ok(!projectToolsForm.safeParse({ lookup: { ...tool, reads: true } }).success);
});
