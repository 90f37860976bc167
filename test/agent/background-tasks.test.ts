import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { resumeRequest, type RunRequest, runRequest } from "../../src/agent/agent-run.ts";
import { remembering, unattended } from "../../src/agent/approvers.ts";
import { WriteOrder } from "../../src/agent/background-tasks.ts";
import { Limits } from "../../src/agent/limits.ts";
import { runLoop } from "../../src/agent/loop.ts";
import { Memory } from "../../src/agent/context/memory.ts";
import { EXIT, HarnessError, Interrupted } from "../../src/core/errors.ts";
import {
  type AnyTool,
  anyTool,
  type Hooks,
  NO_FACTS,
  NO_HOOKS,
  type ToolResult,
} from "../../src/core/tool.ts";
import type { Parked, SessionRecord } from "../../src/core/session.ts";
import { toolsFor } from "../../src/tools/index.ts";
import { typedText } from "../../src/app/run/person-request.ts";
import { type Line, resultsOf } from "../fakes/agent.ts";
import { fakeBox } from "../fakes/box.ts";
import { crew, type Crew } from "../fakes/crew.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";
import { held } from "../fixtures/tool-calls.ts";

const NEVER = new AbortController().signal;
const FAR = "curl http://example.com";

type Does = (command: string, signal: AbortSignal) => Promise<unknown> | undefined;

/** Is judged by its command, and does what a test says. */
const shell = (ran: string[], does: Does = () => undefined): AnyTool =>
  anyTool({
    name: "sh",
    description: "",
    input: z.object({ command: z.string() }),
    facts: ({ command }) => ({ ...NO_FACTS, commands: [command] }),
    concurrent: false,
    where: "session",
    run: async ({ command }, signal): Promise<ToolResult> => {
      ran.push(command);
      await does(command, signal);
      return { kind: "ok", text: `ran ${command}` };
    },
  });

const sh = (...commands: readonly string[]): Line => ({
  calls: commands.map((command) => ["sh", { command }] as const),
});
const task = (args: Readonly<Record<string, unknown>>): Line => ({ calls: [["task", args]] });
const begin = (prompt: string, more = {}): Line => task({ prompt, background: true, ...more });

const notices = ({ events }: Crew): readonly string[] =>
  events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
const statuses = ({ told }: Crew): readonly string[] =>
  told.flatMap((event) =>
    event.type === "task" ? [`${event.agent} ${event.task ?? "-"} ${event.status}`] : [],
  );

const until = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

function play(agent: Crew, signal = NEVER) {
  agent.history.add({ role: "user", text: "go" });
  return runLoop(agent, signal);
}

/** When one of its tasks has ended well. */
async function isDone(agent: Crew | undefined): Promise<void> {
  while (agent?.told.some((event) => event.type === "task" && event.status === "done") !== true)
    await new Promise(setImmediate);
}

