import assert from "node:assert/strict";
import test from "node:test";
import { TaggedCalls } from "./tagged-calls.ts";

const CALL = '<tool_call>\n{"name": "ls", "arguments": {"path": "</tool"}}\n</tool_call>';
const call = { name: "ls", args: { path: "</tool" } };

/** Reads a text in pieces of this many characters; successive texts are joined. */
function read(text: string, step: number): readonly unknown[] {
  const reader = new TaggedCalls();
  const found = [];
  for (let at = 0; at < text.length; at += step) found.push(...reader.read(text.slice(at, at + step)));
  found.push(...reader.end());
  const joined: unknown[] = [];
  for (const each of found) {
    const last = joined.at(-1);
    if (each.type === "call") joined.push(each.call);
    else if (typeof last === "string") joined[joined.length - 1] = last + each.text;
    else joined.push(each.text);
  }
  return joined;
}

for (const step of [1, 3, 1000])
  test(`calls are extracted from their tags, in pieces of ${step}`, () => {
    assert.deepEqual(read(`Look: ${CALL}\n${CALL}`, step), ["Look: ", call, call]);
    assert.deepEqual(read("a < b, <tool", step), ["a < b, <tool"]);
    assert.deepEqual(read("<tool_call>\nno JSON\n</tool_call>", step), [
      "<tool_call>\nno JSON\n</tool_call>",
    ]);
    assert.deepEqual(read('<tool_call>\n{"name": "ls"', step), ['<tool_call>\n{"name": "ls"']);
  });

test("two calls in one tag are two; if one cannot be read, the whole tag stays text", () => {
  const line = '{"name": "ls", "arguments": {}}';
  assert.equal(read(`<tool_call>\n${line}\n${line}\n</tool_call>`, 5).length, 2);
  const broken = `<tool_call>\n${line}\n{"name": \n</tool_call>`;
  assert.deepEqual(read(broken, 5), [broken]);
});
