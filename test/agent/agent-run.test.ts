import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { runRequest } from "../../src/agent/agent-run.ts";
import { EndRules } from "../../src/agent/earned-end.ts";
import { NO_CHANGES } from "../../src/agent/run-changes.ts";
import { anyTool, NO_FACTS } from "../../src/core/tool.ts";
import { fakeAgent } from "../fakes/agent.ts";

const toolNamed = (name: string) =>
  anyTool({
    name,
    description: "",
    input: z.object({}),
    facts: () => NO_FACTS,
    beside: false,
    where: "session",
    run: () => Promise.resolve({ kind: "ok", text: "" }),
  });

async function noticesFor(prompt: string, tool: string): Promise<readonly string[]> {
  const agent = fakeAgent({
    lines: [{ text: "I cannot." }],
    tools: [toolNamed(tool)],
    over: { ends: new EndRules(null) },
  });
  const request = {
    prompt,
    strict: false,
    session: "s",
    changes: () => Promise.resolve({ changes: NO_CHANGES, handoff: [] }),
    record: () => undefined,
    workspace: "/repo",
  };
  await runRequest(agent, request, new AbortController().signal);
  return agent.events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
}

test("a request for the web says what would turn its tools on, where they are off, and nothing else does", async () => {
  const web = "search the web for the newest release of zod";
  const [said = "", ...others] = await noticesFor(web, "read_file");
  assert.match(said, /tools are off; .*harness config set web '\{"fetch": true\}'/);
  assert.deepEqual(others, []);
  assert.deepEqual(await noticesFor(web, "web_search"), []);
  assert.deepEqual(await noticesFor("hello", "read_file"), []);
});

const REQUEST = {
  strict: false,
  session: "s",
  changes: () => Promise.resolve({ changes: NO_CHANGES, handoff: [] }),
  record: () => undefined,
  workspace: "/repo",
};

const saying = (name: string, text: string) =>
  anyTool({
    name,
    description: "",
    input: z.record(z.string(), z.unknown()),
    facts: () => NO_FACTS,
    beside: false,
    where: "session",
    run: () => Promise.resolve({ kind: "ok", text }),
  });

const LOOK = ["look", { at: "GOOD-CALL" }] as const;
const [TRY, OTHER] = [
  ["try", { it: "VAIN-ATTEMPT" }],
  ["look", { at: "VAIN-LOOK" }],
] as const;

/** All that is shown to the model, when somebody goes on with a run of these replies. */
async function goneOnWith(
  replies: readonly (readonly (readonly [string, Readonly<Record<string, unknown>>])[])[],
): Promise<{ readonly status: string; readonly shown: string; readonly roles: readonly string[] }> {
  const tools = [saying("look", "GOOD-RESULT"), saying("try", "VAIN-RESULT")];
  const first = fakeAgent({ lines: replies.map((calls) => ({ text: "so", calls })), tools });
  const signal = new AbortController().signal;
  const { status } = await runRequest(first, { ...REQUEST, prompt: "FIRST-WISH" }, signal);
  const records = [...first.records];
  const again = fakeAgent({ lines: [{ text: "done" }], tools, earlier: records });
  await runRequest(again, { ...REQUEST, prompt: "go on" }, signal);
  const messages = again.asked[0]?.messages ?? [];
  return { status, shown: JSON.stringify(messages), roles: messages.map(({ role }) => role) };
}

test("who goes on after a repetition that was stopped is not shown it again, but a line that says so", async () => {
  const one = await goneOnWith([[LOOK], [TRY], [TRY], [TRY], [TRY]]);
  assert.equal(one.status, "budget");
  for (const kept of ["FIRST-WISH", "GOOD-CALL", "GOOD-RESULT", "go on"])
    assert.ok(one.shown.includes(kept), kept);
  assert.doesNotMatch(one.shown, /VAIN|Not run/);
  assert.match(one.shown, /you made the same try call 4 times, with the same results/);
  assert.deepEqual(one.roles, ["system", "user", "assistant", "tool", "user"]);

  const round = [[TRY], [OTHER]];
  const cycle = await goneOnWith([[LOOK], ...round, ...round, ...round, ...round]);
  assert.equal(cycle.status, "budget");
  assert.ok(cycle.shown.includes("GOOD-CALL"));
  assert.doesNotMatch(cycle.shown, /VAIN|Not run/);
  assert.match(cycle.shown, /the same 2 calls \((?:try, look|look, try)\) over and over, 7 in all/);

  const mixed = await goneOnWith([[LOOK, TRY], [TRY], [TRY], [TRY, LOOK]]);
  assert.equal(mixed.status, "budget");
  assert.ok(mixed.shown.includes("GOOD-RESULT"));
  assert.match(mixed.shown, /the same try call 4 times/);
  assert.deepEqual(mixed.roles, ["system", "user", "assistant", "tool", "tool", "user"]);
});

test("a history that ends with another way, or with two of the same, stays as it is", async () => {
  for (const replies of [
    [[TRY], [TRY], [TRY], [LOOK]],
    [[TRY], [TRY]],
  ]) {
    const { shown, status } = await goneOnWith(replies);
    assert.notEqual(status, "budget");
    assert.match(shown, /VAIN-ATTEMPT/);
    assert.doesNotMatch(shown, /you were stopped/);
  }
});
