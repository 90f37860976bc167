import assert from "node:assert/strict";
import test from "node:test";
import { readCalls } from "../../../src/models/text-calls/text-call-stream.ts";
import { repliesIn } from "../../fixtures/text-calls/replies.ts";

const TOOLS = ["read_file", "edit_file", "write_file", "bash"];
const json = (name: string, args: object = { path: "a" }): string =>
  JSON.stringify({ name, arguments: args });
const fence = (body: string): string => `\`\`\`json\n${body}\n\`\`\``;
const missed = (text: string): readonly string[] =>
  readCalls(text, TOOLS).missed.map(({ missed: kind, name }) => `${kind} ${name}`);

for (const [form, text] of [
  ["bare JSON", json("fix_slugify")],
  ["a list", `[${json("fix_slugify")}]`],
  ["an envelope", `{"type":"function","function":${json("fix_slugify")}}`],
  ["a fence", fence(json("fix_slugify"))],
  ["parameters", '{"name": "fix_slugify", "parameters": {"path": "a"}}'],
  ["a list of Python calls", '[fix_slugify(path="a")]'],
  ["tool code", '```tool_code\nprint(fix_slugify(path="a"))\n```'],
  ["a fence after an announcement", `I'll mend it now:\n\n${fence(json("fix_slugify"))}`],
  ["a fence after a thought", `<think>Hm.</think>\n${fence(json("fix_slugify"))}`],
] as const)
  test(`a call of an unknown tool is reported, and stays text: ${form}`, () => {
    const { calls, malformed, missed: told, prose } = readCalls(text, TOOLS);
    assert.deepEqual([calls, malformed], [[], []]);
    assert.deepEqual(
      told.map(({ missed: kind, name, args }) => ({ kind, name, args })),
      [{ kind: "not_offered", name: "fix_slugify", args: { path: "a" } }],
    );
    assert.match(told[0]?.reason ?? "", /^There is no tool "fix_slugify"; there are read_file, /);
    assert.match(prose, /fix_slugify/);
  });

for (const [form, text] of [
  ["tags", `<tool_call>${json("fix_slugify")}</tool_call>`],
  ["XML", "<function=fix_slugify>\n<parameter=path>\na\n</parameter>\n</function>"],
  ["Mistral", '[TOOL_CALLS]fix_slugify[ARGS]{"path": "a"}'],
  [
    "harmony",
    '<|channel|>commentary to=functions.fix_slugify <|constrain|>json<|message|>{"path":"a"}<|call|>',
  ],
] as const)
  test(`a model family's call token makes the call malformed: ${form}`, () => {
    const [told] = readCalls(text, TOOLS).malformed;
    assert.deepEqual([told?.missed, told?.args], ["not_offered", { path: "a" }]);
    assert.match(told?.name ?? "", /fix_slugify$/);
  });

const near = (name: string): readonly string[] => readCalls(json(name), TOOLS).missed[0]?.nearest ?? [];

test("the nearest tool names are suggested", () => {
  assert.deepEqual(near("create_new_file"), ["read_file", "edit_file", "write_file"]);
  assert.deepEqual(near("runBash"), ["bash"]);
  assert.deepEqual(near("get_weather"), []);
});

for (const [what, text] of [
  ["a request that is shown", `Here is the request:\n${fence(json("fix_slugify"))}`],
  ["an example", `For example, I will send now:\n${fence(json("fix_slugify"))}`],
  ["a call followed by words", `${fence(json("fix_slugify"))}\nThis is what the log says.`],
  ["another language", `\`\`\`js\n${json("fix_slugify")}\n\`\`\``],
  ["a person", '{"name": "Ada", "arguments": {"for": "it computes", "against": "it tires"}}'],
  ["a package", '{"name": "slug", "version": "1.0.0", "scripts": {"test": "node --test"}}'],
  ["a definition", '{"name": "fix", "parameters": {"type": "object", "properties": {}}}'],
  ["foreign keys", '{"name": "fix", "arguments": {"a": 1}, "result": 2}'],
  ["arguments that are a list", '{"name": "tsc", "args": ["-p", "."]}'],
  ["code", '```tool_code\nprint("hello")\n```'],
  ["a data object", '{"answer": 42}'],
] as const)
  test(`JSON that is no call stays text: ${what}`, () => {
    const { calls, malformed, missed: told } = readCalls(text, TOOLS);
    assert.deepEqual([calls, malformed, told], [[], [], []]);
  });

test("without offered tools no call is reported as missed", () => {
  assert.deepEqual(readCalls(json("fix_slugify"), []).missed, []);
});

const STEPS = `First read the file:\n${fence(json("read_file"))}\nThen change it:\n`;

test("of several fenced calls among words none is run, and the first is reported", () => {
  const edit = fence(json("edit_file", { path: "a", old: "b", new: "c" }));
  for (const text of [STEPS + edit, `${STEPS}${edit}\nThat is all.`, STEPS + fence(json("fix_slugify"))]) {
    const { calls, malformed, missed: told, prose } = readCalls(text, TOOLS);
    assert.deepEqual([calls, malformed, prose], [[], [], text]);
    assert.deepEqual(
      told.map(({ missed: kind, name }) => `${kind} ${name}`),
      ["not_alone read_file"],
    );
    assert.match(told[0]?.reason ?? "", /only a call that stands alone is run/);
  }
});

test("a single fenced call, several without words between them, and quoted calls are read as usual", () => {
  const one = fence(json("read_file"));
  assert.equal(readCalls(`Let me look:\n${one}`, TOOLS).calls.length, 1);
  assert.equal(readCalls(`${one}\n${fence(json("bash", { command: "ls" }))}`, TOOLS).calls.length, 2);
  assert.deepEqual(missed(`${one}\nThat reads it.`), []);
  assert.deepEqual(
    missed(`The format is:\n${one}\nor, for example:\n${fence(json("bash"))}\nNothing else.`),
    [],
  );
});

test("nothing is run of a list that names an unknown tool", () => {
  assert.deepEqual(missed(`[${json("read_file")}, ${json("fix_slugify")}]`), [
    "not_alone read_file",
    "not_offered fix_slugify",
  ]);
});

test("of the text-only replies just five are reported: each is nothing but a call", () => {
  const told = ["sample", "text", "blind"]
    .flatMap(repliesIn)
    .filter(({ text, tools }) => readCalls(text, tools).missed.length > 0);
  assert.deepEqual(
    told.map(({ id }) => id),
    ["tp039", "t115", "t116", "t117", "t118"],
  );
});

test("a closing fence after a bare call, without an opening one, is ignored", () => {
  const call = json("read_file");
  for (const end of ["\n```", "\n```\n", "\n~~~ \n"]) {
    const { calls, prose } = readCalls(call + end, TOOLS);
    assert.deepEqual([calls.map(({ name }) => name), prose], [["read_file"], ""], end);
  }
  assert.equal(readCalls(`I look.\n${call}\n\`\`\``, TOOLS).prose, "I look.");
  // But not a fence that closes an opened one, nor one followed by words.
  for (const text of [`\`\`\`\nlike this:\n${call}\n\`\`\``, `${call}\n\`\`\`\nThat was an example.`])
    assert.deepEqual(readCalls(text, TOOLS).calls, [], text);
});
