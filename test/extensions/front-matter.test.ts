import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "yaml";
import { type FrontMatter, readFrontMatter } from "../../src/extensions/skill-folders.ts";

const read = (text: string): FrontMatter => {
  const found = readFrontMatter(text);
  assert.ok(typeof found !== "string", JSON.stringify(found));
  return found;
};
const valuesOf = (front: string): Record<string, string> =>
  Object.fromEntries(read(`---\n${front}\n---\nbody\n`).values);

/** In the forms that skills and commands in the wild have; a YAML parser reads each of them the same. */
const VALID: readonly string[] = [
  "name: pdf\ndescription: Fills forms, merges files. Use when a PDF is named.",
  'name: "quoted name"\ndescription: "Says \\"so\\": it\\u2019s done\\tnow"',
  "name: 'it''s'\ndescription: 'a: b # c'",
  "name: release\ndescription: >-\n  Publish a release.\n  Align the tag,\n\n  then write notes.\nmodel: x",
  "name: release\ndescription: >\n  One line\n  goes on\n    - kept\n    - as is\n  and on",
  "description: |\n  First line\n  second line\n\n    indented\nname: literal",
  "description: |-\n  no end\nname: x",
  "description: plain words\n  that go on\n  in further lines\nname: x",
  'description: "quoted words\n  that go on"\nname: x',
  "# a comment\nname: x # another\ndescription: issue#12 is no comment",
  "name: x\n\ndescription: after an empty line\n",
  "description: 日本語の説明。`--model` に渡す\nname: list",
  'name: x\n"description": in quotes',
  "name: x\ndescription:\n  on the next line",
];

test("what is valid YAML is read as a parser of YAML reads it", () => {
  for (const front of VALID) {
    const expected = Object.entries(parse(front) as Record<string, unknown>).map(
      ([key, value]) => [key, String(value).trim()] as const,
    );
    assert.deepEqual(valuesOf(front), Object.fromEntries(expected), front);
  }
});

test("what people mean as words is words, whatever YAML would make of it", () => {
  const table: readonly (readonly [front: string, key: string, value: string])[] = [
    ["description: Use this: when it fits", "description", "Use this: when it fits"],
    ["argument-hint: [message] [--force]", "argument-hint", "[message] [--force]"],
    ["argument-hint: <file> | all", "argument-hint", "<file> | all"],
    ['description: "pdf" and "docx" files', "description", '"pdf" and "docx" files'],
    ["allowed-tools: Bash(git:*), Read", "allowed-tools", "Bash(git:*), Read"],
    ["allowed-tools:\n- Bash\n- Read", "allowed-tools", "- Bash\n- Read"],
    ["metadata:\n  author: me\n  tags: [a, b]", "metadata", "author: me tags: [a, b]"],
    ["description: *anchor", "description", "*anchor"],
    ["version: 1.10", "version", "1.10"],
    ["disable-model-invocation: true", "disable-model-invocation", "true"],
    ["description:", "description", ""],
  ];
  for (const [front, key, value] of table) assert.equal(valuesOf(front)[key], value, front);
});

test("ends of lines, a mark at the beginning and a missing body change nothing", () => {
  assert.equal(
    read("\uFEFF---\r\nname: x\r\ndescription: y\r\n---\r\nbody\r\n").values.get("description"),
    "y",
  );
  assert.equal(read("---\nname: x\n---").body, "");
  assert.equal(read("---\nname: x\n...\nbody").body, "body");
  assert.equal(read("---  \nname: x\n---\t\nbody\n---\nmore").body, "body\n---\nmore");
  const none = read("# No front matter\n---\nname: x\n---\n");
  assert.deepEqual([none.values.size, none.body.startsWith("# No")], [0, true]);
});

test("what could mean two things, or has no end, is no front matter", () => {
  const table: readonly (readonly [text: string, why: RegExp])[] = [
    ["---\nname: x\n", /no end/],
    ["---\nname: x\nname: y\n---\n", /has name twice/],
    ["---\nname: x\nwords that go on\n---\n", /line 3 of its front matter/],
    ["---\n? complex\n---\n", /line 2/],
    [`---\nname: ${"x".repeat(20_000)}\n---\n`, /too long/],
    [`---\n${"# c\n".repeat(1000)}---\n`, /too long/],
    [`---\n${"a:\n".repeat(3)}---\n`, /twice/],
  ];
  for (const [text, why] of table)
    assert.match(JSON.stringify(readFrontMatter(text)), why, text.slice(0, 40));
});

test("keys of objects are keys as any, and deep nesting is text", () => {
  assert.equal(valuesOf("__proto__: x\nconstructor: y")["constructor"], "y");
  const deep = Array.from({ length: 300 }, (_, at) => `${" ".repeat(at + 1)}k:`)
    .join("\n")
    .slice(0, 16_000);
  assert.equal(
    typeof readFrontMatter(`---\nname: x\nmetadata:\n${deep.split("\n").slice(0, 150).join("\n")}\n---\n`),
    "object",
  );
  assert.equal(valuesOf(`description: ${"[".repeat(5000)}`)["description"], "[".repeat(5000));
});

test("however hostile, it is read in one pass", () => {
  for (const text of [
    "\\".repeat(15_000),
    `"${"\\u".repeat(7000)}`,
    "' ".repeat(7000),
    " #".repeat(7000),
    `a${" ".repeat(15_000)}b`,
    "| ".repeat(7000),
  ])
    assert.ok(["string", "object"].includes(typeof readFrontMatter(`---\ndescription: ${text}\n---\n`)));
});
