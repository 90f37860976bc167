import assert from "node:assert/strict";
import test from "node:test";
import type { EventBody } from "../../src/core/events.ts";
import { type Attributes, RunSpans, type TraceSpan } from "../../src/telemetry/genai-spans.ts";
import { EVERY_EVENT } from "../fixtures/events.ts";
import { fc } from "../fixtures/property.ts";
import { callOf, finished, said, started } from "../fixtures/report.ts";

type Told = EventBody & { readonly agent?: string };

interface Traced {
  readonly spans: readonly TraceSpan[];
  readonly measured: readonly (readonly [string, number, Attributes])[];
  /** Spans that were begun. */
  readonly begun: number;
}

/** Traces events a second apart; open spans are closed after the last one. */
function traced(events: readonly Told[], content?: (text: string) => string): Traced {
  const spans: TraceSpan[] = [];
  const measured: (readonly [string, number, Attributes])[] = [];
  const count = { ids: 0 };
  const run = new RunSpans({
    version: "1.2.3",
    newId: () => String((count.ids += 1)),
    span: (span) => void spans.push(span),
    measure: (...all) => void measured.push(all),
    ...(content === undefined ? {} : { content }),
  });
  for (const [seq, event] of events.entries()) run.take({ ...event, run: "r1", seq }, 1000 * (seq + 1));
  run.close(1000 * (events.length + 1));
  return { spans, measured, begun: count.ids };
}

/** As a tree: each name with those below it, in the order in which they began. */
function treeOf({ spans }: Traced, parent: string | null = null): readonly unknown[] {
  return spans
    .filter((span) => span.parent === parent)
    .toSorted((a, b) => a.start - b.start || Number(a.id) - Number(b.id))
    .map((span) => {
      const below = treeOf({ spans, measured: [], begun: 0 }, span.id);
      return below.length === 0 ? span.name : [span.name, ...below];
    });
}

/** Every span that was begun is ended, once; its parent is there, and the run's is the only one without. */
function assertWhole({ spans, begun }: Traced): void {
  assert.equal(spans.length, begun);
  const ids = new Set(spans.map(({ id }) => id));
  assert.equal(ids.size, spans.length);
  for (const { id, parent, start, end, name } of spans) {
    assert.ok(parent === null || (ids.has(parent) && parent !== id), name);
    assert.ok(start <= end, `${name}: ${start} to ${end}`);
  }
}

const of = (agent: string, events: readonly EventBody[]): readonly Told[] =>
  events.map((event) => ({ ...event, agent }));

const turn = (number: number): EventBody => ({ type: "turn.started", turn: number, record_count: 1 });
const proposed = (call: string, tool = "task", prompt = "do it"): EventBody => ({
  type: "call.proposed",
  call,
  tool,
  args: { prompt },
});
const task = (status: "begun" | "done" | "failed", text: string): EventBody => ({
  type: "task",
  status,
  text,
});
const ended = (call: string): EventBody => ({
  type: "call.ended",
  call,
  kind: "ok",
  cause: null,
  text: "",
  full: null,
  ms: 5,
});

const one = ({ spans }: Traced, name: string): TraceSpan => {
  const [span, ...others] = spans.filter((each) => each.name === name);
  assert.ok(span !== undefined && others.length === 0, `${name}: ${others.length + 1}`);
  return span;
};

const USUAL_RUN: readonly Told[] = [
  started("mend it"),
  EVERY_EVENT.intent,
  EVERY_EVENT["box.ready"],
  EVERY_EVENT["check.started"],
  { ...EVERY_EVENT["check.ended"], exit_code: 1 },
  turn(1),
  { type: "compaction", status: "started", trigger: "pressure", before: 900, after: null, reason: "" },
  EVERY_EVENT["model.aside"],
  { type: "compaction", status: "succeeded", trigger: "pressure", before: 900, after: 200, reason: "" },
  { type: "text", text: "Hm" },
  EVERY_EVENT["model.waiting"],
  said("two at once"),
  proposed("t1"),
  proposed("t2"),
  ...of("a1", [turn(1), said("x"), proposed("c1", "grep"), ended("c1")]),
  ...of("a2", [turn(1), proposed("c1", "glob")]),
  ...of("a2", [ended("c1")]),
  ended("t1"),
  ended("t2"),
  turn(2),
  said("curl"),
  ...callOf({
    call: "c9",
    args: { command: "curl x" },
    decided: { decision: "deny", runs: false },
    ended: { kind: "denied", cause: "policy" },
  }),
  turn(3),
  said("done"),
  finished(),
];

