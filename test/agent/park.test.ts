import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { remembering, unattended } from "../../src/agent/approvers.ts";
import { Limits } from "../../src/agent/limits.ts";
import { runLoop } from "../../src/agent/loop.ts";
import { Memory } from "../../src/agent/context/memory.ts";
import type { AgentContext } from "../../src/agent/agent-context.ts";
import type { Question } from "../../src/core/ports.ts";
import type { SessionRecord } from "../../src/core/session.ts";
import { type AnyTool, anyTool, NO_FACTS } from "../../src/core/tool.ts";
import { fakeAgent, type FakeAgent, type Line, resultsOf } from "../fakes/agent.ts";

const NEVER = new AbortController().signal;
const FAR = "curl http://example.com";

/** Runs nothing, and is judged by what it is given; what ran is in `ran`. */
function shell(ran: string[], concurrent = false): AnyTool {
  return anyTool({
    name: "sh",
    description: "",
    input: z.object({ command: z.string() }),
    facts: ({ command }) => ({ ...NO_FACTS, commands: [command] }),
    concurrent,
    where: "session",
    run: ({ command }) => {
      ran.push(command);
      return Promise.resolve({ kind: "ok", text: `ran ${command}` });
    },
  });
}

const sh = (...commands: readonly string[]): Line => ({
  calls: commands.map((command) => ["sh", { command }] as const),
});

interface Setting {
  readonly lines: readonly Line[];
  readonly ran: string[];
  readonly concurrent?: boolean;
  readonly over?: Partial<AgentContext>;
}

const agentWith = ({ lines, ran, concurrent = false, over = {} }: Setting): FakeAgent =>
  fakeAgent({ lines, tools: [shell(ran, concurrent)], over: { approver: unattended("park"), ...over } });

/** Another process that goes on from what the first has recorded. */
function again(
  records: readonly SessionRecord[],
  ran: string[],
  said?: { question: Question; runs: boolean },
) {
  const memory = new Memory("/work", records, () => undefined, { open: "come" });
  const approver = remembering(
    said === undefined ? { always: [] } : { always: [], once: said },
    unattended("park"),
  );
  return agentWith({
    lines: [],
    ran,
    over: { history: memory.history, rollBack: (to) => memory.rollBack(to), approver },
  });
}

async function parked(setting: Setting) {
  const agent = agentWith(setting);
  agent.history.add({ role: "user", text: "go" });
  const end = await runLoop(agent, NEVER);
  assert.ok(end.how === "parked");
  return { agent, end };
}

test("the loop stops at a question: earlier calls have their results, later ones do not run", async () => {
  const ran: string[] = [];
  const { agent, end } = await parked({ lines: [sh("ls", FAR, "pwd")], ran });
  assert.deepEqual([ran, resultsOf(agent)], [["ls"], ["ran ls"]]);
  assert.deepEqual([end.waiting.question.text, end.waiting.question.args], [FAR, { command: FAR }]);
  assert.match(end.reason, /curl.*\(/);
  assert.equal(agent.limits.calls, 1);
  assert.equal(agent.asked.length, 1);
  const told = (): readonly string[] =>
    agent.events
      .filter(({ type }) => type === "call.parked" || type === "call.decided")
      .map(({ type }) => type);
  assert.deepEqual(told(), ["call.decided"]);
  // Whoever has kept the question has it told.
  for (const tell of agent.onceParked) tell();
  assert.deepEqual(told(), ["call.decided", "call.parked"]);
});

test("with the answer, the remaining calls run and then the model continues", async () => {
  const ran: string[] = [];
  const { agent, end } = await parked({ lines: [sh("ls", FAR, "pwd")], ran });
  const next = again(agent.records, ran, { question: end.waiting.question, runs: true });
  const over = await runLoop(next, NEVER, { malformed: [], note: "a person was asked" });
  assert.deepEqual([over.how, ran], ["answered", ["ls", FAR, "pwd"]]);
  assert.deepEqual(resultsOf(next), ["ran ls", `ran ${FAR}`, "ran pwd\n\n[harness] a person was asked"]);
  assert.equal(next.asked.length, 1);
});

test("a no is reported as the user's, and later calls still run", async () => {
  const ran: string[] = [];
  const { agent, end } = await parked({ lines: [sh(FAR, "pwd")], ran });
  const next = again(agent.records, ran, { question: end.waiting.question, runs: false });
  await runLoop(next, NEVER, { malformed: [] });
  assert.deepEqual(ran, ["pwd"]);
  assert.match(resultsOf(next)[0] ?? "", /^The user said no/);
});

test("without an answer the run parks again, and with one it parks at the next question", async () => {
  const ran: string[] = [];
  const { agent, end } = await parked({ lines: [sh(FAR, `${FAR}/b`)], ran });
  assert.equal((await runLoop(again(agent.records, ran), NEVER, { malformed: [] })).how, "parked");
  const next = again(agent.records, ran, { question: end.waiting.question, runs: true });
  const second = await runLoop(next, NEVER, { malformed: [] });
  assert.ok(second.how === "parked" && second.waiting.question.text === `${FAR}/b`);
  assert.deepEqual(ran, [FAR]);
});

test("parallel calls that need no person keep their results", async () => {
  const ran: string[] = [];
  const { agent, end } = await parked({ lines: [sh(FAR, "ls", `${FAR}/b`, "pwd")], ran, concurrent: true });
  assert.deepEqual([ran, end.waiting.question.text], [["ls", "pwd"], FAR]);
  assert.deepEqual(resultsOf(agent), ["ran ls", "ran pwd"]);
  assert.equal(agent.limits.calls, 2);
  assert.deepEqual(
    agent.history.openReply?.calls.map(({ args }) => args["command"]),
    [FAR, `${FAR}/b`],
  );
});

test("cancelling a resumed run takes back the whole turn", async () => {
  const ran: string[] = [];
  const { agent } = await parked({ lines: [sh("ls", FAR)], ran });
  const cancelled = AbortSignal.abort();
  const next = again(agent.records, ran);
  assert.equal((await runLoop(next, cancelled, { malformed: [] })).how, "cancelled");
  assert.deepEqual(next.history.messages, [{ role: "user", text: "go" }]);
});

test("malformed calls of the reply are reported when the run resumes", async () => {
  const ran: string[] = [];
  const malformed = [{ id: "m1", name: "sh", reason: "it was cut" }];
  const { agent, end } = await parked({ lines: [{ ...sh(FAR), malformed }], ran });
  assert.deepEqual(end.waiting.malformed, malformed);
  const next = again(agent.records, ran, { question: end.waiting.question, runs: true });
  await runLoop(next, NEVER, { malformed });
  assert.match(resultsOf(next)[0] ?? "", /Your call of sh was not run: it was cut/);
});

test("limits continue from where they were", () => {
  let now = 1000;
  const first = new Limits({ turns: 10, calls: 5, ms: 10_000 }, () => now);
  first.turn();
  first.call();
  first.call();
  first.uncall();
  now = 4000;
  const sofar = first.sofar();
  const later = new Limits(first.values, () => now);
  now = 90_000;
  later.resume(sofar);
  assert.deepEqual([later.turns, later.calls, later.remainingMs()], [1, 1, 7000]);
  assert.deepEqual(later.sofar(), { turns: 1, calls: 1, ms: 3000, tokens: 0, cost: 0, told: [] });
});
