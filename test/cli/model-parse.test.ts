import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import { parsedLines, readingText } from "../../src/app/reply-lines.ts";

const answers = async (lines: readonly string[]): Promise<unknown[]> => {
  const found: unknown[] = [];
  for await (const each of parsedLines(Readable.from([`${lines.join("\n")}\n`]))) found.push(each);
  return found;
};

test("the input may begin with the byte order mark of an editor", async () => {
  assert.deepEqual(await answers(['\uFEFF{"text": "Yes.", "tools": []}']), [
    { calls: [], malformed: [], missed: [], prose: "Yes." },
  ]);
});

test("every line is answered in order, an invalid one with its error", async () => {
  const call = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>';
  const tools = [{ name: "read_file", parameters: { properties: { limit: { type: "integer" } } } }];
  assert.deepEqual(
    await answers([
      JSON.stringify({ text: `Look.\n${call}`, tools: ["bash"] }),
      "{",
      JSON.stringify({ text: call }),
      JSON.stringify({ tools: [] }),
      JSON.stringify({ text: '{"name": "read_file", "arguments": {"limit": "3"}}', tools }),
    ]),
    [
      { calls: [{ name: "bash", args: { command: "ls" } }], malformed: [], missed: [], prose: "Look." },
      { error: 'line 2: not valid JSON; expected {"text": "…", "tools": ["read_file"]}' },
      { error: 'line 3: "tools" must be a list of names, or of {"name", "parameters"}' },
      {
        error: 'line 4: expected an object with a string "text", as in {"text": "…", "tools": ["read_file"]}',
      },
      { calls: [{ name: "read_file", args: { limit: 3 } }], malformed: [], missed: [], prose: "" },
    ],
  );
});

test("the readable form shows calls, unreadable parts and the text", () => {
  assert.equal(
    readingText({
      calls: [{ name: "bash", args: { command: "ls" } }],
      malformed: [{ name: "x", reason: "cut" }],
      missed: [{ missed: "not_offered", name: "y", args: {}, reason: "no y", nearest: [] }],
      prose: "Hi\nyou",
    }),
    'call       bash {"command":"ls"}\nmalformed  "x": cut\nmissed     "y": no y\nprose      "Hi\\nyou"',
  );
});
