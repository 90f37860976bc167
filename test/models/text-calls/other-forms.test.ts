import assert from "node:assert/strict";
import test from "node:test";
import { readCalls } from "../../../src/models/text-calls/text-call-stream.ts";

const TOOLS = ["read_file", "edit_file", "write_file", "list_dir", "grep", "bash", "task", "plan", "note"];
const fence = (language: string, body: string): string => `\`\`\`${language}\n${body}\n\`\`\``;

const missed = (text: string): readonly string[] => {
  const { calls, malformed, missed: told } = readCalls(text, TOOLS);
  assert.deepEqual([calls, malformed], [[], []], text);
  return told.map(({ missed: kind, name }) => `${kind} ${name}`);
};

test("a reply that is only a call in another agent's notation is reported and not run", () => {
  for (const [text, told] of [
    ['Thought: I need to look.\nAction: read_file\nAction Input: {"path": "a"}', "other_form read_file"],
    ["Action: read_file\nAction Input: a.ts", "other_form read_file"],
    ['Question: why?\nThought: hm\n\nAction: open_it\n\nAction Input: {"path": "a"}', "not_offered open_it"],
    ['Tool: read_file\nArguments: {"path": "a"}', "other_form read_file"],
    ["Tool: `open_file`\nArguments:\n  path: a", "not_offered open_file"],
    [fence("yaml", "tool: read_file\nargs:\n  path: a"), "other_form read_file"],
    ["<read_file>\n<path>a</path>\n</read_file>", "other_form read_file"],
    [
      "<write_to_file>\n<path>a</path>\n<content>\nb\n</content>\n</write_to_file>",
      "not_offered write_to_file",
    ],
    ['read_file(path="a")', "other_form read_file"],
    ['print(read_file("a"))', "other_form read_file"],
    ['await tools.read_file({ path: "a" });', "other_form read_file"],
    [fence("python", 'read_file(path="a")'), "other_form read_file"],
    ['read_file {"path": "a"}', "other_form read_file"],
    ['@read_file {"path": "a"}', "other_form read_file"],
    ['grep\n{"pattern": "a"}', "other_form grep"],
    ['{"tool": "read_file", "path": "a"}', "other_form read_file"],
    ['{"action": "bash", "command": "ls"}', "other_form bash"],
    ['{"tool": "read", "path": "a"}', "not_offered read"],
    ['<think>hm</think>\nread_file(path="a")', "other_form read_file"],
  ] as const)
    assert.deepEqual(missed(text), [told], text);
  const [told] = readCalls('read_file(path="a")', TOOLS).missed;
  assert.match(
    told?.reason ?? "",
    /^calls are not read in this form, .*\{"name": "read_file", "arguments": \{…\}\}\.$/,
  );
  assert.deepEqual(readCalls('read_file(path="a")', []).missed, []);
});

test("answers that only resemble such calls stay answers", () => {
  for (const text of [
    "Use read_file(path) to read a file.",
    'Call it so:\nread_file(path="a")',
    'read_file(path="a") reads a file, and edit_file(path="a") changes it',
    fence("python", 'text = read_file("a")\nprint(text)'),
    'open_file("a")',
    "slugify(text)",
    "print(total(xs))",
    "grep(pattern)",
    "task(name)",
    "<ul><li>one</li><li>two</li></ul>",
    "<my_config><path>a</path></my_config>",
    "Action: none\nAction Input: none",
    "Thought: nothing is left to do.\nFinal Answer: the port is 80.",
    "The log has\nAction: restart\nAction Input: 3",
    "Action: restart the server\nReason: it hangs",
    '{"action": "plan", "steps": []}',
    '{"action": "deploy", "env": "prod"}',
    '{"function": "slugify", "line": 3}',
    '{"tool": "read_file"}',
    '{"tool": "hammer", "path": "shed"}',
    '{"action": "bash", "reason": "x"}',
    "name: x\nargs: y",
    "plan: do it\nsteps: many",
    "interface Point { x: number }",
    "class A {\n}",
  ])
    assert.deepEqual(missed(text), [], text);
});

test("hostile replies are read in bounded time", () => {
  for (const text of [
    "a(".repeat(20_000),
    "<a_file>".repeat(5000),
    `<read_file>${"<path>a</path>".repeat(3000)}`,
    "action:\n".repeat(6000),
    `thought: ${"\naction: x".repeat(4000)}`,
    "a.".repeat(20_000),
    `${"{".repeat(20_000)}}`,
    `thought:${"\n".repeat(24_000)}action: x${"\n".repeat(24_000)}x`,
    `action: x${"\n \t".repeat(16_000)}x`,
    `tool: x${"\n".repeat(49_000)}x`,
    `\`\`\`\n${" ".repeat(49_000)}x`,
    `${"`".repeat(24_000)}\n${"`".repeat(25_000)}x`,
  ])
    readCalls(text, TOOLS);
});
