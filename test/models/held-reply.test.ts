import assert from "node:assert/strict";
import test from "node:test";
import type { Hold, ModelRequest, ToolOffer } from "../../src/core/model-provider.ts";
import { HeldReply, heldSchema, withForm } from "../../src/models/held-reply.ts";
import { CallStream } from "../../src/models/text-calls/text-call-stream.ts";

const offer = (name: string, schema: object): ToolOffer => ({
  name,
  description: name,
  schema: { ...schema },
});
const EDIT = offer("edit_file", {
  type: "object",
  properties: {
    path: { type: "string", description: "the file" },
    count: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], default: 1 },
    edits: { type: "array", items: { type: "object", properties: { old: { type: "string" } } } },
    any: { $ref: "#/$defs/x" },
  },
  required: ["path"],
});
const READ = offer("read_file", {
  type: "object",
  properties: { path: { type: "string" } },
  required: ["path"],
});
const TEXT = { type: "string" };
const EDIT_LINE = offer("edit_file", {
  type: "object",
  properties: { path: TEXT, old: TEXT, new: TEXT, all: { type: "boolean" } },
});
const MAP = offer("set", { type: "object", additionalProperties: { type: "string", title: "x" } });

const callOf = (name: string, args: object): object => ({
  type: "object",
  properties: { tool: { type: "string", const: name }, arguments: args },
  required: ["tool", "arguments"],
  additionalProperties: false,
});

test("when a certain file must be written, a call can write no other", () => {
  const write = offer("write_file", { type: "object", properties: { path: TEXT, content: TEXT } });
  const held = (hold: Hold): string => JSON.stringify(heldSchema({ tools: [write], hold }));
  const path = '"path":{"type":"string","enum":["a.c"]}';
  assert.ok(held({ writes: "a.c" }).includes(path));
  assert.ok(held({ writes: "a.c", paths: ["b.c", "a.c"] }).includes(path));
  assert.ok(!held({ paths: ["a.c"] }).includes(path), "the path may be that of a new file");
});

test("the schema is a choice between the offered tools and an answer, without descriptions", () => {
  assert.deepEqual(heldSchema({ tools: [EDIT, MAP] }), {
    anyOf: [
      callOf("edit_file", {
        type: "object",
        required: ["path"],
        properties: {
          path: { type: "string" },
          count: { anyOf: [{ type: "integer" }, { type: "null" }] },
          edits: {
            type: "array",
            items: { type: "object", properties: { old: { type: "string" } }, additionalProperties: false },
          },
          any: {},
        },
        additionalProperties: false,
      }),
      callOf("set", { type: "object", additionalProperties: { type: "string" } }),
      {
        type: "object",
        properties: { answer: { type: "string" } },
        required: ["answer"],
        additionalProperties: false,
      },
    ],
  });
});

const some = (count: number, length: number): boolean =>
  JSON.stringify(
    heldSchema({ tools: [EDIT], hold: { paths: Array.from({ length: count }, () => "x".repeat(length)) } }),
  ).includes('"enum"');

test("a few paths become an enum, and many or long ones do not", () => {
  assert.deepEqual(
    [some(0, 1), some(1, 1), some(200, 10), some(201, 10), some(100, 1000)],
    [false, true, true, false, false],
  );
});

const texts = (role: "user" | "assistant"): readonly string[] => {
  const last = role === "user" ? { role, text: "b" } : { role, text: "b", calls: [] };
  const request: ModelRequest = {
    model: "m",
    messages: [{ role: "user", text: "a" }, last],
    tools: [EDIT],
  };
  return withForm(request).messages.map(({ text }) => text.slice(0, 26));
};

/** Each choice: the tool with the allowed values of its arguments. */
const namesIn = (hold: Hold): readonly string[] => {
  const { anyOf } = heldSchema({ tools: [READ, EDIT_LINE], hold }) as unknown as {
    readonly anyOf: readonly { readonly properties: Readonly<Record<string, Choice>> }[];
  };
  return anyOf.map(({ properties: { tool, arguments: args } }) =>
    [
      tool?.const ?? "answer",
      ...Object.entries(args?.properties ?? {}).map(
        ([key, of]) => `${key}${of.enum === undefined ? "" : `=${of.enum.join("|")}`}`,
      ),
    ].join(" "),
  );
};

interface Choice {
  readonly const?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Choice>>;
}

