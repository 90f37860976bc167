import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { EXIT } from "../../src/core/errors.ts";
import type { Message } from "../../src/core/model-provider.ts";
import { readScenario, scenarioFrom } from "../../src/models/providers/scenario.ts";
import { scriptedCapabilities, ScriptedWire } from "../../src/models/providers/scripted-api.ts";
import { calls, failed, finished, REQUEST } from "../contract/provider-ask.ts";
import { asked } from "./ask.ts";

const wireOf = (...lines: readonly string[]): ScriptedWire =>
  new ScriptedWire(scenarioFrom(lines.join("\n"), "s.jsonl"));

const user = (text: string): readonly Message[] => [{ role: "user", text }];

test("each step answers one request, across several lines and between comments", async () => {
  const wire = wireOf(
    "// first",
    '{"reply": ["one"]}',
    "",
    "  // second",
    '{"reply": [',
    '  "tw", {"text": "o"}',
    "]}",
  );
  assert.deepEqual([(await asked(wire)).text, (await asked(wire)).text], ["one", "two"]);
});

test("a scenario without steps left fails and says so", async () => {
  const wire = wireOf('{"reply": ["one"]}');
  await asked(wire);
  const { kind, reason } = failed(await asked(wire)).failure;
  assert.deepEqual([kind, reason], ["server", "s.jsonl has no step for request 2"]);
});

test("steps and loops of steps are repeated, and know the number of the request", async () => {
  const wire = wireOf(
    '{"repeat": 2, "steps": [{"reply": ["a{{request}}"]}, {"repeat": 2, "reply": ["b"]}]}',
    '{"repeat": "forever", "reply": ["c"]}',
  );
  let said = "";
  for (let request = 0; request < 9; request += 1) said += (await asked(wire)).text;
  assert.equal(said, "a1bba4bbccc");
});

test("a step addressed to one conversation waits for it, and other steps serve any other", async () => {
  const wire = wireOf(
    '{"to": "CHILD a", "reply": ["a1"]}',
    '{"reply": ["p1"]}',
    '{"repeat": 2, "steps": [{"to": "CHILD b", "reply": ["b"]}, {"reply": ["p2"]}]}',
    '{"to": "CHILD a", "reply": ["a2"]}',
  );
  const said: string[] = [];
  for (const first of [
    "CHILD b, look",
    "parent of CHILD a",
    "CHILD a",
    "parent",
    "CHILD b",
    "CHILD a: go",
    "parent",
  ])
    said.push((await asked(wire, {}, { messages: [...user(first), ...user("CHILD x")] })).text);
  assert.deepEqual(said, ["b", "p1", "a1", "p2", "b", "a2", "p2"]);
  const { reason } = failed(await asked(wire, {}, { messages: user("CHILD b") })).failure;
  assert.equal(reason, "s.jsonl has no step for request 8");
});

test("a request that does not match its step fails, with the step and the difference", async () => {
  const cases = [
    ['{"user": "mend"}', 'the last message of the user should contain "mend"; there is: "please fix"'],
    [
      '{"user": {"not": "fix"}}',
      'the last message of the user should not contain "fix"; there is: "please fix"',
    ],
    ['{"any": [{"matches": "^p"}, {"matches": "x$"}]}', null],
    ['{"any": {"matches": "^x"}}', 'some message should match /^x/su; there is: "please fix"'],
    [
      '{"tools": ["list_dir", "launch"]}',
      "the tool launch should be offered; there are: list_dir, read_file, write_file",
    ],
    ['{"think": false}', "thinking should be false; it is: left to the model"],
  ] as const;
  for (const [expect, reason] of cases) {
    const answer = await asked(
      wireOf("", `{"expect": ${expect}, "reply": ["ok"]}`),
      {},
      { messages: user("please fix") },
    );
    if (reason === null) assert.equal(answer.text, "ok");
    else assert.equal(failed(answer).failure.reason, `s.jsonl:2: request 1: ${reason}`);
  }
});

