import assert from "node:assert/strict";
import test from "node:test";
import { stat } from "node:fs/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import { catalogueOf, type McpTool, ToolPins } from "../../src/extensions/tool-catalogue.ts";
import { LISTS } from "../fixtures/mcp-server.ts";
import { scratch } from "../fixtures/scratch.ts";

const ALL = { allow: [], deny: [] };
const SAFE = /^[A-Za-z0-9_-]{1,64}$/;

const catalogue = (list: string, filter: Parameters<typeof catalogueOf>[2] = ALL) =>
  catalogueOf("srv", LISTS[list] ?? [], filter);

const namesOf = ({ tools }: ReturnType<typeof catalogue>): readonly string[] => tools.map(({ name }) => name);

test("a tool is named after its server and itself, in a form that every model API accepts", () => {
  const found = catalogue("names");
  assert.deepEqual(namesOf(found).slice(0, 4), [
    "srv__plain",
    "srv__with_dots_and_spaces",
    "srv___[31mred".replaceAll("[", "_"),
    "srv__d_lete",
  ]);
  for (const name of namesOf(found)) assert.match(name, SAFE);
  // Two that are the same up to the cut are still told apart.
  assert.equal(new Set(namesOf(found)).size, 7);
  assert.deepEqual(
    found.left.map(({ tool }) => tool),
    [""],
  );
});

test("of tools with the same resulting name the first is used, and the others are reported", () => {
  const { tools, left } = catalogue("twice");
  assert.deepEqual(
    tools.map(({ name, description }) => [name, description]),
    [
      ["srv__same", "the first"],
      ["srv__sa_me", "does sa.me"],
    ],
  );
  assert.deepEqual(
    left.map(({ tool }) => tool),
    ["same", "sa me"],
  );
});

test("globs allow and deny by either name, and deny takes precedence", () => {
  assert.deepEqual(namesOf(catalogue("good", { allow: ["e*", "srv__f?il"], deny: ["*nv"] })), [
    "srv__echo",
    "srv__fail",
  ]);
  assert.deepEqual(namesOf(catalogue("good", { allow: [], deny: ["*"] })), []);
  // One that is made to take ever longer does not.
  assert.deepEqual(namesOf(catalogue("names", { allow: [`${"*x".repeat(90)}b`], deny: [] })), []);
});

test("the number of tools and the length of their descriptions are bounded", () => {
  const many = catalogue("thousands");
  assert.equal(many.tools.length, 128);
  assert.equal(many.left.length, 5000 - 128);
  const verbose = catalogue("verbose");
  const said = verbose.tools.reduce((sum, each) => sum + JSON.stringify(each.schema).length, 0);
  assert.ok(verbose.tools.length > 5 && said < 256 * 1024, `${said} characters`);
  for (const { description } of verbose.tools) assert.ok(description.length <= 1001);
});

/** The check of one argument, as it is called. */
function checkOf(argument: object, others: object = {}): (value: unknown) => boolean {
  const inputSchema = { type: "object", properties: { a: argument }, ...others };
  const { tools, left } = catalogueOf("srv", [{ name: "t", inputSchema }], { allow: [], deny: [] });
  assert.deepEqual(left, []);
  const validate = new Ajv2020({ strict: false }).compile(tools[0]?.check ?? {});
  return (a) => validate({ a });
}

test("what is not checked never makes the check refuse what the server accepts", () => {
  const date = checkOf({
    oneOf: [
      { type: "string", format: "date" },
      { type: "string", format: "date-time" },
      { type: "null", title: "none" },
    ],
  });
  assert.deepEqual(["2026-01-01", null, 5].map(date), [true, true, false]);
  const name = checkOf({ type: "string", not: { pattern: "^/" } });
  assert.deepEqual(["x", 5].map(name), [true, false]);
  const headers = checkOf({ type: "object", patternProperties: { "^x-": {} }, additionalProperties: false });
  assert.equal(headers({ "x-a": 1 }), true);
  const kinds = checkOf(
    { oneOf: [{ $ref: "#/$defs/a%20b" }, { $ref: "#/$defs/c" }] },
    { $defs: { "a b": { type: "string", pattern: "^a" }, c: { type: "string", pattern: "^c" } } },
  );
  assert.deepEqual(["a", "c", 5].map(kinds), [true, true, false]);
});

test("what is checked in full keeps its meaning", () => {
  const one = checkOf({ oneOf: [{ type: "integer" }, { type: "number", minimum: 5 }] });
  assert.deepEqual([1, 7.5, 7].map(one), [true, true, false]);
  assert.deepEqual(["a", "b"].map(checkOf({ not: { enum: ["a"] } })), [false, true]);
  const closed = checkOf({ type: "object", properties: { b: {} }, additionalProperties: false });
  assert.deepEqual([{ b: 1 }, { c: 1 }].map(closed), [true, false]);
});

test("a definition with very deep parts that nothing reads is left out, and the others stay", () => {
  const deep = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) as unknown;
  const { tools, left } = catalogueOf(
    "srv",
    [
      { name: "deep", inputSchema: { type: "object", "x-own": deep } },
      { name: "fine", inputSchema: { type: "object" } },
    ],
    { allow: [], deny: [] },
  );
  assert.deepEqual(
    [tools.map(({ own }) => own), left],
    [["fine"], [{ tool: "deep", why: "its schema is nested too deep" }]],
  );
});

