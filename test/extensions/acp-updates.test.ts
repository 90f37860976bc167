import assert from "node:assert/strict";
import test from "node:test";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk";
import type { EventBody } from "../../src/core/events.ts";
import type { Question } from "../../src/core/ports.ts";
import {
  failureOf,
  replacedAnswer,
  type OpenDiffs,
  permissionOf,
  permissionRequestOf,
  promptOf,
  replayed,
  stopOf,
  updatesOf,
} from "../../src/extensions/acp-updates.ts";
import { runFinished } from "../fixtures/events.ts";

const of = (body: EventBody, agent?: string, open: OpenDiffs = new Map()): readonly SessionUpdate[] =>
  updatesOf({ ...body, run: "r", seq: 1, ...(agent === undefined ? {} : { agent }) }, "/w", open);

const proposed = (tool: string, args: Record<string, unknown>): EventBody => ({
  type: "call.proposed",
  call: "c1",
  tool,
  args,
});
const endedWith = (kind: "ok" | "denied", text: string): EventBody => ({
  type: "call.ended",
  call: "c1",
  kind,
  cause: kind === "ok" ? null : "policy",
  text,
  full: null,
  ms: 1,
});

test("the model's text and thinking are streamed, and a subagent's are not", () => {
  assert.deepEqual(of({ type: "text", text: "hi" }), [
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "hi" } },
  ]);
  assert.deepEqual(of({ type: "thinking", text: "hm" }), [
    { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } },
  ]);
  assert.deepEqual(
    [...of({ type: "text", text: "hi" }, "a1"), ...of({ type: "thinking", text: "hm" }, "a1")],
    [],
  );
});

test("a call is reported with its kind, location and arguments, and a subagent's has its own id", () => {
  const [call] = of(proposed("read_file", { path: "src/../a.txt" }));
  assert.deepEqual(call, {
    sessionUpdate: "tool_call",
    toolCallId: "c1",
    title: "read_file src/../a.txt",
    kind: "read",
    status: "pending",
    locations: [{ path: "/w/a.txt" }],
    rawInput: { path: "src/../a.txt" },
  });
  const [child] = of(proposed("bash", { command: "ls" }), "a1");
  assert.ok(child?.sessionUpdate === "tool_call");
  assert.deepEqual([child.toolCallId, child.kind, child.locations], ["a1/c1", "execute", []]);
  const [unknown] = of(proposed("server__tool", { x: 1 }));
  assert.ok(unknown?.sessionUpdate === "tool_call");
  assert.deepEqual([unknown.title, unknown.kind], ["server__tool", "other"]);
});

test("a title is one short line, whatever was called", () => {
  const [call] = of(proposed("bash", { command: `echo \u001B[2J\n${"x".repeat(1000)}` }));
  assert.ok(call?.sessionUpdate === "tool_call");
  assert.equal(call.title.length, 200);
  assert.doesNotMatch(call.title, /[\n\u001B]/);
});

const diffs = (tool: string, args: Record<string, unknown>) => {
  const [call] = of(proposed(tool, args));
  return call?.sessionUpdate === "tool_call" ? call.content : undefined;
};

test("edits are reported as diffs, as far as their arguments allow", () => {
  const at = { type: "diff", path: "/w/a.txt" };
  assert.deepEqual(diffs("edit_file", { path: "a.txt", old: "1", new: "2" }), [
    { ...at, oldText: "1", newText: "2" },
  ]);
  const edits = [
    { old: "1", new: "2" },
    { old: "3", new: "" },
  ];
  assert.deepEqual(diffs("edit_file", { path: "a.txt", edits }), [
    { ...at, oldText: "1", newText: "2" },
    { ...at, oldText: "3", newText: "" },
  ]);
  assert.deepEqual(diffs("write_file", { path: "/w/a.txt", content: "c" }), [
    { ...at, oldText: null, newText: "c" },
  ]);
  for (const [tool, args] of [
    ["edit_file", { path: "a.txt", edits: [7, { old: 1 }] }],
    ["edit_file", { path: 7, old: "1", new: "2" }],
    ["write_file", { path: "a.txt" }],
    ["read_file", { path: "a.txt", old: "1", new: "2" }],
  ] as const)
    assert.equal(diffs(tool, args), undefined);
});

