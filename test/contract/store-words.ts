import type { AgentEvent, EventBody, RunStatus } from "../../src/core/events.ts";
import type { SessionAbout, SessionRecord } from "../../src/core/session.ts";

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

export const event = (body: EventBody): AgentEvent => ({ ...body, run: "r1", seq: 1 });

/** One of each kind, and what a run makes of them. */
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
  { kind: "compacted", compaction: { at: 3, pruneBefore: 2, keepFrom: 0, artifact: "" } },
  turn("done"),
  { kind: "seen", path: "/home/dev/project/sum.js", hash: null },
  { kind: "rolled_back", to: 1 },
  { kind: "cleared" },
  message("and now?"),
];