test("the tool results of a request are those since the last reply", async () => {
  const messages: readonly Message[] = [
    ...REQUEST.messages.slice(0, 4),
    { role: "assistant", text: "", calls: [{ id: "b", name: "list_dir", args: {} }] },
    { role: "tool", call: "b", text: "new" },
  ];
  const wire = wireOf('{"expect": {"tool": ["new", {"not": "main.ts"}]}, "reply": ["ok"]}');
  assert.equal((await asked(wire, {}, { messages })).text, "ok");
});

test("a model without tools refuses them, uses up no step, and writes its calls as text", async () => {
  const wire = wireOf(
    '{"capabilities": {"tools": false}}',
    '{"reply": [{"call": "list_dir", "args": {"path": "{{request}}"}}]}',
  );
  const answer = await asked(wire);
  assert.deepEqual(calls(answer), [{ name: "list_dir", args: { path: "1" } }]);
  assert.equal(finished(answer).usage.requests, 2);
});

test("a scripted model's capabilities come from its file, with defaults", () => {
  const { capabilities } = scenarioFrom('{"capabilities": {"context": 4096}}\n{"reply": []}', "s");
  assert.deepEqual(scriptedCapabilities({ file: "s", steps: [], capabilities }), {
    context: 4096,
    tools: true,
    calls: "native",
    thinking: true,
    cache: true,
    origin: { context: "user", tools: "table", calls: "table", thinking: "table", cache: "table" },
  });
});

const FAULTS = [
  ["", "1: there are no steps"],
  ['{"reply": ["a"]}\n\n{"reply": ,}', "3: this is not JSON"],
  ['// x\n{"reply": ["a"', "2: a bracket or a quote that opens here is never closed"],
  ['{"reply": ["a"], "reply": ["b"]}', '1: the key "reply" appears twice'],
  ['{"replies": []}', "1: reply: expected a list of parts"],
  ['{"reply": [], "x": 1}', '1: Unrecognized key: "x"'],
  [
    '{"reply": ["a", {"txt": "b"}]}',
    "1: reply.1: expected text, or an object with one of text, thinking, call",
  ],
  ['{"reply": [{"text": "a", "thinking": "b"}]}', "1: reply.0: expected text, or an object with one of"],
  ['{"reply": [{"fail": "bored"}]}', "1: reply.0.fail: expected one of unreachable, unauthorised"],
  ['{"reply": [{"delay": "soon"}]}', "1: reply.0.delay: expected a duration such as"],
  ['{"reply": [], "expect": {"any": {"matches": "("}}}', "1: expect.any: "],
  ['{"reply": [], "repeat": 0}', '1: repeat: expected a whole number from 1 up, or "forever"'],
  ['{"steps": []}', "1: steps: expected a list of steps"],
  ['{"steps": [{"reply": 1}]}', "1: reply: expected a list of parts"],
  ['{"reply": []}\n{"capabilities": {}}', "2: capabilities must come before the first step"],
] as const;

for (const [text, message] of FAULTS)
  test(`a fault is reported with its line: ${message}`, () => {
    assert.throws(
      () => scenarioFrom(text, "s.jsonl"),
      (thrown: { message: string; exit: number }) => {
        assert.equal(thrown.message.slice(0, `s.jsonl:${message}`.length), `s.jsonl:${message}`);
        assert.equal(thrown.exit, EXIT.usage);
        return true;
      },
    );
  });

const examples = path.join(import.meta.dirname, "../../examples");

for (const file of readdirSync(examples).filter((name) => name.endsWith(".jsonl")))
  test(`examples/${file} is a scenario`, () => {
    assert.ok(readScenario(path.join(examples, file)).steps.length > 0);
  });

test("the example of server faults ends well", async () => {
  const wire = new ScriptedWire(readScenario(path.join(examples, "scripted-faults.jsonl")));
  const answer = await asked(wire);
  assert.equal(answer.text, "All is well in the end.");
  assert.equal(finished(answer).usage.requests, 5);
});

test("a file that cannot be read is reported", () => {
  assert.throws(() => readScenario("/nowhere/s.jsonl"), {
    exit: EXIT.usage,
    message: /cannot read the scenario \/nowhere/,
  });
});
