// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc, part } from "../../fixtures/property.ts";
import {
  CLOSERS,
  ENDS,
  INVENTED,
  OPENERS,
  SHOWN,
  THINKING,
} from "../../../src/models/text-calls/notations.ts";
import { CallStream, readCalls } from "../../../src/models/text-calls/text-call-stream.ts";
import { repliesIn } from "../../fixtures/text-calls/replies.ts";

const TOOLS = ["read_file", "list_dir", "glob", "grep", "edit_file", "write_file", "bash"];
const call = '{"name": "bash", "arguments": {"command": "ls"}}';
const PIECES = [
  ...OPENERS,
  ...CLOSERS,
  ...ENDS,
  ...INVENTED,
  ...[...THINKING, ...SHOWN].flat(),
  call,
  '{"name": "read_file", "arguments": {"path": "a"}}',
  '[bash(command="ls")]',
  "<function=bash>",
  "<parameter=command>",
  "</parameter>",
  "</function>",
  "read_file",
  "[ARGS]",
  '{"path": "a"}',
  "<|channel|>",
  "<|message|>",
  "<|start|>assistant",
  "commentary to=functions.bash",
  "analysis",
  "final",
  "```json\n",
  "```\n",
  "```",
  "`",
  '"',
  "'",
  "{",
  "}",
  "[",
  "]",
  "\n",
  "\n\n",
  "> ",
  "    ",
  "- ",
  "1. ",
  " ",
  "Well. ",
  "I'll look.",
  "for example:",
  "\r\n",
  "call:bash{",
  '<|"|>',
  "<arg_key>",
  ";",
  ",",
  "\\",
];
const soup = fc.array(fc.constantFrom(...PIECES), { maxLength: 14 }).map((parts) => parts.join(""));
const texts = fc.oneof(soup, anyText({ maxLength: 60 }));

test("no text throws, and pieces of any size give the same result as the whole", () => {
  fc.assert(
    fc.property(texts, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (text, sizes) => {
      const whole = readCalls(text, TOOLS);
      const stream = new CallStream(TOOLS);
      let shown = "";
      for (let at = 0, index = 0; at < text.length; index += 1) {
        const size = sizes[index % sizes.length] ?? 1;
        shown += stream.push(text.slice(at, at + size));
        at += size;
      }
      const reading = stream.end();
      assert.deepEqual(reading, whole);
      const closesThought = THINKING.some(([, closer]) => text.includes(closer));
      if (!closesThought) assert.ok(whole.prose.startsWith(shown), `${shown} is not of ${whole.prose}`);
    }),
    { numRuns: part(1500) },
  );
});

const replies = repliesIn("calls").filter(({ want }) => want !== "malformed" && want.length > 0);

const lines = (text: string, prefix: string): string =>
  text
    .split("\n")
    .map((line) => prefix + line)
    .join("\n");

test("a call in a fence, a quote or an indented block is text", () => {
  const wrong = replies
    .filter(({ text }) => !text.includes("```") && !text.includes("`") && !text.includes("</think>"))
    .flatMap(({ id, text, tools }) =>
      [
        `Seen:\n\n\`\`\`text\n${text}\n\`\`\`\n\nSo.`,
        `Seen:\n\n${lines(text, "> ")}\n\nSo.`,
        `Seen:\n\n${lines(text, "    ")}\n\nSo.`,
      ]
        .filter((shown) => readCalls(shown, tools).calls.length > 0)
        .map((shown) => `${id} ${shown}`),
    );
  assert.deepEqual(wrong, []);
});

test("a call that changes something is run completely or not at all, wherever it is cut", () => {
  const changing = replies.filter(({ text }) => /bash|write_file|edit_file/.test(text));
  for (const { id, text, tools } of changing) {
    const whole = new Set(readCalls(text, tools).calls.map((each) => JSON.stringify(each)));
    for (let end = 0; end < text.length; end += 1)
      for (const each of readCalls(text.slice(0, end), tools).calls)
        if (!whole.has(JSON.stringify(each))) assert.equal(each.name, "read_file", `${id} at ${end}`);
  }
});

test("a long text of any pattern is read to its end", () => {
  const size = part(65_536);
  for (const piece of [
    ...PIECES,
    '{"a":',
    "[1,\n",
    '{"name": "bash", "arguments": {',
    '["x",\n',
    "<tool_call>{x\n\n",
    "<parameter=a>",
    "```json\n{",
    "</think>\n",
    "<function=bash><parameter=a>",
    '"\\',
    "[bash(",
  ]) {
    const text = piece.repeat(Math.ceil(size / piece.length));
    readCalls(text, TOOLS);
    readCalls(`<tool_call>${text}`, TOOLS);
    readCalls(`{"name": "bash", "arguments": {"command": "${text}`, TOOLS);
  }
});
