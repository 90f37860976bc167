import assert from "node:assert/strict";
import test from "node:test";
import { recordedRequests, scenarioOf } from "../../../src/app/sessions/recorded-conversation.ts";
import { expectedOf } from "../../../src/agent/ending/expected-output.ts";
import type { Message } from "../../../src/core/model-provider.ts";
import type { AgentEvent, EventBody } from "../../../src/core/events.ts";
import { scenarioFrom } from "../../../src/models/providers/scenario.ts";
import { ScriptedWire } from "../../../src/models/providers/scripted-api.ts";
import { calls, failed } from "../../contract/provider-ask.ts";
import { EVERY_EVENT } from "../../fixtures/events.ts";
import { asked } from "../../models/ask.ts";

type Body<T extends EventBody["type"]> = Extract<EventBody, { readonly type: T }>;
type Told = EventBody & { readonly agent?: string };

/** An event like the one of the list, but for this. */
const like = <T extends EventBody["type"]>(
  type: T,
  own: Partial<Body<T>> & { readonly agent?: string } = {},
): Told => ({ ...(EVERY_EVENT[type] as object), ...own, type }) as Told;

const inRun = (run: string, bodies: readonly Told[]): readonly AgentEvent[] =>
  bodies.map((body, at) => ({ ...body, run, seq: at + 1 }));

const begun = (task: string, resumed = false): Told => like("run.started", { task, resumed });

test("a parked and resumed run is one request, with the answer to its call", () => {
  const args = { command: "curl x" };
  const events = [
    ...inRun("s.1", [
      begun("fetch it"),
      like("model.finished", { text: "I fetch." }),
      like("call.proposed", { call: "c1", tool: "bash", args }),
      like("call.parked", { call: "c1" }),
      like("run.finished", { status: "parked", exit_code: 7 }),
    ]),
    ...inRun("s.2", [
      begun("fetch it", true),
      like("approval", { call: "c1", said: "deny", told: "not there" }),
      like("call.decided", { call: "c1", decision: "ask", runs: false, by: "person" }),
      like("call.ended", { call: "c1", kind: "denied", text: "no" }),
      like("model.finished", { text: "Then not." }),
      like("run.finished", { status: "refused", exit_code: 4 }),
    ]),
    ...inRun("s.3", [begun("fetch it", true), like("run.finished", { status: "done", exit_code: 0 })]),
  ];
  const [first, second, ...others] = recordedRequests(events);
  assert.deepEqual(others, []);
  assert.deepEqual(first?.answers, [{ tool: "bash", args, runs: false, told: "not there" }]);
  assert.deepEqual(
    [first.replies.map(({ text }) => text), first.calls.length, first.end],
    [["I fetch.", "Then not."], 1, { status: "refused", exit_code: 4 }],
  );
  assert.deepEqual([second?.task, second?.replies], ["fetch it", []]);
});

test("the scenario repeats the model's words exactly, markers included, separately for each conversation", async () => {
  const mark = "{{request}} and {{{request}}}";
  const events = inRun("s.1", [
    begun("look"),
    like("model.finished", { text: `parent ${mark}` }),
    like("call.proposed", { call: "c1", tool: "write_file", args: { path: "x", content: mark } }),
    like("task", { agent: "a1", status: "begun", text: "CHILD looks at a lot of…" }),
    like("model.finished", { agent: "a1", text: "child" }),
    like("call.proposed", { agent: "a1", call: "c1", tool: "read_file", args: { path: "x" } }),
    like("model.failed", { kind: "rate_limited", reason: "later" }),
  ]);
  const [request] = recordedRequests(events);
  assert.ok(request);
  const wire = new ScriptedWire(scenarioFrom(scenarioOf(request), "s.jsonl"));
  const child = await asked(
    wire,
    {},
    { messages: [{ role: "user", text: "CHILD looks at a lot of files" }] },
  );
  assert.deepEqual([child.text, calls(child).map(({ name }) => name)], ["child", ["read_file"]]);
  const parent = await asked(wire);
  assert.equal(parent.text, `parent ${mark}`);
  assert.deepEqual(
    calls(parent).map(({ args }) => args),
    [{ path: "x", content: mark }],
  );
  assert.equal(failed(await asked(wire)).failure.kind, "rate_limited");
});

test("a small model's expectations are repeated for separate questions, and the turns keep their replies", async () => {
  const task = "greet loudly";
  const expected = (over: Partial<Body<"model.aside">>): Told =>
    like("model.aside", { purpose: "expectation", outcome: "finished", ...over });
  const events = inRun("s.1", [
    begun(task),
    like("model.finished", { text: "first" }),
    like("model.aside"),
    expected({ outcome: "failed" }),
    expected({ text: "HELLO" }),
    like("model.finished", { text: "second" }),
  ]);
  const [request] = recordedRequests(events);
  assert.ok(request);
  const wire = new ScriptedWire(scenarioFrom(scenarioOf(request), "s.jsonl"));
  const turn = async (): Promise<string> =>
    (await asked(wire, {}, { messages: [{ role: "user", text: `${task}\n\n[harness] more` }] })).text;
  const apart: string[] = [];
  const ask = async (messages: readonly Message[]): Promise<string | undefined> => {
    const answer = await asked(wire, {}, { messages, tools: [] });
    const text = answer.events.at(-1)?.type === "failed" ? undefined : answer.text;
    apart.push(text ?? "nothing");
    return text;
  };
  const expects = () => expectedOf(ask, { request: task, files: [] }, "sh a.sh");
  assert.equal(await turn(), "first");
  assert.equal(await expects(), undefined);
  assert.equal(await expects(), undefined);
  assert.equal(await turn(), "second");
  assert.deepEqual(apart, ["nothing", "HELLO", "nothing"]);
});