test("a run is a tree of its requests, its calls, and the subagents below their tasks", () => {
  const run = traced(USUAL_RUN);
  assertWhole(run);
  assert.deepEqual(treeOf(run), [
    [
      "invoke_agent harness",
      "start_box",
      "check",
      "chat qwen3:8b",
      "chat qwen3:8b",
      "chat qwen3:8b",
      ["execute_tool task", ["invoke_agent subagent", "chat qwen3:8b", "execute_tool grep"]],
      ["execute_tool task", ["invoke_agent subagent", "chat qwen3:8b", "execute_tool glob"]],
      "chat qwen3:8b",
      "execute_tool bash",
      "chat qwen3:8b",
    ],
  ]);
});

test("a subagent is below the call with its prompt, in the background too, and ends with its last event", () => {
  const run = traced([
    started("x"),
    turn(1),
    said("three"),
    { type: "call.proposed", call: "look", tool: "task", args: { task: "t1" } },
    proposed("one", "task", "read the docs"),
    proposed("two", "task", "mend the tests"),
    ...of("a1", [task("begun", "mend the te…")]),
    ...of("a2", [task("begun", "read the docs")]),
    ended("look"),
    ended("one"),
    ended("two"),
    ...of("a1", [turn(1), said("later"), task("failed", "no")]),
    ...of("a2", [task("done", "")]),
    finished(),
  ]);
  assertWhole(run);
  const calls = run.spans.filter(({ name }) => name === "execute_tool task");
  const agents = run.spans.filter(({ name }) => name === "invoke_agent subagent");
  const callOfAgent = (id: string): unknown => {
    const agent = agents.find(({ attributes }) => attributes["gen_ai.agent.id"] === id);
    return calls.find((call) => call.id === agent?.parent)?.attributes["gen_ai.tool.call.id"];
  };
  assert.deepEqual([callOfAgent("a1"), callOfAgent("a2")], ["two", "one"]);
  assert.deepEqual(
    agents.map(({ attributes, failed, end }) => [attributes["harness.task.status"], failed, end]),
    [
      ["done", false, 15_000],
      ["failed", true, 14_000],
    ],
  );
});

test("the run's span has the provider, the status and the cost; a denial is an error of its call only", () => {
  const run = traced(USUAL_RUN);
  const { attributes, failed, kind, events } = one(run, "invoke_agent harness");
  assert.deepEqual(
    [attributes["gen_ai.operation.name"], attributes["gen_ai.provider.name"], attributes["harness.status"]],
    ["invoke_agent", "ollama", "done"],
  );
  assert.deepEqual([attributes["gen_ai.usage.input_tokens"], failed, kind], [5620, false, "internal"]);
  assert.deepEqual(
    events.map(({ name }) => name),
    ["harness.intent", "harness.compaction", "harness.compaction"],
  );
  const denied = one(run, "execute_tool bash");
  assert.deepEqual([denied.failed, denied.attributes["error.type"]], [true, "denied"]);
  assert.deepEqual(
    [denied.attributes["harness.decision"], denied.attributes["harness.decision.rules"]],
    ["deny", ["read"]],
  );
});

test("a repeated request has its own span, and a compaction's request is named as such", () => {
  const chats = traced(USUAL_RUN).spans.filter(
    ({ name, parent }) => name.startsWith("chat") && parent === "1",
  );
  assert.deepEqual(
    chats
      .toSorted((a, b) => a.end - b.end)
      .map(({ attributes, failed }) => [
        attributes["harness.purpose"] ?? attributes["harness.turn"] ?? null,
        attributes["error.type"] ?? null,
        failed,
      ]),
    [
      ["compaction", null, false],
      [1, "retried", true],
      [null, null, false],
      [2, null, false],
      [3, null, false],
    ],
  );
});

test("measurements have the convention's names, and uncounted values are not measured", () => {
  const { measured } = traced(USUAL_RUN);
  const names = new Set(measured.map(([name]) => name));
  assert.deepEqual([...names].toSorted(), [
    "gen_ai.client.operation.duration",
    "gen_ai.client.operation.time_to_first_chunk",
    "gen_ai.client.token.usage",
    "gen_ai.execute_tool.duration",
    "gen_ai.invoke_agent.duration",
  ]);
  const nothing = {
    requests: 1,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    cost: null,
  };
  const run = traced([started("x"), turn(1), { ...said("hm"), usage: nothing }]);
  assert.equal(
    run.measured.some(([name]) => name === "gen_ai.client.token.usage"),
    false,
  );
  assert.equal("gen_ai.usage.input_tokens" in one(run, "chat qwen3:8b").attributes, false);
});

const ENDINGS: Readonly<Record<string, readonly Told[]>> = {
  "parked at a call": [
    turn(1),
    said("x"),
    proposed("c1", "bash"),
    { ...EVERY_EVENT["call.parked"], call: "c1" },
    finished({ status: "parked", exit_code: 7 }),
  ],
  "interrupted within a request": [turn(1), { type: "text", text: "a" }, finished({ status: "interrupted" })],
  "killed within a subagent's call": [
    turn(1),
    said("x"),
    proposed("t"),
    ...of("a1", [turn(1), proposed("c", "bash")]),
  ],
  "cut off during a wait": [turn(1), { ...EVERY_EVENT["model.waiting"], ms: 60_000 }],
  "ended during a check": [EVERY_EVENT["check.started"]],
};

