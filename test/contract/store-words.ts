import type { AgentEvent, EventBody, RunStatus } from "../../src/core/events.ts";
import {
  PARKED_FORM,
  type AnswerWord,
  type SessionAbout,
  type SessionRecord,
} from "../../src/core/session.ts";
import type { Question } from "../../src/core/ports.ts";
export const ABOUT: SessionAbout = {
  workspace: "/home/dev/project",
  mode: "workspace-write",
  provider: "ollama",
  model: "coder:7b",
  title: "fix the sum",
};

export const message = (text: string): SessionRecord => ({
  kind: "message",
  message: { role: "user", text },
});

export const turn = (status: RunStatus): SessionRecord => ({
  kind: "turn",
  result: {
    intent: "change",
    status,
    reason: "",
    usage: { requests: 2, prompt_tokens: 100, completion_tokens: null, cached_tokens: 0, cost: 0.25 },
    turns: 2,
    toolCalls: 1,
    answer: null,
  },
});

export const question = (text: string): Question => ({
  call: "c1",
  tool: "bash",
  args: { command: text },
  text,
  folder: "/home/dev/project",
  decision: {
    decision: "ask",
    contained: false,
    rules: [{ id: "net", reason: "it reaches out", span: [0, 4] }],
  },
  mode: "workspace-write",
  writes: false,
});

export const parked = (text: string): SessionRecord & { readonly kind: "parked" } => ({
  kind: "parked",
  parked: {
    form: PARKED_FORM,
    question: question(text),
    malformed: [],
    children: [{ prompt: "a part", maxTurns: 10, turns: 1, malformed: [], records: [message("a part")] }],
    intent: "change",
    fixed: false,
    strict: false,
    spent: {
      turns: 1,
      ms: 12.5,
      tokens: 100,
      cost: 0,
      calls: 0,
      told: ["turns"],
      usage: { requests: 1, prompt_tokens: 90, completion_tokens: 10, cached_tokens: null, cost: null },
    },
    ended: [],
    given: { task: "fix the sum", limits: { turns: 40 }, settings: {}, runtime: null, schema: null },
  },
});

export const answered = (text: string, word: AnswerWord): SessionRecord => ({
  kind: "answered",
  question: question(text),
  word,
});

export const event = (body: EventBody): AgentEvent => ({ ...body, run: "r1", seq: 1 });

/** One record of each kind, in the order of a run. */
export const RECORDS: readonly SessionRecord[] = [
  { kind: "pinned", text: "You change code." },
  message("fix the sum"),
  {
    kind: "message",
    message: { role: "assistant", text: "", calls: [{ id: "c1", name: "read", args: { path: "sum.js" } }] },
  },
  { kind: "message", message: { role: "tool", call: "c1", text: "a - b" } },
  { kind: "seen", path: "/home/dev/project/sum.js", hash: "ab".repeat(32) },
  { kind: "shell", folder: "/home/dev/project", env: { CI: "1" } },
  { kind: "plan", plan: [{ text: "find the sum", status: "doing" }] },
  { kind: "tasks", open: [{ id: "t1", prompt: "look at the tests" }] },
  { kind: "compacted", compaction: { at: 3, pruneBefore: 2, keepFrom: 0, artifact: "" } },
  parked("curl x"),
  answered("curl x", "once"),
  turn("done"),
  { kind: "seen", path: "/home/dev/project/sum.js", hash: null },
  { kind: "rolled_back", to: 1 },
  { kind: "cleared" },
  message("and now?"),
];