test("where a call is required an answer is no choice, and files already shown are edited by line and not read again", () => {
  const paths = ["a", "b"];
  const shown = { a: ["x = 1", "y = 2"] };
  assert.deepEqual(namesIn({}), ["read_file path", "edit_file path old new all", "answer"]);
  assert.deepEqual(namesIn({ call: true }), ["read_file path", "edit_file path old new all"]);
  assert.deepEqual(namesIn({ paths, shown }), [
    "read_file path=b",
    "edit_file path=a old=x = 1|y = 2 new all",
    "edit_file path=b old new all",
    "answer",
  ]);
  assert.deepEqual(namesIn({ paths, shown: { a: [], b: ["z"] } }), [
    "edit_file path=b old=z new all",
    "edit_file path=a old new all",
    "answer",
  ]);
  assert.deepEqual(namesIn({ paths: ["a"], shown: { a: ["x".repeat(20_000)] } }), [
    "edit_file path=a old new all",
    "answer",
  ]);
  // Without a list of paths it is unknown which files are left to read.
  assert.deepEqual(namesIn({ shown }), ["read_file path", "edit_file path old new all", "answer"]);
  assert.deepEqual(namesIn({ arguments: { edit_file: ["path", "old", "gone"] } }), [
    "read_file path",
    "edit_file path old",
    "answer",
  ]);
  // Nothing is left to be called.
  assert.deepEqual(namesIn({ call: true, without: ["read_file", "edit_file"] }), ["answer"]);
  const asked = { model: "m", tools: [], messages: [{ role: "user" as const, text: "Go." }] };
  assert.match(withForm({ ...asked, hold: { call: true } }).messages[0]?.text ?? "", /to call a tool\.$/);
});

test("the requested format is explained at the end of the last message, or in a new one", () => {
  assert.deepEqual(texts("user"), ["a", "b\n\nReply with one JSON obj"]);
  assert.deepEqual(texts("assistant"), ["a", "b", "Reply with one JSON object"]);
});

function read(text: string, size = text.length) {
  const reply = new HeldReply([EDIT], new CallStream([EDIT]));
  let shown = "";
  for (let at = 0; at < text.length; at += size) shown += reply.push(text.slice(at, at + size));
  const { calls, malformed, missed = [], prose } = reply.end();
  return { shown, calls, malformed, missed, prose };
}

const REPLIES: readonly string[] = [
  '{"tool": "edit_file", "arguments": {"path": "a", "count": "2"}}',
  '{"reply": {"tool": "editFile", "arguments": {"path": "a"}}}',
  '{"answer": "Two\\nlines, \\"quoted\\", \\ud83d\\ude00, a lone \\ud83d half"}',
  ' { "reply" : { "answer" : "x" } }',
  '{"answer": "cut in its mid',
  '{"answer": "cut in an escape \\u00',
  '{"tool": "edit_file", "arguments": {"path": "a',
  '{"tool": "edit_file", "arguments": {"path": "a", "path": "b"}}',
  '{"tool": "mend", "arguments": {}}',
  '{"tool": "edit_file", "arguments": {}, "answer": "x"}',
  '{"name": "edit_file", "arguments": {"path": "a"}}',
  "Plain words.",
  "",
];

test("splitting a reply into pieces changes nothing, and the displayed text is the beginning of the prose", () => {
  for (const text of REPLIES) {
    const { shown: _, ...whole } = read(text);
    for (const size of [1, 2, 3, 7]) {
      const { shown, ...pieced } = read(text, size);
      assert.deepEqual(pieced, whole, text);
      assert.ok(whole.prose.startsWith(shown), `${text}: ${shown}`);
    }
  }
});

test("each reply is read as a call, a malformed call or an answer", () => {
  const told = REPLIES.map((text) => {
    const { calls, malformed, missed, prose } = read(text);
    const bad = [...malformed, ...missed].map(({ name, missed: kind = "unread" }) => `${kind} ${name}`);
    return [...calls.map(({ name, args }) => `${name} ${JSON.stringify(args)}`), ...bad, prose].join(" | ");
  });
  assert.deepEqual(told, [
    'edit_file {"path":"a","count":2} | ',
    'edit_file {"path":"a"} | ',
    'Two\nlines, "quoted", 😀, a lone \ud83d half',
    "x",
    "cut in its mid",
    "cut in an escape ",
    "unread edit_file | ",
    "unread edit_file | ",
    "not_offered mend | ",
    '{"tool": "edit_file", "arguments": {}, "answer": "x"}',
    'edit_file {"path":"a"} | ',
    "Plain words.",
    "",
  ]);
});

test("a call inside an answer is not run, and is reported as no answer", () => {
  const call = JSON.stringify({ name: "edit_file", arguments: { path: "a" } });
  const { calls, malformed, prose } = read(
    JSON.stringify({ answer: `I mend it.\n<tool_call>${call}</tool_call>` }),
  );
  assert.deepEqual(calls, []);
  assert.deepEqual(
    malformed.map(({ name, missed }) => [name, missed]),
    [["edit_file", "not_alone"]],
  );
  assert.match(prose, /^I mend it\.\n<tool_call>/);
  assert.deepEqual(read(JSON.stringify({ answer: `The form is \`${call}\`.` })).malformed, []);
});
