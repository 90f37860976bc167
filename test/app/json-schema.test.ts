import assert from "node:assert/strict";
import test from "node:test";
import { compiledSchema, schemaIssues } from "../../src/app/json-schema.ts";

const FIRST = { allErrors: false };

/** Each definition applies the next one twice to the same value: 2^100 checks. */
function doubling(ref: (at: number) => string, name: (at: number) => object): object {
  const at = Array.from({ length: 100 }, (_, each) => each);
  const twice = (each: number): object => ({
    ...name(each),
    allOf: [{ $ref: ref(each + 1) }, { anyOf: [{ $ref: ref(each + 1) }] }],
  });
  return { ...Object.fromEntries(at.map((each) => [`d${each}`, twice(each)])), d100: name(100) };
}

for (const [what, schema] of [
  [
    "pointers",
    {
      $ref: "#/$defs/d0",
      $defs: doubling(
        (at) => `#/$defs/d${at}`,
        () => ({}),
      ),
    },
  ],
  [
    "anchors",
    {
      properties: { a: { $ref: "#d0" } },
      $defs: doubling(
        (at) => `#d${at}`,
        (at) => ({ $anchor: `d${at}` }),
      ),
    },
  ],
  [
    "ids",
    {
      $ref: "http://x.example/d0",
      $defs: doubling(
        (at) => `http://x.example/d${at}`,
        (at) => ({ $id: `http://x.example/d${at}` }),
      ),
    },
  ],
] as const)
  test(`a schema whose ${what} make one value meet 2^100 schemas is refused`, async () => {
    await assert.rejects(compiledSchema(schema, FIRST), /refers to its own parts so often/);
  });

test("a schema that refers to itself for the same value gives an issue instead of an error", async () => {
  const errorsOf = await compiledSchema({ type: "object", $ref: "#" }, FIRST);
  assert.match(schemaIssues(errorsOf({})).join(), /cannot be checked, because its schema refers to itself/);
});

test("a schema of trees, and one whose data look like references, are used", async () => {
  const tree = {
    type: "object",
    properties: { left: { $ref: "#" }, right: { $ref: "#" }, n: { type: "integer" } },
  };
  const errorsOf = await compiledSchema(tree, FIRST);
  assert.deepEqual(schemaIssues(errorsOf({ left: { right: { n: 1 } } })), []);
  assert.deepEqual(schemaIssues(errorsOf({ left: { right: { n: "1" } } })), [
    "left.right.n: must be integer",
  ]);
  const data = await compiledSchema({ enum: [{ $ref: "#", allOf: [{ $ref: "#" }] }] }, FIRST);
  assert.deepEqual(schemaIssues(data({ $ref: "#", allOf: [{ $ref: "#" }] })), []);
});
