import assert from "node:assert/strict";
import test from "node:test";
import { grammarOf, SchemaRefused } from "./json-grammar.ts";

const text = { type: "string" };

test("a call or an answer becomes one of two objects with fixed names", () => {
  const call = { type: "object", properties: { tool: { const: "ls" }, path: text }, required: ["tool"] };
  const answer = { type: "object", properties: { answer: text }, required: ["answer"] };
  const lines = grammarOf({ anyOf: [call, answer] }).split("\n");
  assert.deepEqual(lines.slice(0, 6), [
    "root ::= (rule2 | rule4)",
    String.raw`rule0 ::= "\"tool\"" space ":" space "\"ls\""`,
    String.raw`rule1 ::= "\"path\"" space ":" space string`,
    `rule2 ::= "{" space (rule0 (space "," space rule1)?) space "}"`,
    String.raw`rule3 ::= "\"answer\"" space ":" space string`,
    `rule4 ::= "{" space (rule3) space "}"`,
  ]);
});

test("optional members bring their own comma", () => {
  const schema = { type: "object", properties: { a: text, b: text, c: text }, required: ["b"] };
  assert.ok(
    grammarOf(schema).includes(
      `"{" space (rule0 space "," space rule1 (space "," space rule2)? | rule1 (space "," space rule2)?) space "}"`,
    ),
  );
});

test("a schema may refer to itself", () => {
  const schema = {
    $defs: { tree: { type: "array", items: { $ref: "#/$defs/tree" } } },
    $ref: "#/$defs/tree",
  };
  assert.match(grammarOf(schema), /^root ::= ref0\n[\s\S]*ref0 ::= rule0/);
  assert.match(grammarOf(schema), /rule0 ::= "\[" space \(ref0 /);
});

test("an unknown schema is refused, but one that only bounds a value is accepted", () => {
  assert.throws(() => grammarOf({ type: "object", patternProperties: {} }), SchemaRefused);
  assert.throws(() => grammarOf({ type: "date" }), SchemaRefused);
  assert.throws(() => grammarOf({ $ref: "#/$defs/none" }), SchemaRefused);
  assert.match(grammarOf({ type: "integer", minimum: 1 }), /^root ::= integer\n/);
});
