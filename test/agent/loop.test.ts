import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { EndRules } from "../../src/agent/ending/end-rules.ts";
import { FittedAnswer } from "../../src/agent/ending/outcome.ts";
import { Limits } from "../../src/agent/limits.ts";
import { runLoop } from "../../src/agent/loop.ts";
import { BoxLost, CanaryTouched, EXIT, HarnessError, Interrupted } from "../../src/core/errors.ts";
import { type Intent, INTENTS } from "../../src/core/model-provider.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, type ToolResult } from "../../src/core/tool.ts";
import { fakeAgent, type FakeAgent, type Line, resultsOf } from "../fakes/agent.ts";

const NEVER = new AbortController().signal;

interface Toy {
  readonly name?: string;
  readonly concurrent?: boolean;
  readonly facts?: Partial<Facts>;
  readonly does?: (word: string) => Promise<ToolResult> | ToolResult;
}

/** A tool with one argument that says it back. */
function toy({ name = "say", concurrent = false, facts = {}, does }: Toy = {}): AnyTool {
  return anyTool({
    name,
    description: "",
    input: z.object({ word: z.string() }),
    facts: () => ({ ...NO_FACTS, ...facts }),
    concurrent,
    where: "session",
    run: async ({ word }) => (await does?.(word)) ?? { kind: "ok", text: `said ${word}` },
  });
}

const say = (word: string, name = "say"): readonly [string, object & Record<string, unknown>] => [
  name,
  { word },
];

const agentWith = (lines: readonly Line[], tools: readonly AnyTool[] = [toy()]): FakeAgent =>
  fakeAgent({ lines, tools });

const breaks = (): never => {
  throw new Error("oops");
};

/** With two calls to spend. */
const spent = (lines: readonly Line[]): FakeAgent =>
  fakeAgent({ lines, tools: [toy()], over: { limits: new Limits({ calls: 2 }, () => 0) } });

const check = (text: string): { json: string } | { issues: readonly string[] } =>
  text === "{}" ? { json: "{}" } : { issues: ["it is no JSON"] };

/** Whose answer has to be `{}`. */
const fitted = (lines: readonly Line[]): FakeAgent =>
  fakeAgent({ lines, tools: [toy()], over: { answer: new FittedAnswer({ type: "object" }, check) } });

test("a reply without calls is the answer", async () => {
  const agent = agentWith([{ calls: [say("a")] }, { text: "The end." }]);
  assert.deepEqual(await runLoop(agent, NEVER), { how: "answered", text: "The end." });
  assert.deepEqual(resultsOf(agent), ["said a"]);
  assert.deepEqual(
    agent.history.messages.map(({ role }) => role),
    ["assistant", "tool", "assistant"],
  );
});

test("read-only calls of one reply run in parallel, all others in order", async () => {
  const running: string[] = [];
  const seen: string[] = [];
  const does = async (word: string): Promise<ToolResult> => {
    running.push(word);
    seen.push(running.join("+"));
    await new Promise((resolve) => setTimeout(resolve, 5));
    running.splice(running.indexOf(word), 1);
    return { kind: "ok", text: word };
  };
  const tools = [toy({ name: "look", concurrent: true, does }), toy({ name: "change", does })];
  const calls = [
    say("a", "look"),
    say("b", "look"),
    say("c", "change"),
    say("d", "change"),
    say("e", "look"),
  ];
  const agent = agentWith([{ calls }], tools);
  await runLoop(agent, NEVER);
  assert.deepEqual(seen, ["a", "a+b", "c", "d", "e"]);
  assert.deepEqual(resultsOf(agent), ["a", "b", "c", "d", "e"]);
});

test("invalid arguments are returned with what is wrong with each", async () => {
  const agent = agentWith([{ calls: [["say", { word: 1 }]] }, { calls: [["shout", {}]] }]);
  await runLoop(agent, NEVER);
  const [wrong = "", unknown = ""] = resultsOf(agent);
  assert.match(wrong, /say was not run.*\n- word: .*string/s);
  assert.match(unknown, /no tool "shout"; there are: say/);
});

test("a model that makes no readable call is given up after five replies", async () => {
  const broken = { malformed: [{ id: "x", name: "say", reason: "its arguments are no JSON" }] };
  const agent = agentWith(Array.from({ length: 9 }, () => broken));
  assert.equal((await runLoop(agent, NEVER)).how, "model_broken");
  assert.equal(agent.asked.length, 5);
  assert.match(
    agent.history.messages[1]?.text ?? "",
    /Your call of say was not run: its arguments are no JSON/,
  );
});

test("an exception in a tool becomes its result", async () => {
  const agent = agentWith([{ calls: [say("a")] }], [toy({ does: breaks })]);
  assert.equal((await runLoop(agent, NEVER)).how, "answered");
  assert.deepEqual(resultsOf(agent), ["say failed: oops"]);
});

