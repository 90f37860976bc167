import assert from "node:assert/strict";
import test from "node:test";
import { DecidedCalls } from "../../../src/app/run/chat-controller.ts";
import type { AgentEvent } from "../../../src/core/events.ts";

test("asked and denied calls are remembered, plainly allowed ones are not", () => {
  const calls = new DecidedCalls();
  const take = (decision: string, runs: boolean, by: string): void => {
    calls.take({ type: "call.proposed", call: "1", tool: "bash", args: {} } as unknown as AgentEvent);
    const judged = { commands: [`${decision} it`], reads: [], writes: [], hosts: [] };
    const rules = [{ id: "a.rule", reason: "because", span: [0, 1] }];
    calls.take({
      type: "call.decided",
      call: "1",
      decision,
      runs,
      by,
      rules,
      judged,
    } as unknown as AgentEvent);
  };
  take("allow", true, "policy");
  take("ask", true, "person");
  take("deny", false, "policy");
  assert.deepEqual(
    calls.last.map(({ tool, what, decision, runs, rule }) => [tool, what, decision, runs, rule]),
    [
      ["bash", "ask it", "ask", true, "a.rule"],
      ["bash", "deny it", "deny", false, "a.rule"],
    ],
  );
  for (let nth = 0; nth < 50; nth += 1) take("ask", false, "person");
  assert.equal(calls.last.length, 20);
});
