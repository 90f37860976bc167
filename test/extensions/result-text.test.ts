import assert from "node:assert/strict";
import test from "node:test";
import { toolResult } from "../../src/extensions/mcp-client.ts";

const text = (said: string) => ({ type: "text", text: said });

for (const [name, given, kind, expected] of [
  ["texts are lines", { content: [text("a"), text("b")] }, "ok", "a\nb"],
  ["an error is a failure", { content: [text("no")], isError: true }, "failed", "no"],
  ["nothing is said to be nothing", { content: [] }, "ok", "(nothing)"],
  [
    "a failure without words has some",
    { isError: true, content: [] },
    "failed",
    "It failed without a message.",
  ],
  ["a value is JSON", { content: [], structuredContent: { a: 1 } }, "ok", '{\n "a": 1\n}'],
  [
    "a value that stands there as text is not said twice",
    { content: [text('{"a":1}')], structuredContent: { a: 1 } },
    "ok",
    '{"a":1}',
  ],
  ["nor is a number in a value", { content: [text("3")], structuredContent: { result: 3 } }, "ok", "3"],
  ["nor a list in a value", { content: [text("[1, 2]")], structuredContent: { r: [1, 2] } }, "ok", "[1, 2]"],
  [
    "nor a list in a value, item by item",
    { content: [text("1"), text("a"), text('{"b": 2}')], structuredContent: { result: [1, "a", { b: 2 }] } },
    "ok",
    '1\na\n{"b": 2}',
  ],
  [
    "a value that says more is said",
    { content: [text("1"), text("2")], structuredContent: { result: [1, 2, 3] } },
    "ok",
    '1\n2\n{\n "result": [\n  1,\n  2,\n  3\n ]\n}',
  ],
  ["nor is one text in a value", { content: [text("a")], structuredContent: { content: "a" } }, "ok", "a"],
  [
    "a picture is named",
    { content: [{ type: "image", data: "QUJD", mimeType: "image/\u202epng" }] },
    "ok",
    "[image image/<U+202E>png, 3 B: not passed on]",
  ],
  ["a resource is its text", { contents: [{ uri: "a:b", text: "in" }] }, "ok", "[a:b]\nin"],
  ["a list of another kind is JSON", { prompts: [] }, "ok", '{\n "prompts": []\n}'],
  ["what is hidden is shown", { content: [text("\u001b[31ma\u200bb")] }, "ok", "␛[31ma<U+200B>b"],
  ["no list is no answer", { content: "x" }, "failed", "The server's answer is not a valid MCP result."],
  ["nor is text", "x", "failed", "The server's answer is not a valid MCP result."],
] as const)
  test(name, () => {
    const result = toolResult(given);
    assert.deepEqual([result.kind, result.text], [kind, expected]);
  });

test("an answer has an end, in its parts, its length and its depth", () => {
  const many = toolResult({ content: Array.from({ length: 500 }, () => text("a")) });
  assert.match(many.text, /\[300 further parts are left out\]$/);
  const long = toolResult({ content: [text("x".repeat(2 ** 21))] });
  assert.ok(long.text.length < 2 ** 20);
  assert.match(long.text, /the rest is left out/);
  const deep: unknown = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
  assert.equal(toolResult({ structuredContent: deep }).text, "[a value that is nested too deep]");
});