for (const [name, events] of Object.entries(ENDINGS))
  test(`${name}, every span is ended and marked as unfinished`, () => {
    const run = traced([started("x"), ...events]);
    assertWhole(run);
    assert.ok(run.spans.some(({ attributes }) => attributes["harness.unfinished"] === true));
    const root = one(run, "invoke_agent harness");
    assert.equal(root.failed, false);
    assert.ok(run.spans.every(({ start, end }) => start >= root.start && end <= root.end));
  });

test("a run that failed is an error, with its status", () => {
  for (const status of ["failed", "budget", "refused", "model", "sandbox"] as const) {
    const root = one(traced([started("x"), finished({ status })]), "invoke_agent harness");
    assert.deepEqual([root.failed, root.attributes["error.type"]], [true, status]);
  }
});

test("a request's span has its tokens by purpose, and the time to its first token", () => {
  const { attributes } = one(traced([started("x"), turn(1), EVERY_EVENT["model.finished"]]), "chat qwen3:8b");
  assert.deepEqual(
    [attributes["harness.prompt.tools"], attributes["gen_ai.response.time_to_first_chunk"]],
    [460, 0.24],
  );
});

const SAID = "quokka";
const everywhere = (value: unknown): unknown => {
  if (typeof value === "string") return `${value} ${SAID}`;
  if (Array.isArray(value)) return value.map(everywhere);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, everywhere(each)]));
};

/** Texts of the run: whatever a user, a model or a program said. */
const TEXTS: readonly Told[] = [
  { ...started(SAID), workspace: SAID },
  turn(1),
  { type: "notice", text: SAID },
  { type: "text", text: SAID },
  { type: "thinking", text: SAID },
  ...of("a1", [{ type: "task", status: "begun", text: SAID }]),
  { type: "plan", steps: [{ text: SAID, status: "doing" }] },
  { type: "model.waiting", reason: SAID, ms: 1, attempt: 2 },
  { ...said(SAID), text: SAID },
  ...callOf({
    call: "c1",
    args: everywhere({ command: "a", deep: [{ more: "b" }] }) as Readonly<Record<string, unknown>>,
    decided: { rules: [{ id: "r", reason: SAID, span: [0, 1] }] },
    ended: { text: SAID, reason: SAID, full: SAID },
  }),
  { type: "approval", call: "c1", tool: "bash", text: SAID, said: "once", by: SAID, from: "flag" },
  { type: "call.missed", call: SAID, tool: SAID, kind: "unread", nearest: [SAID] },
  { ...EVERY_EVENT.connection, host: SAID, reason: SAID, verdict: "denied" },
  { ...EVERY_EVENT.canary, path: SAID, command: SAID, by: [SAID] },
  { ...EVERY_EVENT["check.started"], command: SAID },
  { ...EVERY_EVENT["check.ended"], command: SAID, text: SAID },
  { type: "model.failed", kind: "server", reason: SAID, remedy: SAID },
  finished({ answer: SAID, reason: SAID }),
];

test("no text of the run is exported unless requested, and then only masked", () => {
  assert.doesNotMatch(JSON.stringify(traced(TEXTS)), new RegExp(SAID));
  const asked = traced(TEXTS, (text) => text.replaceAll(SAID, "masked"));
  assert.doesNotMatch(JSON.stringify(asked), new RegExp(SAID));
  const { attributes } = one(asked, "execute_tool bash");
  assert.match(String(attributes["gen_ai.tool.call.arguments"]), /masked/);
  assert.match(String(attributes["gen_ai.tool.call.result"]), /masked/);
  const root = one(asked, "invoke_agent harness").attributes;
  assert.deepEqual(JSON.parse(String(root["gen_ai.input.messages"])), [
    { role: "user", parts: [{ type: "text", content: "masked" }] },
  ]);
});

test("in any order of events every span begins below another, and ends", () => {
  const event = fc.constantFrom(...Object.values(EVERY_EVENT));
  const agent = fc.constantFrom("", "a1", "a2", "c1");
  const call = fc.constantFrom("c1", "c2");
  const step = fc.tuple(event, agent, call).map(([body, name, id]) => ({
    ...body,
    ...("call" in body ? { call: id } : {}),
    ...(body.type === "call.proposed" && id === "c1" ? { tool: "task" } : {}),
    ...(name === "" ? {} : { agent: name }),
  }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const run = traced([started("x"), ...(steps as readonly Told[])]);
      assertWhole(run);
      assert.equal(
        run.spans.filter(({ parent }) => parent === null).length,
        1 + steps.filter(({ type }) => type === "run.started").length,
      );
    }),
  );
});
