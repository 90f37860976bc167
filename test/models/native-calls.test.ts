import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { JsonEnds, surveyJson } from "../../src/core/text/json-text.ts";
import { NativeCalls, readArguments } from "../../src/models/native-calls.ts";
import { CallIds } from "../../src/models/reply.ts";
import { OfferedTools } from "../../src/models/text-calls/settle.ts";
import { HISTORY } from "../contract/provider-server.ts";
import { TOOLS } from "../contract/provider-ask.ts";

const names = new OfferedTools(TOOLS);

type Part = Parameters<NativeCalls["take"]>[0];

function read(...parts: readonly Omit<Part, "type">[]) {
  const calls = new NativeCalls();
  for (const part of parts) calls.take({ type: "call", ...part });
  return calls.end(names);
}

function reads(text: string): unknown {
  const read = readArguments(text);
  return "args" in read ? read.args : read.wrong;
}

function told(name: string, tools = names): unknown {
  const calls = new NativeCalls();
  calls.take({ type: "call", index: 0, name });
  const { calls: good, malformed } = calls.end(tools);
  return good[0]?.name ?? malformed[0]?.reason;
}

test("calls are assembled by index, in the order in which they began", () => {
  const { calls } = read(
    { index: 7, id: "b", name: "read_file" },
    { index: 2, id: "a", name: "list_dir", args: '{"path"' },
    { index: 7, args: '{"path":"x"}' },
    { index: 2, args: ':"y"}' },
  );
  assert.deepEqual(calls, [
    { id: "b", name: "read_file", args: { path: "x" } },
    { id: "a", name: "list_dir", args: { path: "y" } },
  ]);
});

test("a second call with the same index is a separate call", () => {
  const byId = read(
    { index: 0, id: "a", name: "list_dir", args: '{"path":"x"}' },
    { index: 0, id: "b", name: "list_dir", args: '{"path":"y"}' },
  );
  const byEnd = read(
    { index: 0, name: "list_dir", args: '{"path":"x"}' },
    { index: 0, name: "list_dir", args: '{"path":"y"}' },
  );
  for (const { calls } of [byId, byEnd])
    assert.deepEqual(
      calls.map(({ args }) => args),
      [{ path: "x" }, { path: "y" }],
    );
});

test("a name that arrives in pieces, or with every piece, is one name", () => {
  const pieces = read({ index: 0, name: "list" }, { index: 0, name: "_dir" }, { index: 0, args: "{}" });
  const again = read(
    { index: 0, name: "list_dir", args: '{"path":' },
    { index: 0, name: "list_dir", args: '"x"}' },
  );
  assert.deepEqual(pieces.calls, [{ id: "", name: "list_dir", args: {} }]);
  assert.deepEqual(again.calls, [{ id: "", name: "list_dir", args: { path: "x" } }]);
});

test("arguments with two possible readings are refused", () => {
  const twice = 'The key "a" appears twice in its arguments: give it once.';
  assert.deepEqual(
    [
      "",
      " \n",
      '{"a":1}',
      String.raw`"{\"a\":1}"`,
      '{"a":1,"\\u0061":2}',
      String.raw`"{\"a\":1,\"a\":2}"`,
      '{"b":[{"a":1},{"a":2}],"a":{"a":3}}',
      '{"b":{"a":1,"b":2,"a":3}}',
      '"text"',
      "null",
    ].map(reads),
    [
      {},
      {},
      { a: 1 },
      { a: 1 },
      twice,
      twice,
      { b: [{ a: 1 }, { a: 2 }], a: { a: 3 } },
      twice,
      "Its arguments are a string, not one JSON object with a key for each argument.",
      "Its arguments are null, not one JSON object with a key for each argument.",
    ],
  );
  assert.match(String(reads('{"a":"x')), /cut before their end/);
  assert.match(String(reads('{"a":"x"')), /cut before their end/);
  assert.match(String(reads('{"a":x}')), /are not JSON/);
  assert.match(String(reads(`{"a":${"[".repeat(400)}${"]".repeat(400)}}`)), /deeper than 64/);
  assert.match(String(reads("[".repeat(1_000_000))), /cut before their end/);
});

test("a survey of arbitrary JSON finds its depth and no duplicate key", () => {
  const depthOf = (value: unknown): number =>
    typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const json = JSON.stringify(value);
      assert.deepEqual(surveyJson(json), { depth: depthOf(JSON.parse(json)), twice: null });
      const ends = new JsonEnds();
      for (const sign of json) ends.push(sign);
      assert.equal(ends.open, false);
    }),
  );
});

const unicode = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`;

test("a survey finds a duplicate key, however it is written", () => {
  fc.assert(
    fc.property(fc.string(), fc.jsonValue(), (key, value) => {
      const escaped = Array.from({ length: key.length }, (_, at) => unicode(key.charCodeAt(at))).join("");
      const json = `{"list":[{"x":${JSON.stringify(value)}},{${JSON.stringify(key)}:1,"${escaped}":2}]}`;
      assert.equal(surveyJson(json).twice, JSON.parse(JSON.stringify(key)));
    }),
  );
});

test("tool names are recognised in other spellings, and unknown ones are reported", () => {
  for (const name of ["read_file", "readFile", "Read-File", "READ_FILE", "functions.read_file:12"])
    assert.equal(told(name), "read_file");
  const known = "there are list_dir, read_file, write_file.";
  assert.equal(told("read_fil"), `There is no tool "read_fil"; ${known} Did you mean read_file?`);
  assert.equal(told("x".repeat(100_000)), `There is no tool "${"x".repeat(80)}"; ${known}`);
  assert.equal(told(""), `There is no tool ""; ${known}`);
  assert.equal(told("ab", new OfferedTools([])), 'No tool can be called now; "ab" was not run.');
});

test("values are converted to the types in the schema", () => {
  const schema = { type: "object", properties: { n: { type: "integer" }, s: { type: "string" } } };
  const calls = new NativeCalls();
  calls.take({ type: "call", index: 0, name: "t", args: '{"n":"12","s":"12","other":"12"}' });
  assert.deepEqual(calls.end(new OfferedTools([{ name: "t", schema }])).calls, [
    { id: "", name: "t", args: { n: 12, s: "12", other: "12" } },
  ]);
});

test("a call's id is kept unless the conversation already has it", () => {
  const ids = new CallIds(HISTORY, Math.random);
  assert.equal(ids.next("call_12345678"), "call_12345678");
  for (const given of ["call_12345678", "Abc123xyz", ""]) assert.match(ids.next(given), /^[0-9A-Za-z]{9}$/);
});