test("the third identical call is not run, and repeating it ends the run", async () => {
  const said: string[] = [];
  const does = (word: string): ToolResult => {
    said.push(word);
    return { kind: "ok", text: word };
  };
  const agent = agentWith(
    Array.from({ length: 9 }, () => ({ calls: [say("again")] })),
    [toy({ does })],
  );
  assert.deepEqual(await runLoop(agent, NEVER), { how: "repeated" });
  assert.deepEqual(said, ["again", "again"]);
  assert.match(resultsOf(agent)[2] ?? "", /third time in a row/);
});

const openCalls = ({ events }: FakeAgent): readonly string[] => {
  const ends = events.flatMap((event) => (event.type === "call.ended" ? [event.call] : []));
  assert.equal(new Set(ends).size, ends.length, "a call ends once");
  return events.flatMap((event) =>
    event.type === "call.proposed" && !ends.includes(event.call) ? [event.call] : [],
  );
};

test("every proposed call gets an end, however the run ends", async () => {
  const repeats = agentWith(
    Array.from({ length: 9 }, (_, at) => ({
      calls: [say("again"), ...(at === 3 ? [say("left"), say("left too")] : [])],
    })),
  );
  assert.deepEqual(await runLoop(repeats, NEVER), { how: "repeated" });
  assert.deepEqual(openCalls(repeats), []);
  const cancel = new AbortController();
  const does = (word: string): ToolResult => {
    if (word === "b") cancel.abort();
    return { kind: "ok", text: word };
  };
  const cancelled = agentWith([{ calls: [say("a"), say("b"), say("c"), say("d")] }], [toy({ does })]);
  assert.deepEqual(await runLoop(cancelled, cancel.signal), { how: "cancelled" });
  assert.deepEqual(openCalls(cancelled), []);
});

test("a cancelled call states the cause: a person, the time, a canary, or a missing box", async () => {
  const lost = new BoxLost("it is gone", "start again");
  const noBox = new HarnessError(EXIT.sandbox, "no engine answers", "docker info");
  const timeUp = new DOMException("The operation was aborted due to timeout", "TimeoutError");
  for (const [reason, cause, told] of [
    [new Interrupted("SIGINT"), "user", "Cancelled."],
    [new Interrupted("overtaken"), null, "another candidate finished first"],
    [timeUp, "timeout", "the run's time is up"],
    [new CanaryTouched(EXIT.sandbox, "a false key was read"), "canary", "a false key was read"],
    [lost, null, "the box was lost: it is gone"],
    [noBox, null, "no engine answers"],
  ] as const) {
    const cancel = new AbortController();
    // The tool itself knows no more than that it is not to go on.
    const does = (): ToolResult => {
      cancel.abort(reason);
      return { kind: "cancelled", cause: "user", text: "Cancelled." };
    };
    const agent = agentWith([{ calls: [say("under way"), say("not begun")] }], [toy({ does })]);
    await runLoop(agent, cancel.signal);
    const ends = agent.events.flatMap((event) =>
      event.type === "call.ended" ? [[event.kind, event.cause, event.reason]] : [],
    );
    const end = ["cancelled", cause, told];
    assert.deepEqual(ends, [end, end]);
  }
});

test("a turn limit ends the run, after a note to the model", async () => {
  const agent = fakeAgent({
    lines: Array.from({ length: 9 }, (_, at) => ({ calls: [say(String(at))] })),
    tools: [toy()],
    over: { limits: new Limits({ turns: 3 }, () => 0) },
  });
  const end = await runLoop(agent, NEVER);
  assert.deepEqual([end.how, agent.asked.length], ["limit", 3]);
  assert.match(resultsOf(agent).join("\n"), /last turn/);
});

test("without calls left the model may still answer, and another call ends the run", async () => {
  const answers = spent([{ calls: [say("a"), say("b"), say("c")] }]);
  assert.equal((await runLoop(answers, NEVER)).how, "answered");
  assert.match(resultsOf(answers)[2] ?? "", /^Not run\. The limit of 2 tool calls is used up/);
  const goesOn = spent([{ calls: [say("a"), say("b")] }, { calls: [say("c")] }]);
  assert.equal((await runLoop(goesOn, NEVER)).how, "limit");
});

test("cancelling returns the history to where the turn began", async () => {
  const cancel = new AbortController();
  const does = (word: string): ToolResult => {
    if (word === "b") cancel.abort();
    return { kind: "ok", text: word };
  };
  const agent = agentWith([{ calls: [say("a")] }, { calls: [say("b")] }], [toy({ does })]);
  assert.deepEqual(await runLoop(agent, cancel.signal), { how: "cancelled" });
  assert.deepEqual(
    agent.history.messages.map(({ text }) => text),
    ["", "a"],
  );
});

test("a lost box ends the run with its own reason", async () => {
  const lost = new HarnessError(EXIT.sandbox, "the box was lost: it is gone", "start again");
  const agent = agentWith([{ before: () => agent.loseBox(lost) }]);
  assert.deepEqual(await runLoop(agent, NEVER), {
    how: "sandbox_lost",
    reason: "the box was lost: it is gone; next: start again",
  });
});

