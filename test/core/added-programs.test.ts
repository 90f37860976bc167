import assert from "node:assert/strict";
import test from "node:test";
import {
  HOOK_EVENTS,
  hookName,
  hooksForm,
  hookWords,
  isForTool,
  patienceOf,
  projectToolsForm,
  toolsForm,
} from "../../src/core/added-programs.ts";

const stop = { event: "Stop", command: "true" };

test("an invalid hook is reported with its position", () => {
  const wrong: readonly (readonly [unknown, string])[] = [
    [{ event: "Halt", command: "true" }, "0.event"],
    [{ event: "Stop" }, "0.command"],
    [{ event: "Stop", command: "" }, "0.command"],
    [{ event: "Stop", command: [] }, "0.command"],
    [{ event: "Stop", command: ["a\0b"] }, "0.command.0"],
    [{ ...stop, timeout: "0s" }, "0.timeout"],
    [{ ...stop, timeout: "11m" }, "0.timeout"],
    [{ ...stop, tools: "bash" }, "0.tools"],
    [{ ...stop, required: true }, "0.required"],
    [{ ...stop, on: "host" }, "0"],
    [{ ...stop, event: "PreToolUse", tools: "ba sh" }, "0.tools"],
    [{ ...stop, event: "PreToolUse", tools: [] }, "0.tools"],
  ];
  for (const [given, where] of wrong) {
    const read = hooksForm.safeParse([given]);
    assert.equal(read.error?.issues[0]?.path.join("."), where, JSON.stringify(given));
  }
  assert.ok(!hooksForm.safeParse(Array.from({ length: 33 }, () => stop)).success);
  for (const event of HOOK_EVENTS)
    assert.ok(hooksForm.safeParse([{ event, command: ["guard", ""].slice(0, 1), timeout: 90 }]).success);
});

const of = (tools?: string | string[]) => ({
  event: "PreToolUse" as const,
  command: "true",
  ...(tools === undefined ? {} : { tools }),
});

test("a hook applies to the tools that its patterns match, and to all without a pattern", () => {
  const rows: readonly (readonly [string | string[] | undefined, string, boolean])[] = [
    [undefined, "bash", true],
    ["bash", "bash", true],
    ["bash", "bash2", false],
    ["*_file", "read_file", true],
    ["git*__*", "github__search", true],
    ["git*__*", "gitlab_search", false],
    ["a*a", "a", false],
    [["edit_file", "write_*"], "write_file", true],
    [["edit_file", "write_*"], "bash", false],
  ];
  for (const [tools, tool, fits] of rows)
    assert.equal(isForTool(of(tools), tool), fits, `${String(tools)} ${tool}`);
});

test("a hook is called by its name, or else by its shortened command", () => {
  assert.equal(hookName({ event: "Stop", command: ["node", "x.js"] }), "node x.js");
  assert.equal(hookName({ event: "Stop", command: "true", name: "mine" }), "mine");
  assert.equal(hookName({ event: "Stop", command: "y".repeat(99) }), `${"y".repeat(59)}…`);
  assert.deepEqual([patienceOf(undefined, 7), patienceOf("2s", 7), patienceOf(3, 7)], [7, 2000, 3000]);
});

test("the wording tells a person what a hook changed, and that one is broken", () => {
  const told = { hook: "h", owner: "user", tool: "bash", reason: "it hung" } as const;
  assert.deepEqual(
    [
      hookWords({ ...told, event: "PreToolUse", did: "passed" }),
      hookWords({ ...told, event: "PreToolUse", did: "skipped" }),
      hookWords({ ...told, event: "PreToolUse", did: "replaced", args: { command: "ls" } }),
      hookWords({ ...told, event: "Stop", did: "continued", owner: "project" }),
      hookWords({ ...told, event: "SessionStart", did: "added" }),
      hookWords({ ...told, event: "PostToolUse", did: "failed" }),
    ],
    [
      "",
      "",
      'the user\'s hook h replaced the arguments of bash: {"command":"ls"}',
      "the project's hook h makes the model continue",
      "the user's hook h added to the conversation (SessionStart)",
      "the user's hook h is broken (PostToolUse): it hung",
    ],
  );
});

const tool = { description: "looks up", command: "lookup" };
const deep = (levels: number): unknown => (levels === 0 ? {} : { properties: deep(levels - 1) });

test("a tool has a name, a description, a command and optionally a small schema", () => {
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

test("only the user can declare that a tool changes nothing", () => {
  assert.ok(projectToolsForm.safeParse({ lookup: { ...tool, state: true } }).success);
  assert.ok(!projectToolsForm.safeParse({ lookup: { ...tool, reads: true } }).success);
});
