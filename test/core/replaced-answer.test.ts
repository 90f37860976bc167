import assert from "node:assert/strict";
import test from "node:test";
import type { AgentEvent, EventBody } from "../../src/core/events.ts";
import { ReplacedAnswer } from "../../src/core/tool.ts";
import { runFinished } from "../fixtures/events.ts";

const hook = (event: "Stop" | "PostToolUse", did: "replaced" | "continued" | "passed"): EventBody => ({
  type: "hook",
  event,
  hook: "h",
  owner: "user",
  did,
  ms: 1,
});
const TURN: EventBody = { type: "turn.started", turn: 1, record_count: 1, tokens: 1 };
const finished = (status: "done" | "failed" = "done"): EventBody =>
  runFinished({ status, reason: "why", answer: "other words" });

function after(bodies: readonly EventBody[], agent?: string): string | undefined {
  const answer = new ReplacedAnswer();
  const events = bodies.map((body, at): AgentEvent => ({
    ...body,
    run: "r",
    seq: at + 1,
    ...(agent === undefined ? {} : { agent }),
  }));
  return events.map((event) => answer.take(event)).at(-1);
}

test("only an answer that a hook replaced is shown again at the end", () => {
  assert.equal(after([TURN, hook("Stop", "replaced"), finished()]), "other words");
  assert.equal(after([TURN, hook("Stop", "replaced"), hook("Stop", "passed"), finished()]), "other words");
  for (const others of [
    [TURN, finished()],
    [TURN, hook("Stop", "passed"), finished()],
    [TURN, hook("PostToolUse", "replaced"), finished()],
    [TURN, hook("Stop", "replaced"), hook("Stop", "continued"), TURN, finished()],
    [TURN, hook("Stop", "replaced"), finished("failed")],
  ])
    assert.equal(after(others), undefined);
  assert.equal(after([TURN, hook("Stop", "replaced"), finished()], "a1"), undefined);
});