test("a prompt that the server finds too long is shortened once and sent again", async () => {
  const agent = fakeAgent({
    lines: [{ calls: [say("x".repeat(4000))] }, { calls: [say("y")] }, { fails: "too_long" }],
    tools: [toy()],
  });
  agent.history.add({ role: "user", text: "a task" });
  assert.equal((await runLoop(agent, NEVER)).how, "answered");
  assert.ok(agent.history.compaction !== undefined);
  const never = agentWith([{ fails: "too_long" }]);
  assert.equal((await runLoop(never, NEVER)).how, "too_long");
});

test("a truncated answer is continued, and one that must fit a schema is requested again", async () => {
  const cut = agentWith([{ text: "one ", stop: "length" }, { text: "two" }]);
  assert.deepEqual(await runLoop(cut, NEVER), { how: "answered", text: "one two" });
  const called = agentWith([{ text: "Now I ", stop: "length" }, { calls: [say("x")] }, { text: "two" }]);
  assert.deepEqual(await runLoop(called, NEVER), { how: "answered", text: "two" });
  const always = agentWith(Array.from({ length: 9 }, () => ({ text: "one ", stop: "length" })));
  assert.equal((await runLoop(always, NEVER)).how, "model_broken");
  assert.equal(always.asked.length, 3);
  const number = Array.from({ length: 9 }, () => ({ text: "{}", stop: "length" }) as const);
  assert.equal((await runLoop(fitted(number), NEVER)).how, "model_broken");
  assert.deepEqual(await runLoop(fitted([{ text: "no" }, { text: "{}" }]), NEVER), {
    how: "answered",
    text: "{}",
  });
  const never = fitted(Array.from({ length: 9 }, () => ({ text: "no" })));
  assert.equal((await runLoop(never, NEVER)).how, "misfit");
  assert.equal(never.asked.length, 4);
});

test("writes in the first reply to a question are challenged, later ones run", async () => {
  const tools = [
    toy({ name: "read_file", concurrent: true }),
    toy({ name: "write_file", facts: { writes: ["made"] } }),
  ];
  const asking = (intent: Intent): FakeAgent => {
    const agent = fakeAgent({
      lines: [
        { calls: [say("a", "read_file"), say("b", "write_file"), say("c", "write_file")] },
        { calls: [say("d", "write_file")] },
        { text: "done" },
      ],
      tools,
    });
    agent.intent.begin(intent);
    return agent;
  };
  const question = asking("repo");
  await runLoop(question, NEVER);
  const [read = "", first = "", second = "", third = ""] = resultsOf(question);
  assert.deepEqual([read, third], ["said a", "said d"]);
  for (const met of [first, second]) assert.match(met, /question about the repository.*say so/);
  assert.deepEqual(
    question.events.flatMap((event) => (event.type === "intent" ? [event.intent, event.by] : [])),
    ["change", "escalated"],
  );
  for (const intent of ["change", "direct", "web"] as const) {
    const other = asking(intent);
    await runLoop(other, NEVER);
    assert.deepEqual(resultsOf(other), ["said a", "said b", "said c", "said d"]);
  }
});

test("the tools and the system prompt are the same in every request, whatever the intent", async () => {
  const tools = [
    toy({ name: "read_file", concurrent: true }),
    toy({ name: "write_file", facts: { writes: ["made"] } }),
  ];
  const prefixes = new Set<string>();
  for (const intent of INTENTS) {
    const lines = [
      { calls: [say("a", "write_file")] },
      { calls: [say("b", "write_file")] },
      { text: "done" },
    ];
    const agent = fakeAgent({ lines, tools });
    agent.intent.begin(intent);
    await runLoop(agent, NEVER);
    assert.equal(agent.asked.length, 3);
    for (const { tools: offered, messages } of agent.asked)
      prefixes.add(JSON.stringify([offered, messages[0]]));
  }
  assert.equal(prefixes.size, 1);
});

/** A tool of files by its name, which says what it did to which. */
const ofFile = (name: string, did: string[]): AnyTool =>
  anyTool({
    name,
    description: "",
    input: z.object({ path: z.string() }),
    facts: () => NO_FACTS,
    concurrent: false,
    where: "session",
    run: ({ path }) => {
      did.push(`${name} ${path}`);
      return Promise.resolve({ kind: "ok", text: "a part of it" });
    },
  });

test("a small model cannot overwrite a file that it reads in the same reply, and can in a later one", async () => {
  for (const isWeak of [true, false]) {
    const did: string[] = [];
    const ends = new EndRules(null);
    ends.facts = { request: "mend it", isWeak };
    const [reads, writes] = [["read_file", { path: "a" }] as const, ["write_file", { path: "a" }] as const];
    const agent = fakeAgent({
      lines: [{ calls: [reads, writes] }, { calls: [writes] }, { text: "It is mended." }],
      tools: [ofFile("read_file", did), ofFile("write_file", did)],
      over: { ends },
    });
    await runLoop(agent, NEVER);
    assert.match(
      resultsOf(agent)[1] ?? "",
      isWeak ? /^Not run: you read this file in the same reply/ : /^a part/,
    );
    const all = ["read_file a", "write_file a", "write_file a"];
    assert.deepEqual(did, isWeak ? all.slice(0, 2) : all);
  }
});