test("the end of a call is reported with its text unchanged, in a fence that is long enough", () => {
  const rules = [{ id: "r", reason: "why", span: [0, 1] as const }];
  const decided = {
    type: "call.decided",
    call: "c1",
    decision: "allow",
    contained: true,
    rules,
    by: "policy",
  } as const;
  assert.deepEqual(of({ ...decided, runs: true }), [
    { sessionUpdate: "tool_call_update", toolCallId: "c1", status: "in_progress" },
  ]);
  assert.deepEqual(of({ ...decided, runs: false }), []);
  const [good] = of(endedWith("ok", "a\n````\nb"));
  assert.ok(good?.sessionUpdate === "tool_call_update");
  assert.equal(good.status, "completed");
  assert.deepEqual(good.content, [
    { type: "content", content: { type: "text", text: "`````\na\n````\nb\n`````" } },
  ]);
  const [bad] = of(endedWith("denied", "no"));
  assert.ok(bad?.sessionUpdate === "tool_call_update");
  assert.deepEqual([bad.status, bad.rawOutput], ["failed", { kind: "denied", cause: "policy" }]);
});

test("the diff of an edit stays next to its result, and a failed edit's is removed", () => {
  const edit = proposed("edit_file", { path: "a.txt", old: "1", new: "2" });
  const output = { type: "content", content: { type: "text", text: "```\nok\n```" } };
  const diff = { type: "diff", path: "/w/a.txt", oldText: "1", newText: "2" };
  for (const [kind, expected] of [
    ["ok", [diff, output]],
    ["denied", [output]],
  ] as const) {
    const open: OpenDiffs = new Map();
    of(edit, undefined, open);
    const [ended] = of(endedWith(kind, "ok"), undefined, open);
    assert.ok(ended?.sessionUpdate === "tool_call_update");
    assert.deepEqual([ended.content, open.size], [expected, 0]);
  }
});

test("a plan is sent without dropped steps", () => {
  const steps = [
    { text: "one", status: "done" },
    { text: "two", status: "doing" },
    { text: "three", status: "pending" },
    { text: "four", status: "dropped" },
  ] as const;
  assert.deepEqual(of({ type: "plan", steps: [...steps] }), [
    {
      sessionUpdate: "plan",
      entries: [
        { content: "one", priority: "medium", status: "completed" },
        { content: "two", priority: "medium", status: "in_progress" },
        { content: "three", priority: "medium", status: "pending" },
      ],
    },
  ]);
});

const FINISHED = runFinished({ reason: "why it ended", answer: "a" });

test("the end reports moved paths, files to look at and commits, and a good end without these reports nothing", () => {
  assert.deepEqual(of(FINISHED), []);
  assert.match(JSON.stringify(of({ ...FINISHED, status: "budget" })), /why it ended/);
  const told = JSON.stringify(
    of({
      ...FINISHED,
      handoff: [
        { path: ".envrc", tier: "dangerous", reason: "direnv runs it" },
        { path: "Makefile", tier: "look", reason: "make runs it" },
      ],
      quarantined: [{ from: "/w/.git/hooks/x", to: "/q/x", take_back: "" }],
      commits: [{ hash: "0123456789abcdef", subject: "mend", files: 1, protected: [] }],
    }),
  );
  for (const part of [".envrc: direnv runs it", "/w/.git/hooks/x -> /q/x", "0123456789 mend"])
    assert.ok(told.includes(part), told);
  assert.ok(!told.includes("Makefile"));
});

test("an answer replaced by a hook is marked as such", () => {
  const told = replacedAnswer("other words");
  assert.ok(told.sessionUpdate === "agent_message_chunk" && told.content.type === "text");
  assert.match(told.content.text, /A hook replaced the answer with this:\n\nother words$/);
});