test("a background task starts at once, and its report is delivered once, with the next results", async () => {
  const ran: string[] = [];
  const late: { agent?: Crew } = {};
  const agent = crew({
    lines: [
      begin("look"),
      sh("ls"),
      { ...sh("pwd"), before: () => isDone(late.agent) },
      sh("ls"),
      { text: "done" },
    ],
    children: { look: [sh("cat a"), { text: "it has one line" }] },
    tools: () => [shell(ran)],
  });
  late.agent = agent;
  assert.deepEqual((await play(agent)).how, "answered");
  const [begun = "", ...others] = resultsOf(agent);
  assert.match(begun, /^\[t1 is running\. .*"task":"t1"/);
  const report = "\n\n[harness] t1 has ended. Its report:\nit has one line";
  assert.equal(others.filter((text) => text.endsWith(report)).length, 1, others.join("\n"));
  assert.equal(others.join("").split("it has one line").length, 2);
  assert.deepEqual(statuses(agent), ["a1 t1 begun", "a1 t1 done"]);
  assert.deepEqual([agent.memory.tasks.open, notices(agent)], [[], []]);
  assert.ok(ran.includes("cat a") && ran.includes("pwd"));
});

test("the state of a task can be polled and waited for, and shows nothing but its report", async () => {
  const gate = Promise.withResolvers<void>();
  const agent = crew({
    lines: [
      begin("look", { max_turns: 4 }),
      task({ task: "t1" }),
      { ...task({ task: "t1", timeout: 600 }), before: () => void setImmediate(gate.resolve) },
      task({ task: "t1" }),
      task({ task: "t7" }),
      { text: "done" },
    ],
    children: { look: [{ text: "seen", before: () => gate.promise }] },
  });
  assert.equal((await play(agent)).how, "answered");
  assert.deepEqual(resultsOf(agent).slice(1), [
    "[t1 is running, 0 ms, turn 1 of 4]",
    "[t1 has ended, 0 ms]\nseen",
    "[t1 has ended, 0 ms]\nseen",
    'no task "t7"; there are t1 (ended)',
  ]);
});

test("waiting for a task ends after the timeout", async () => {
  const agent = crew({
    lines: [
      begin("look"),
      task({ task: "t1", timeout: 1 }),
      task({ task: "t1", cancel: true }),
      { text: "done" },
    ],
    children: { look: [{ before: () => new Promise(() => undefined) }] },
  });
  assert.equal((await play(agent)).how, "answered");
  assert.match(resultsOf(agent)[1] ?? "", /^\[t1 is running/);
});

test("cancelling a task ends its running call, and the run continues", async () => {
  const ran: string[] = [];
  const began = Promise.withResolvers<void>();
  const agent = crew({
    lines: [
      begin("wait"),
      { ...task({ task: "t1", cancel: true }), before: () => began.promise },
      task({ task: "t1", cancel: true }),
      { text: "done" },
    ],
    children: { wait: [sh("sleep 100"), sh("touch later")] },
    tools: () => [
      shell(ran, (command, signal) => (began.resolve(), command === "sleep 100" ? until(signal) : undefined)),
    ],
  });
  assert.equal((await play(agent)).how, "answered");
  assert.match(resultsOf(agent)[1] ?? "", /^\[t1 was cancelled\. /);
  assert.deepEqual([ran, statuses(agent).at(-1)], [["sleep 100"], "a1 t1 cancelled"]);
});

test("three tasks may run at once, a fourth is refused until one ends, and each has its own number", async () => {
  const gate = Promise.withResolvers<void>();
  const waits = [{ text: "ok", before: () => gate.promise }] as const;
  const agent = crew({
    lines: [
      { calls: ["a", "b", "c", "d"].map((prompt) => ["task", { prompt, background: true }] as const) },
      { ...task({ task: "t1", timeout: 600 }), before: () => gate.resolve() },
      begin("d"),
      { text: "done" },
      { text: "done" },
    ],
    children: { a: waits, b: [...waits], c: [...waits], d: [{ text: "d is done" }] },
  });
  assert.equal((await play(agent)).how, "answered");
  const texts = resultsOf(agent);
  assert.match(texts[3] ?? "", /^3 tasks are running \(t1, t2, t3\): wait for one, or cancel one/);
  assert.match(texts[5] ?? "", /^\[t4 is running/);
});

test("an answer while tasks still run is challenged once; after the second answer the tasks are stopped and named", async () => {
  const ran: string[] = [];
  const agent = crew({
    lines: [begin("go on"), { text: "I have begun it" }, { text: "never mind" }],
    children: { "go on": [sh("sleep 100"), sh("touch later")] },
    tools: () => [shell(ran, (_, signal) => until(signal))],
  });
  const end = await play(agent);
  assert.deepEqual(end, { how: "answered", text: "never mind" });
  const told = agent.history.messages.at(-2)?.text ?? "";
  assert.match(told, /^\[harness\] Still running in the background: t1 \(go on\)\. Wait/);
  assert.ok(notices(agent).includes("Background tasks stopped before they were done: t1 (go on)"));
  assert.ok(!ran.includes("touch later"));
  assert.equal(statuses(agent).at(-1), "a1 t1 cancelled");
});

test("a report that arrives after the last results is delivered before an answer is accepted", async () => {
  const agent = crew({
    lines: [begin("look"), { text: "done", before: () => new Promise(setImmediate) }, { text: "now I know" }],
    children: { look: [{ text: "the sum is 3" }] },
  });
  assert.deepEqual(await play(agent), { how: "answered", text: "now I know" });
  assert.match(agent.history.messages.at(-2)?.text ?? "", /t1 has ended\. Its report:\nthe sum is 3$/);
});

test("the limits of a run include its tasks and end them", async () => {
  const ran: string[] = [];
  const agent = crew({
    lines: [begin("count"), task({ task: "t1", timeout: 600 }), { text: "done" }],
    children: { count: [sh("one"), sh("two"), sh("three"), { text: "counted" }] },
    tools: () => [shell(ran)],
    over: { limits: new Limits({ calls: 4 }, () => 0) },
  });
  assert.equal((await play(agent)).how, "answered");
  assert.ok(ran.length < 3, ran.join());
  assert.match(resultsOf(agent)[1] ?? "", /did not finish: The limit of 4 tool calls is used up/);
  const tokens = crew({
    lines: [begin("count"), task({ task: "t1", timeout: 600 }), { text: "done" }],
    children: { count: [sh("one"), sh("two"), sh("three"), sh("four"), sh("five")] },
    tools: () => [shell(ran)],
    over: { limits: new Limits({ tokens: 450 }, () => 0) },
  });
  assert.equal((await play(tokens)).how, "limit");
  assert.match(resultsOf(tokens)[1] ?? "", /did not finish: The limit of 450 tokens/);
  const turns = crew({
    lines: [begin("go on"), sh("ls")],
    children: { "go on": [sh("sleep 100")] },
    tools: () => [shell([], (command, signal) => (command === "ls" ? undefined : until(signal)))],
    over: { limits: new Limits({ turns: 2 }, () => 0) },
  });
  assert.equal((await runRequest(turns, request(turns), NEVER)).status, "budget");
  assert.equal(statuses(turns).at(-1), "a1 t1 cancelled");
});

const NO_CHANGES = { changes: null, handoff: [] };

const request = (agent: Crew, over: Partial<RunRequest> = {}): RunRequest => ({
  prompt: "go",
  intent: "direct",
  strict: false,
  session: "s1",
  changes: () => Promise.resolve(NO_CHANGES),
  record: (record) => void (agent.records as SessionRecord[]).push(record),
  options: { task: "go", limits: {}, settings: {}, runtime: null, schema: null },
  workspace: "/repo",
  ...over,
});

test("the tasks of a run end before the run does, whether it is cancelled, out of time or loses its box", async () => {
  const stop = new AbortController();
  const endings: readonly (readonly [string, (agent: Crew) => void, string])[] = [
    ["SIGINT", () => stop.abort(new Interrupted("SIGINT")), "interrupted"],
    ["lost", (agent) => agent.loseBox(new HarnessError(EXIT.sandbox, "it was lost", "")), "sandbox"],
  ];
  for (const [name, ends, status] of endings) {
    const ran: string[] = [];
    const late: { agent?: Crew } = {};
    const began = Promise.withResolvers<void>();
    const agent = crew({
      lines: [
        begin("go on"),
        {
          ...sh("wait"),
          before: () => began.promise.then(() => void setImmediate(() => late.agent && ends(late.agent))),
        },
      ],
      children: { "go on": [sh("sleep 100"), sh("touch later")] },
      tools: () => [
        shell(ran, (command, signal) =>
          command === "wait" ? until(signal) : (began.resolve(), until(signal)),
        ),
      ],
    });
    late.agent = agent;
    const finished = await runRequest(agent, request(agent), name === "SIGINT" ? stop.signal : NEVER);
    assert.equal(finished.status, status, name);
    const { length } = agent.told;
    await new Promise(setImmediate);
    assert.deepEqual([ran.includes("touch later"), agent.told.length], [false, length], name);
    assert.notEqual(statuses(agent).at(-1), "a1 t1 begun", name);
  }
});

const parking = (): { readonly approver: ReturnType<typeof unattended> } => ({
  approver: unattended("park"),
});

/** What the run has recorded, as another process reads it. */
function parkedOf(agent: Crew): Parked {
  const record = agent.records.findLast(({ kind }) => kind === "parked");
  assert.ok(record?.kind === "parked");
  return JSON.parse(JSON.stringify(record.parked)) as Parked;
}

test("a question from a task parks the whole run, and after the answer both continue where they were", async () => {
  const ran: string[] = [];
  const children = { far: [sh("ls", FAR, "pwd"), { text: "looked far" }] };
  const first = crew({
    lines: [begin("far"), task({ task: "t1", timeout: 600 }), sh("not yet")],
    children,
    tools: () => [shell(ran)],
    over: parking(),
  });
  const finished = await runRequest(first, request(first), NEVER);
  assert.deepEqual([finished.status, ran], ["parked", ["ls"]]);
  assert.match(resultsOf(first)[1] ?? "", /^\[t1 waits for a person/);
  const parked = parkedOf(first);
  assert.deepEqual([parked.question.text, parked.children.map((child) => child.task)], [FAR, ["t1"]]);
  const said = { question: parked.question, runs: true } as const;
  const again = crew({
    lines: [task({ task: "t1", timeout: 600 }), { text: "all done" }],
    children: { far: [{ text: "looked far" }] },
    tools: () => [shell(ran)],
    earlier: first.records,
    parked: parked.children,
    over: { approver: remembering({ always: [], once: said }, unattended("park")) },
  });
  const end = await resumeRequest(again, request(again), parked, NEVER);
  assert.deepEqual([end.status, end.answer, ran], ["done", "all done", ["ls", FAR, "pwd"]]);
  assert.match(
    again.history.messages.find(({ text }) => text.includes("A person was asked"))?.role ?? "",
    /user/,
  );
  assert.match(resultsOf(again).at(-1) ?? "", /^\[t1 has ended, 0 ms\]\nlooked far/);
});

test("an answer does not end a run while one of its tasks waits for a person", async () => {
  const agent = crew({
    lines: [begin("far"), { text: "done", before: () => new Promise(setImmediate) }],
    children: { far: [sh(FAR)] },
    tools: () => [shell([])],
    over: parking(),
  });
  assert.equal((await runRequest(agent, request(agent), NEVER)).status, "parked");
});

test("when a run parks, its tasks stop between turns: running calls finish and reports are kept", async () => {
  const ran: string[] = [];
  const [began, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = crew({
    lines: [
      { calls: ["works", "asks", "ends"].map((prompt) => ["task", { prompt, background: true }] as const) },
      { ...sh(FAR), before: () => began.promise.then(() => void setImmediate(gate.resolve)) },
    ],
    children: {
      works: [sh("echo one >> log"), sh("echo two >> log")],
      asks: [sh("true"), { before: () => new Promise(() => undefined) }],
      ends: [{ text: "ended early" }],
    },
    tools: () => [
      shell(ran, (command) => (command.startsWith("echo one") ? (began.resolve(), gate.promise) : undefined)),
    ],
    over: parking(),
  });
  // Their reports must not be told with the results that the question leaves open.
  assert.equal((await runRequest(first, request(first), NEVER)).status, "parked");
  const parked = parkedOf(first);
  assert.deepEqual(ran.toSorted(), ["echo one >> log", "true"]);
  assert.deepEqual(
    parked.children.map(({ task: id, report, turns }) => `${id} ${turns}: ${report?.text ?? "goes on"}`),
    ["t1 1: goes on", "t2 2: goes on", "t3 0: ended early"],
  );
  const said = { question: parked.question, runs: true } as const;
  const again = crew({
    lines: [task({ task: "t1", timeout: 600 }), task({ task: "t2", timeout: 600 }), { text: "all done" }],
    children: { works: [sh("echo two >> log"), { text: "both" }], asks: [{ text: "asked" }] },
    tools: () => [shell(ran)],
    earlier: first.records,
    parked: parked.children,
    over: { approver: remembering({ always: [], once: said }, unattended("park")) },
  });
  assert.equal((await resumeRequest(again, request(again), parked, NEVER)).status, "done");
  assert.deepEqual(
    ran.filter((each) => each.startsWith("echo")),
    ["echo one >> log", "echo two >> log"],
  );
  assert.match(resultsOf(again).join("\n"), /t1 has ended, 0 ms\]\nboth[^]*t2 has ended, 0 ms\]\nasked/);
});

test("a report that was not delivered before the run parked is delivered when it resumes", async () => {
  const gate = Promise.withResolvers<void>();
  const first = crew({
    lines: [begin("ends"), sh("wait", FAR)],
    children: { ends: [{ text: "ended early", before: () => gate.promise }] },
    tools: () => [
      shell([], (command) => (command === "wait" ? (gate.resolve(), new Promise(setImmediate)) : undefined)),
    ],
    over: parking(),
  });
  assert.equal((await runRequest(first, request(first), NEVER)).status, "parked");
  const parked = parkedOf(first);
  assert.deepEqual(
    parked.children.map(({ report }) => report?.text),
    ["ended early"],
  );
  const said = { question: parked.question, runs: true } as const;
  const again = crew({
    lines: [{ text: "all done" }],
    tools: () => [shell([])],
    earlier: first.records,
    parked: parked.children,
    over: { approver: remembering({ always: [], once: said }, unattended("park")) },
  });
  assert.equal((await resumeRequest(again, request(again), parked, NEVER)).status, "done");
  assert.match(resultsOf(again).at(-1) ?? "", /\[harness\] t1 has ended\. Its report:\nended early$/);
});

test("a task whose run is gone is reported as lost once, and its number is not reused", async () => {
  const first = crew({
    lines: [begin("go on\nfor long"), { text: "done" }, { text: "done" }],
    children: { "go on\nfor long": [{ before: () => new Promise(() => undefined) }] },
  });
  await runRequest(first, request(first), NEVER);
  const again = crew({ lines: [begin("next"), { text: "x" }, { text: "x" }], earlier: first.records });
  const note = "\n\n[harness] The mode is read-only now: nothing can be changed any more.";
  await runRequest(again, request(again, { prompt: "and now?", note }), NEVER);
  const asked = again.history.messages.find(({ text }) => text.startsWith("and now?"));
  assert.match(asked?.text ?? "", /\[harness\] t1 \(go on for long\) is lost: [^]*The mode is read-only now/);
  assert.equal(typedText(asked?.text ?? ""), "and now?");
  assert.match(resultsOf(again).at(-1) ?? "", /^\[t2 is running/);
  const third = crew({ lines: [{ text: "x" }], earlier: again.records });
  await runRequest(third, request(third, { prompt: "third" }), NEVER);
  const last = third.history.messages.find(({ text }) => text.startsWith("third"));
  assert.ok(!last?.text.includes("t1 ("), last?.text);
});

test("the list of undelivered tasks is rolled back with the history", () => {
  const records: SessionRecord[] = [];
  const memory = new Memory("/repo", [], (record) => void records.push(record));
  memory.history.add({ role: "user", text: "one" });
  assert.equal(memory.tasks.begin("look"), "t1");
  memory.history.add({ role: "user", text: "two" });
  memory.tasks.closeTasks(["t1"]);
  memory.tasks.closeTasks(["t1"]);
  assert.equal(memory.tasks.begin("again"), "t2");
  memory.rollBack(1);
  const again = new Memory("/repo", records, () => undefined);
  for (const each of [memory, again]) {
    assert.deepEqual(each.tasks.open, [{ id: "t1", prompt: "look" }]);
    assert.equal(each.tasks.begin("more"), "t3");
    each.clear();
    assert.deepEqual(each.tasks.open, []);
  }
});

test("an exception inside a task becomes its report", async () => {
  const agent = crew({
    lines: [begin("breaks"), task({ task: "t1", timeout: 600 }), { text: "done" }],
    children: {
      breaks: [
        {
          before: () => {
            throw new Error("oops");
          },
        },
      ],
    },
  });
  assert.equal((await play(agent)).how, "answered");
  assert.match(resultsOf(agent)[1] ?? "", /The subagent failed: oops/);
});

test("the text kept with a compacted conversation lists the background tasks", async () => {
  const told: string[] = [];
  const agent = crew({
    lines: [begin("look\nhere"), sh("ls"), { text: "done" }, { text: "done" }],
    children: { "look\nhere": [{ before: () => new Promise(() => undefined) }] },
    tools: () => [shell([], () => (told.push(agent.tasks.kept()), undefined))],
  });
  await play(agent);
  assert.deepEqual(told, ["[Your tasks in the background at that time]\nt1: look here"]);
});

test("every call of a task is judged: a denied one is refused, an allowed one runs", async () => {
  for (const background of [true, false]) {
    const ran: string[] = [];
    const agent = crew({
      lines: [task({ prompt: "try", background }), task({ task: "t1", timeout: 600 }), { text: "done" }],
      children: { try: [sh("rm -rf /etc", "ls"), { text: "tried" }] },
      tools: () => [shell(ran)],
    });
    await play(agent);
    assert.deepEqual(ran, ["ls"]);
    const decided = agent.told.flatMap((event) =>
      event.type === "call.decided" ? [[event.agent, event.decision, event.runs]] : [],
    );
    assert.deepEqual(decided, [
      ["a1", "deny", false],
      ["a1", "allow", true],
    ]);
    assert.ok(agent.ended.some(({ refused, target }) => refused && target === "rm -rf /etc"));
  }
});

test("the hooks of the run apply to every call of a task, also in the background", async () => {
  for (const background of [true, false]) {
    const ran: string[] = [];
    const asked: string[] = [];
    const hooks: Hooks = {
      ...NO_HOOKS,
      before: ({ args, name }) => {
        const text = JSON.stringify(args);
        asked.push(name);
        return Promise.resolve(
          text.includes("forbidden")
            ? { kind: "vetoed", by: "h", owner: "user", reason: "not that" }
            : { kind: "goes_on", args },
        );
      },
      after: ({ name }, { text }) =>
        Promise.resolve(name === "sh" ? text.replace("ran", "masked") : undefined),
    };
    const agent = crew({
      lines: [task({ prompt: "try", background }), task({ task: "t1", timeout: 600 }), { text: "done" }],
      children: { try: [sh("forbidden", "ls"), { text: "tried" }] },
      tools: () => [shell(ran)],
      over: { hooks },
    });
    await play(agent);
    assert.deepEqual(ran, ["ls"]);
    assert.equal(asked.filter((name) => name === "sh").length, 2);
    const ended = agent.told.flatMap((event) =>
      event.type === "call.ended" && event.agent === "a1" ? [event.text] : [],
    );
    assert.deepEqual(ended, ["Refused by a hook: the hook h: not that. It was not run.", "masked ls"]);
  }
});

const edit = (old: string, young: string): Line => ({
  calls: [["edit_file", { path: "a.txt", old, new: young }]],
});

test("two agents that write to the same file take turns, and no change is lost", async () => {
  const inner = fakeBox({ files: { "a.txt": "one\ntwo\n" } });
  const box = {
    ...inner,
    // Long enough for the other agent to come to its own call.
    write: async (...args: Parameters<typeof inner.write>) => {
      for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
      return inner.write(...args);
    },
  };
  const read = { calls: [["read_file", { path: "a.txt" }]] } as const;
  const agent = crew({
    lines: [read, begin("edit"), edit("two", "zwei"), task({ task: "t1", timeout: 600 }), { text: "done" }],
    children: { edit: [edit("one", "eins"), { text: "edited" }] },
    tools: ({ seen, shell: own }) =>
      toolsFor(fakeToolContext({ workspace: inner.workspace, seen, shell: own })),
    box,
  });
  assert.equal((await play(agent)).how, "answered");
  const edits = [...agent.told, ...agent.events].flatMap((event) =>
    event.type === "call.ended" && event.text.startsWith("a.txt: ") ? [event] : [],
  );
  // Both had read the same file: the second one is told that it has changed, instead of reverting the change.
  assert.deepEqual(edits.map(({ kind }) => kind).toSorted(), ["failed", "ok"]);
  assert.match(edits.find(({ kind }) => kind === "failed")?.text ?? "", /has changed since you read it/);
  const text = await held(inner, `${inner.workspace}/a.txt`);
  assert.ok(text === "eins\ntwo\n" || text === "one\nzwei\n", text);
});

test("writes to the same path wait for each other, writes to different paths do not", async () => {
  const order = new WriteOrder();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const one = order.inOrder(["/a", "/b"], async () => {
    log.push("one");
    await gate.promise;
    log.push("one is done");
    throw new Error("it failed");
  });
  const two = order.inOrder(["/b", "/b"], async () => void log.push("two"));
  const three = order.inOrder(["/c"], async () => void log.push("three"));
  const four = order.inOrder([], async () => void log.push("four"));
  await Promise.all([three, four]);
  gate.resolve();
  await assert.rejects(one, /it failed/);
  await two;
  assert.deepEqual(log, ["one", "three", "four", "one is done", "two"]);
});
