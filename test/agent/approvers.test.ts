import assert from "node:assert/strict";
import test from "node:test";
import { remembering, unattended } from "../../src/agent/approvers.ts";
import type { Mode } from "../../src/core/decision.ts";
import type { Question } from "../../src/core/ports.ts";

const NEVER = new AbortController().signal;

const question = (over: Partial<Question> = {}, contained = false): Question => ({
  call: "c1",
  tool: "bash",
  args: { command: "curl x" },
  text: "curl x",
  decision: {
    decision: "ask",
    contained,
    rules: [{ id: "network", reason: "it reaches out", span: [0, 4] }],
  },
  mode: "workspace-write",
  writes: false,
  ...over,
});

const parking = unattended("park");

const answerOf = async (mode: Mode, contained: boolean, writes = false): Promise<unknown> => {
  const answer = await parking.ask(question({ mode, writes }, contained), NEVER);
  return answer === "waits" ? answer : [answer.runs, answer.by];
};

test("park has what is contained run as it would, and the rest wait", async () => {
  assert.deepEqual(await answerOf("workspace-write", true), [true, "contained"]);
  assert.equal(await answerOf("workspace-write", false), "waits");
  assert.deepEqual(await answerOf("danger-full-access", false), [true, "mode"]);
  assert.equal(await answerOf("read-only", false), "waits");
  assert.deepEqual(await answerOf("read-only", true), [false, "nobody"]);
  assert.deepEqual(await answerOf("read-only", false, true), [false, "nobody"]);
});

test("an answer is for the call that waited, and for it once", async () => {
  const approver = remembering({ always: [], once: { question: question(), runs: true } }, parking);
  assert.equal(await approver.ask(question({ call: "c2" }), NEVER), "waits");
  assert.deepEqual(await approver.ask(question(), NEVER), { runs: true, by: "person", reason: "" });
  assert.equal(await approver.ask(question(), NEVER), "waits");
});

const others: readonly (readonly [string, Partial<Question>])[] = [
  ["another text", { text: "curl y" }],
  ["another tool", { tool: "fetch" }],
  ["another folder", { folder: "/elsewhere" }],
  ["another mode", { mode: "read-only" }],
  ["another reason", { decision: { decision: "ask", contained: false, rules: [] } }],
];
for (const [what, over] of others)
  test(`a yes is not for ${what}`, async () => {
    const once = { question: question(), runs: true };
    const approver = remembering({ always: [question()], once }, parking);
    assert.equal(await approver.ask(question(over), NEVER), "waits");
  });

test("a yes for the session is for every call of the same", async () => {
  const approver = remembering({ always: [question()] }, parking);
  for (const call of ["c1", "c2", "c2"]) {
    const answer = await approver.ask(question({ call }), NEVER);
    assert.ok(answer !== "waits" && answer.runs && answer.by === "person");
  }
});

test("a no holds for its call, whatever the policy says of it by then", () => {
  const refusing = remembering({ always: [], once: { question: question(), runs: false } }, parking);
  const other: Question = { ...question(), decision: { decision: "allow", contained: true, rules: [] } };
  assert.deepEqual(refusing.refuses?.(other), { runs: false, by: "person", reason: "" });
  assert.equal(refusing.refuses?.({ ...other, call: "c2" }), undefined);
  const allowing = remembering({ always: [], once: { question: question(), runs: true } }, parking);
  assert.equal(allowing.refuses?.(other), undefined);
});

test("a yes to a call is for its arguments, where its text does not tell them too", async () => {
  const tool = { tool: "tracker__close", text: "tracker__close" };
  const asked = question({ ...tool, args: { id: 7, why: { a: 1, b: 2 } } });
  const answer = (args: Question["args"]) =>
    remembering({ always: [], once: { question: asked, runs: true } }, parking).ask(
      question({ ...tool, args }),
      NEVER,
    );
  assert.equal(await answer({ id: 8, why: { a: 1, b: 2 } }), "waits");
  assert.deepEqual(await answer({ id: 7, why: { a: 1, b: 2 } }), { runs: true, by: "person", reason: "" });
});

test("an edited command comes in place of the call that waited, once, and is asked about as any", async () => {
  const once = { question: question(), runs: true, edited: "curl y" };
  const approver = remembering({ always: [], once }, parking);
  assert.equal(approver.refuses?.(question({ call: "c2" })), undefined);
  assert.equal(approver.refuses?.(question())?.edited, "curl y");
  assert.equal(approver.refuses?.(question()), undefined);
  const asked = question({ args: { command: "curl y" }, text: "curl y", replaces: "curl x" });
  assert.equal(await approver.ask(asked, NEVER), "waits");
});

for (const runs of [true, false])
  test(`where the edited one has waited, a ${runs ? "yes" : "no"} is for it and not for the model's`, async () => {
    const waited = question({ args: { command: "curl y" }, text: "curl y", replaces: "curl x" });
    const approver = remembering({ always: [], once: { question: waited, runs } }, parking);
    assert.equal(approver.refuses?.(question())?.edited, "curl y");
    const answer = approver.refuses?.(waited) ?? (await approver.ask(waited, NEVER));
    assert.deepEqual(answer, { runs, by: "person", reason: "" });
  });