test("the end of a turn maps to the protocol's reasons, and a missing model or box is an error", () => {
  const stops = (["done", "failed", "refused", "budget", "interrupted"] as const).map((status) =>
    stopOf({ status }),
  );
  assert.deepEqual(stops, ["end_turn", "end_turn", "end_turn", "max_turn_requests", "cancelled"]);
  const failures = (["model", "sandbox", "failed", "done"] as const).map((status) =>
    failureOf({ status, reason: "why" }),
  );
  assert.deepEqual(failures, ["why", "why", undefined, undefined]);
});

const QUESTION: Question = {
  call: "c1",
  tool: "bash",
  args: { command: "make" },
  text: "make",
  decision: {
    decision: "ask",
    contained: true,
    rules: [{ id: "unknown", reason: "not known", span: [0, 4] }],
  },
  mode: "workspace-write",
  writes: true,
};

test("a question has its whole command, the reasons and three answers", () => {
  const { title, kind, content, options } = permissionRequestOf(QUESTION);
  assert.deepEqual([title, kind], ["bash make", "execute"]);
  assert.match(JSON.stringify(content), /make.*not known \(unknown\)/);
  assert.deepEqual(
    options.map((each) => [each.optionId, each.kind]),
    [
      ["once", "allow_once"],
      ["session", "allow_always"],
      ["reject", "reject_once"],
    ],
  );
  const needs = permissionRequestOf({ ...QUESTION, grants: ["example.org"] }).options.map(({ name }) => name);
  assert.deepEqual(
    needs.map((name) => name.includes("example.org")),
    [true, true, false],
  );
});

test("a question shows the effects of the call and the part that a rule applies to, as the chat does", () => {
  const told = (more: object): string =>
    JSON.stringify(permissionRequestOf({ ...QUESTION, ...more }).content);
  const rules = [{ id: "net", reason: "it reaches the network", span: [8, 14] as const }];
  const many = Array.from({ length: 14 }, (_, at) => `effect ${at + 1}`);
  const asked = told({
    text: "make && curl x",
    decision: { ...QUESTION.decision, contained: false, rules },
    effects: many,
    shown: "+ a line",
  });
  assert.match(
    asked,
    /\+ a line.*It would:.*- effect 12\\n- and 2 more.*it reaches the network \(net\): curl x/,
  );
  assert.match(asked, /It is not contained/);
  const whole = told({ decision: { ...QUESTION.decision, contained: true, rules } });
  assert.match(whole, /It is contained/);
  assert.doesNotMatch(whole, /It would/);
});

test("an answer that was not offered means no", () => {
  const said = ["once", "session", "reject", "always", "", "ONCE"].map((each) => permissionOf(each));
  assert.deepEqual(said, ["once", "session", "reject", "reject", "reject", "reject"]);
});

test("a prompt consists of its texts, links and text files, and anything else is refused", () => {
  const blocks: ContentBlock[] = [
    { type: "text", text: "see " },
    { type: "resource_link", uri: "file:///w/a%20b.ts#L3", name: "a b.ts" },
    { type: "text", text: " and " },
    { type: "resource_link", uri: "https://example.org/x", name: "x" },
    { type: "resource", resource: { uri: "file:///w/c.ts", text: "held" } },
  ];
  assert.equal(promptOf(blocks), "see /w/a b.ts#L3 and https://example.org/x\n\n/w/c.ts:\n```\nheld\n```\n");
  assert.equal(promptOf([{ type: "resource_link", uri: "file://%zz/%", name: "odd" }]), "file://%zz/%");
  assert.equal(promptOf([{ type: "image", data: "", mimeType: "image/png" }]), undefined);
  assert.equal(promptOf([{ type: "resource", resource: { uri: "file:///x", blob: "AA" } }]), undefined);
});

test("an earlier conversation is replayed without the system prompt", () => {
  const updates = replayed(
    [
      { role: "system", text: "secret rules" },
      { role: "user", text: "do it" },
      { role: "assistant", text: "", calls: [{ id: "c1", name: "bash", args: { command: "ls" } }] },
      { role: "tool", call: "c1", text: "a.txt" },
      { role: "assistant", text: "done", calls: [] },
    ],
    "/w",
  );
  assert.deepEqual(
    updates.map(({ sessionUpdate }) => sessionUpdate),
    ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"],
  );
  assert.doesNotMatch(JSON.stringify(updates), /secret rules/);
});
