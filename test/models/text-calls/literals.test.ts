import assert from "node:assert/strict";
import test from "node:test";
import { anyCharacter, fc } from "../../fixtures/property.ts";
import { readLiteral } from "../../../src/models/text-calls/literals.ts";
import { OfferedTools, withSchemaTypes } from "../../../src/models/text-calls/settle.ts";
test("JSON is read as JSON, whatever its strings contain", () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 4, stringUnit: anyCharacter }),
      fc.constantFrom(0, 1, 2),
      (json, indent) => {
        const value: unknown = JSON.parse(json);
        const text = JSON.stringify({ value }, null, indent);
        const read = readLiteral(text, 0);
        assert.deepEqual(read, {
          ok: true,
          value: { value },
          end: text.length,
          repaired: false,
          atEnd: false,
        });
      },
    ),
  );
});

test("an escaped line end is kept", () => {
  const read = readLiteral(String.raw`{"a\r\n":"b\r\nc"}`, 0);
  assert.deepEqual(read.ok && read.value, { "a\r\n": "b\r\nc" });
});

test("a prefix of JSON is never complete without a repair", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), fc.nat(), (json, at) => {
      const text = `{"value":${json}}`;
      const read = readLiteral(text.slice(0, at % text.length), 0);
      assert.ok(!read.ok || read.repaired);
    }),
  );
});

test("spelling variants of names are accepted, slips are reported, and ambiguous names are neither", () => {
  const tools = new OfferedTools(["read_file", "bash", "a-b", "a_b"]);
  const resolved = [
    "readFile",
    "functions.read_file:0",
    "Read-File",
    "BASH",
    "a-b",
    "ab",
    "raed_file",
    "files",
  ];
  assert.deepEqual(
    resolved.map((name) => tools.resolve(name)),
    ["read_file", "read_file", "read_file", "bash", "a-b", undefined, undefined, undefined],
  );
  assert.deepEqual([tools.near("raed_file"), tools.near("web_search")], ["read_file", undefined]);
});

test("values are converted only to the type in the schema", () => {
  const schema = {
    properties: {
      n: { type: "integer" },
      s: { type: "string" },
      b: { type: ["boolean", "null"] },
      l: { type: "array", items: { type: "number" } },
    },
  };
  assert.deepEqual(withSchemaTypes({ n: "12", s: "12", b: "None", l: "['1', 2]", x: "3" }, schema), {
    n: 12,
    s: "12",
    b: null,
    l: [1, 2],
    x: "3",
  });
  assert.deepEqual(withSchemaTypes({ n: "1.5", b: "yes", l: "[1" }, schema), { n: "1.5", b: "yes", l: "[1" });
});
