import assert from "node:assert/strict";
import test from "node:test";
import type { AnyTool } from "../../src/core/tool.ts";
import { taskTool } from "../../src/tools/task.ts";
import { toolsFor } from "../../src/tools/index.ts";
import { fakeToolContext, fakeSubagents } from "../fakes/tool-context.ts";

/** A valid call of each tool. */
const TAKEN: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  read_file: { path: "a" },
  list_dir: {},
  glob: { pattern: "*" },
  grep: { pattern: "a" },
  edit_file: { path: "a", old: "b", new: "c" },
  write_file: { path: "a", content: "b" },
  apply_patch: { patch: "*** Begin Patch\n*** End Patch" },
  bash: { command: "true" },
  show_full: { id: "o1" },
  note: { title: "a", body: "b" },
  notes: {},
  semantic_search: { query: "a" },
  plan: { steps: ["a"] },
  task: { prompt: "a" },
};

const TOOLS: readonly AnyTool[] = [
  ...toolsFor(fakeToolContext({ plan: () => undefined })),
  taskTool(fakeSubagents(() => Promise.resolve({ kind: "ok", text: "" }))),
];

const toolOf = (name: string): AnyTool => {
  const tool = TOOLS.find((each) => each.name === name);
  assert.ok(tool, name);
  return tool;
};

function issuesOf(name: string, args: Readonly<Record<string, unknown>>): readonly string[] {
  const prepared = toolOf(name).prepare(args);
  return prepared.kind === "invalid" ? prepared.issues : [];
}

for (const { name, schema } of TOOLS)
  test(`${name} accepts its arguments and comments; anything else is named, with the arguments that exist`, () => {
    const args = TAKEN[name] ?? {};
    const known = Object.keys(schema["properties"] as object);
    assert.deepEqual(issuesOf(name, args), []);
    for (const comment of ["description", "explanation", "reason", "thought"])
      assert.deepEqual(issuesOf(name, { ...args, [comment]: "to see it" }), [], comment);
    for (const key of ["zzzz", "sudo", "constructor", "toString", "user-id"])
      for (const value of ["x", 1, true, {}, [], ""]) {
        const [issue = "", ...others] = issuesOf(name, { ...args, [key]: value });
        assert.deepEqual(others, []);
        assert.ok(issue.startsWith(`there is no "${key}", only ${known.join(", ")}`), issue);
      }
    // A value that is not text is no comment.
    assert.equal(issuesOf(name, { ...args, reason: { path: "b" } }).length, 1);
  });

const HINTS: readonly (readonly [name: string, args: Readonly<Record<string, unknown>>, hint: RegExp])[] = [
  [
    "bash",
    { command: "ls", cwd: "/etc" },
    /^there is no "cwd", only command, .*begin the command with cd DIR &&/,
  ],
  ["bash", { command: "ls", workdir: "sub" }, /"workdir".*cd DIR &&/],
  ["bash", { command: "ls", env: { A: "b" } }, /"env".*NAME=value/],
  ["bash", { command: "ls", timeout_ms: 5 }, /"timeout_ms".*"timeout" is in seconds/],
  ["bash", { command: "ls", Timeout: 5 }, /"Timeout".*did you mean "timeout"\?/],
  ["read_file", { path: "a", ofset: 1 }, /did you mean "offset"\?/],
  ["read_file", { path: "a", start_line: 1, end_line: 3 }, /"start_line".*offset is the first line/],
  ["list_dir", { path: "a", recursive: true }, /"recursive".*glob/],
  [
    "edit_file",
    { path: "a", edits: [{ old: "b", new: "c", line: 3 }] },
    /^edits\.0: there is no "line", only old, new, all/,
  ],
  [
    "edit_file",
    { path: "a", edits: [{ old: "b", new: "c", every: true }] },
    /^edits\.0: there is no "every"/,
  ],
];

for (const [name, args, hint] of HINTS)
  test(`${name} ${JSON.stringify(args)} is refused with what to do instead`, () => {
    assert.match(issuesOf(name, args)[0] ?? "", hint);
  });

const ALIKE: readonly (readonly [name: string, args: Readonly<Record<string, unknown>>])[] = [
  ["bash", { command: "ls", run_in_background: true, description: "List it" }],
  ["bash", { cmd: "ls", timeout: null, cwd: null }],
  ["edit_file", { file_path: "a", old_string: "b", new_string: "c", replace_all: true, explanation: "x" }],
  ["edit_file", { path: "a", edits: [{ old: "b", new: "c", reason: "x" }] }],
  ["grep", { pattern: "a", case_insensitive: true }],
];

for (const [name, args] of ALIKE)
  test(`${name} ${JSON.stringify(args)} is accepted`, () => {
    assert.deepEqual(issuesOf(name, args), []);
  });

test("an alias of an argument that the tool lacks is reported as it was given", () => {
  assert.match(issuesOf("glob", { pattern: "*", case_insensitive: true })[0] ?? "", /"case_insensitive"/);
});

test("a very long argument name is shortened", () => {
  const [issue = ""] = issuesOf("bash", { command: "ls", ["x".repeat(100_000)]: 1 });
  assert.ok(issue.length < 300, issue);
});