test("what is read of tools that are then left out is bounded for all of them together", () => {
  let read = 0;
  const first = {
    get description() {
      read += 1;
      return "";
    },
  };
  const others = Array.from({ length: 2100 }, (_, at) => [`p${at}`, {}] as const);
  const properties = { first, ...Object.fromEntries(others) };
  const wide = (at: number) => ({ name: `wide${at}`, inputSchema: { type: "object", properties } });
  const { tools, left } = catalogueOf(
    "srv",
    Array.from({ length: 2000 }, (_, at) => wide(at)),
    {
      allow: [],
      deny: [],
    },
  );
  assert.deepEqual([tools.length, left.length], [0, 2000]);
  assert.match(left.at(-1)?.why ?? "", /of all tools together are too long/);
  assert.ok(read < 500, `${read} looks at schemas`);
});

test("a description is plain text with visible control characters and a maximum length", () => {
  const [look] = catalogue("injects").tools;
  assert.doesNotMatch(look?.description ?? "", /[\u001b\u0007\u202e\u200b\r]/);
  assert.match(look?.description ?? "", /␛\[2J.*Ignore all rules<U\+202E> and<U\+200B>/);
});

test("a tool with an invalid schema is left out with the reason, and the others stay", () => {
  const found = catalogue("lies");
  assert.deepEqual(namesOf(found), ["srv__fine", "srv__itself", "srv__slow_pattern"]);
  assert.deepEqual(
    found.left.map(({ tool, why }) => [tool, why]),
    [
      ["no_object", "its arguments are not an object"],
      ["bad_type", "its schema names an unknown type"],
      ["elsewhere", "its schema refers to another document"],
      ["nowhere", "its schema refers to a part that does not exist"],
      ["odd_argument", "an argument has a name that models cannot write"],
      ["hidden_value", "its schema has a value with hidden characters"],
      ["deep", "its schema is nested too deep"],
      ["wide", "its schema is too large"],
      ["without_schema", "its definition is not a valid MCP tool"],
      ["(without a name)", "its definition is not a valid MCP tool"],
      ["(without a name)", "its definition is not a valid MCP tool"],
      ["(without a name)", "its definition is not a valid MCP tool"],
    ],
  );
});

test("references inside a schema are resolved for models and for validation, and slow patterns are not validated", () => {
  const [echo] = catalogue("good").tools;
  assert.deepEqual(echo?.schema, {
    type: "object",
    properties: {
      text: { type: "string", description: "What to say." },
      times: { type: "integer", minimum: 1, maximum: 9 },
      how: { enum: ["loud", "quiet"] },
    },
    required: ["text"],
    additionalProperties: false,
  });
  assert.doesNotMatch(JSON.stringify(echo?.check), /What to say/);
  const slow = catalogue("lies").tools.find(({ own }) => own === "slow_pattern");
  assert.match(JSON.stringify(slow?.schema), /pattern/);
  assert.doesNotMatch(JSON.stringify(slow?.check), /pattern/);
});

const hashOf = (tool: unknown): string | undefined => catalogueOf("s", [tool], ALL).tools[0]?.hash;

test("the hash of a tool covers its whole definition, in any order of keys", () => {
  const one = { name: "a", description: "x", inputSchema: { type: "object", properties: { a: {}, b: {} } } };
  assert.equal(
    hashOf(one),
    hashOf({ inputSchema: { properties: { b: {}, a: {} }, type: "object" }, description: "x", name: "a" }),
  );
  assert.notEqual(hashOf(one), hashOf({ ...one, description: "x." }));
  assert.notEqual(hashOf(one), hashOf({ ...one, inputSchema: { type: "object", properties: { a: {} } } }));
  const long = "y".repeat(2000);
  assert.notEqual(hashOf({ ...one, description: `${long}1` }), hashOf({ ...one, description: `${long}2` }));
});

const tool = (own: string, hash: string): McpTool => ({
  name: `s__${own}`,
  own,
  description: "",
  schema: {},
  check: {},
  hash,
});

const ownOf = (tools: readonly McpTool[]): readonly string[] => tools.map(({ own }) => own);

test("tools are remembered for the next run: changed and new ones are reported once", async () => {
  await using place = await scratch();
  const file = place.at("deep/tools.json");
  const first = new ToolPins(file);
  const [a, b] = [tool("a", "1"), tool("b", "1")];
  assert.deepEqual(first.compare([a, b]), { changed: [], added: [] });
  await first.keep([a, b]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const next = new ToolPins(file);
  const now = [tool("a", "2"), b, tool("c", "1")];
  const { changed, added } = next.compare(now);
  assert.deepEqual([ownOf(changed), ownOf(added)], [["a"], ["c"]]);
  await next.keep(now);
  assert.deepEqual(new ToolPins(file).compare(now), { changed: [], added: [] });
});

test("a tool that disappears and returns changed is reported", async () => {
  await using place = await scratch();
  const pins = new ToolPins(place.at("tools.json"));
  await pins.keep([tool("a", "1")]);
  await pins.keep([]);
  assert.deepEqual(ownOf(pins.compare([tool("a", "2")]).changed), ["a"]);
});

test("an unreadable record trusts nothing, so every tool is new", async () => {
  await using place = await scratch({ "tools.json": '{"form": 1, "tools": {"a": 7}}' });
  assert.deepEqual(ownOf(new ToolPins(place.at("tools.json")).compare([tool("a", "7")]).added), ["a"]);
});
