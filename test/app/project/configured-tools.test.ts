import assert from "node:assert/strict";
import test from "node:test";
import { openExtensions } from "../../../src/app/project/open-extensions.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS, type Settings } from "../../../src/config/settings-schema.ts";
import type { CustomToolDefinition } from "../../../src/core/added-programs.ts";
import { BUILT_IN, toolsFor } from "../../../src/tools/index.ts";
import { fakeBox } from "../../fakes/box.ts";
import { fakeToolContext } from "../../fakes/tool-context.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { trustAll } from "../../fixtures/trust-all.ts";

const lookup: CustomToolDefinition = { description: "looks up", command: "lookup" };

async function opened(place: Scratch, tools: Settings["tools"]) {
  const warned: string[] = [];
  const box = fakeBox({ workspace: place.at("work") });
  const extensions = await openExtensions({
    host: hostFrom({ HOME: place.at("home") }),
    settings: { ...DEFAULTS, tools },
    origins: {},
    workspace: place.at("work"),
    session: "s1",
    requests: {
      send: () => Promise.reject(new Error("no requests here")),
      serviceAt: () => assert.fail("no requests here"),
    },
    box: () => Promise.resolve(box),
    emit: () => undefined,
    warn: (text) => void warned.push(text),
    signal: new AbortController().signal,
  });
  return { tools: extensions.tools(), names: extensions.tools().map(({ name }) => name), warned };
}

test("the list of built-in tool names is complete", () => {
  const offered = toolsFor(
    fakeToolContext({
      index: { search: () => Promise.reject(new Error("no index")) },
      plan: () => undefined,
      subagents: {
        run: () => assert.fail("nothing is called"),
        begin: () => assert.fail("nothing is called"),
        look: () => assert.fail("nothing is called"),
      },
    }),
  );
  assert.deepEqual(
    offered.map(({ name }) => name).filter((name) => !BUILT_IN.has(name)),
    [],
  );
});

test("a tool with a taken name or without a valid schema is left out with a warning, and the others stay", async () => {
  await using place = await scratch({ "work/a.txt": "a" });
  const { names, warned } = await opened(place, {
    lookup,
    bash: lookup,
    tracker__find: lookup,
    mcp_resource: lookup,
    broken: { ...lookup, schema: { type: "object", properties: { a: { type: "tree" } } } },
    elsewhere: { ...lookup, schema: { $ref: "https://schema.example/a.json" } },
  });
  assert.deepEqual(names, ["lookup"]);
  assert.equal(warned.length, 5);
  assert.match(
    warned[1] ?? "",
    /tracker__find is left out: names with __ or mcp_ are reserved for the tools of MCP servers/,
  );
  assert.equal(warned[0], "the tool bash is left out: a built-in tool has that name");
});

test("a tool's schema may name its draft; one that is checked later, or never to the end, is left out", async () => {
  await using place = await scratch({ "work/a.txt": "a" });
  const many = Array.from({ length: 60 }, (_, at) => [
    `d${at}`,
    { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] },
  ]);
  const required = { required: ["id"] };
  const { names, tools, warned } = await opened(place, {
    seventh: { ...lookup, schema: { $schema: "http://json-schema.org/draft-07/schema#", ...required } },
    newest: { ...lookup, schema: { $schema: "https://json-schema.org/draft/2020-12/schema", ...required } },
    itself: { ...lookup, schema: { $ref: "#" } },
    unknown: { ...lookup, schema: { $schema: "https://x.example/own" } },
    later: { ...lookup, schema: { $async: true, ...required } },
    doubling: {
      ...lookup,
      schema: { $ref: "#/$defs/d0", $defs: { ...Object.fromEntries(many), d60: {} } },
    },
  });
  assert.deepEqual(names, ["seventh", "newest", "itself"]);
  for (const tool of tools) assert.equal(tool.prepare({}).kind, "invalid", tool.name);
  assert.match(warned[0] ?? "", /the tool unknown is left out: its schema uses an unknown draft/);
  assert.match(warned[1] ?? "", /the tool later is left out: its schema uses \$async/);
  assert.match(warned[2] ?? "", /the tool doubling is left out: its schema refers to its own parts so often/);
});

test("a project's tools are active once they are trusted, and never replace the user's", async () => {
  await using place = await scratch({
    "work/.harness/tools.json": JSON.stringify({
      lookup: { description: "theirs", command: "theirs" },
      other: { description: "other", command: "other" },
    }),
  });
  assert.deepEqual((await opened(place, { lookup })).names, ["lookup"]);
  await trustAll(hostFrom({ HOME: place.at("home") }), place.at("work"));
  const { tools, names, warned } = await opened(place, { lookup });
  assert.deepEqual([names, tools[0]?.description], [["lookup", "other"], "looks up"]);
  assert.deepEqual(warned, ["the tool lookup is left out: another tool has that name"]);
});

test("arguments are checked against the schema, except for its patterns", async () => {
  await using place = await scratch({ "work/a.txt": "a" });
  const schema = {
    type: "object",
    properties: {
      word: { type: "string", pattern: "^(a+)+$" },
      pattern: { enum: [{ pattern: "x" }, "b"] },
      deep: {
        type: "array",
        items: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
      },
    },
    required: ["word"],
    additionalProperties: false,
  };
  const [tool] = (await opened(place, { lookup: { ...lookup, schema } })).tools;
  const issues = (args: unknown): unknown => {
    const read = tool?.prepare(args);
    return read?.kind === "invalid" ? read.issues : read?.kind;
  };
  assert.equal(issues({ word: `${"a".repeat(50_000)}b` }), "prepared");
  assert.equal(issues({ word: "a", pattern: { pattern: "x" } }), "prepared");
  assert.deepEqual(issues({ word: "a", pattern: "c" }), [
    'pattern: must be equal to one of the allowed values: [{"pattern":"x"},"b"]',
  ]);
  assert.deepEqual(issues({}), ["must have required property 'word'"]);
  assert.deepEqual(issues({ word: "a", more: 1 }), ['must NOT have additional properties: "more"']);
  assert.deepEqual(issues({ word: "a", deep: [{ n: "x" }] }), ["deep.0.n: must be integer"]);
});

test("what is not checked never makes the check refuse what the tool accepts", async () => {
  await using place = await scratch({ "work/a.txt": "a" });
  const schema = {
    properties: {
      when: {
        oneOf: [
          { type: "string", format: "date" },
          { type: "string", format: "time" },
        ],
      },
      name: { type: "string", not: { pattern: "^/" } },
      headers: { type: "object", patternProperties: { "^x-": {} }, additionalProperties: false },
      range: { oneOf: [{ type: "integer" }, { type: "number", minimum: 5 }] },
      id: { if: { pattern: "^#" }, then: { maxLength: 1 }, type: "string" },
    },
  };
  const [tool] = (await opened(place, { lookup: { ...lookup, schema } })).tools;
  const kind = (args: unknown): unknown => tool?.prepare(args).kind;
  for (const args of [
    { when: "2026-01-01" },
    { name: "a" },
    { headers: { "x-a": 1 } },
    { range: 7.5 },
    { id: "ab" },
  ])
    assert.equal(kind(args), "prepared", JSON.stringify(args));
  for (const args of [{ when: 5 }, { name: 5 }, { headers: 5 }, { range: 7 }, { id: 5 }])
    assert.equal(kind(args), "invalid", JSON.stringify(args));
});
