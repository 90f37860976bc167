import assert from "node:assert/strict";
import test from "node:test";
import { askUserTool } from "../../src/tools/ask-user.ts";
import { toolsFor } from "../../src/tools/index.ts";
import type { AskPerson } from "../../src/tools/tool-context.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";

const never = new AbortController().signal;

async function answered(person: AskPerson, args: unknown) {
  const read = askUserTool(person).prepare(args);
  if (read.kind === "invalid") return read.kind;
  const { facts, run } = read.state();
  const result = await run(() => assert.fail("no box is wanted"), never);
  return [result.kind, result.text, facts.commands.length + facts.writes.length];
}

test("the model receives the person's answer, and nothing else happens", async () => {
  const told: unknown[] = [];
  const person: AskPerson = (asked) => {
    told.push(asked);
    return Promise.resolve("the second");
  };
  assert.deepEqual(await answered(person, { question: "Which?", choices: ["a", "b"] }), [
    "ok",
    "the second",
    0,
  ]);
  assert.deepEqual(told, [{ question: "Which?", choices: ["a", "b"] }]);
});

test("without an answer the model is told to continue by itself", async () => {
  const [kind, text] = await answered(() => Promise.resolve(undefined), { question: "Which?" });
  assert.equal(kind, "failed");
  assert.match(String(text), /gave no answer/);
});

const none: AskPerson = () => assert.fail("nobody is asked");

test("a call asks one question, with at most four choices", async () => {
  for (const args of [
    {},
    { question: "" },
    { question: "x".repeat(2001) },
    { question: "a", choices: ["a", "b", "c", "d", "e"] },
  ])
    assert.equal(await answered(none, args), "invalid");
});

const names = (person?: AskPerson): readonly string[] =>
  toolsFor(fakeToolContext(person === undefined ? {} : { person })).map(({ name }) => name);

test("the tool is offered only where a person is present", () => {
  assert.ok(!names().includes("ask_user"));
  assert.ok(names(() => Promise.resolve(undefined)).includes("ask_user"));
});
