import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { runRequest } from "../../src/agent/agent-run.ts";
import { EndRules } from "../../src/agent/ending/end-rules.ts";
import { NO_CHANGES } from "../../src/agent/ending/run-changes.ts";
import { anyTool, NO_FACTS } from "../../src/core/tool.ts";
import { fakeAgent } from "../fakes/agent.ts";

const toolNamed = (name: string) =>
  anyTool({
    name,
    description: "",
    input: z.object({}),
    facts: () => NO_FACTS,
    concurrent: false,
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

test("a request for the web gets a notice about how to turn the web tools on only while they are off", async () => {
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
    concurrent: false,
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

test("after a run was stopped for repetition, the next one sees a one-line note instead of the repeated calls", async () => {
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

test("a history that did not end in repetition is left unchanged", async () => {
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

const FIXED = "I have fixed the bug.";

interface Claimed {
  readonly calls?: readonly (readonly [tool: string, writes?: string])[];
  readonly says?: string;
  readonly strict?: boolean;
  readonly untouched?: boolean;
  readonly workedBefore?: boolean;
  readonly commands?: string;
  /** The model has few parameters, and says it again when it is asked once more. */
  readonly isWeak?: boolean;
  readonly prompt?: string;
  /** Of the commands. */
  readonly exitCode?: number;
  /** The request only asks to run something. */
  readonly runs?: boolean;
}

/** A change was asked for: how a run ends that made these calls and says this. */
async function endOf({ calls = [["read_file"]], commands = "", ...given }: Claimed): Promise<string> {
  const { says = FIXED, strict = false, untouched = true, workedBefore = false } = given;
  const { isWeak = false, prompt = "fix sum.py", exitCode = 0, runs = false } = given;
  const tool = (name: string, writes?: string) =>
    anyTool({
      name,
      description: "",
      input: z.object({}),
      facts: () => ({
        ...NO_FACTS,
        ...(writes === undefined ? {} : { writes: [writes] }),
        ...(name === "bash" ? { commands: [commands] } : {}),
      }),
      concurrent: false,
      where: "box",
      run: () => Promise.resolve({ kind: "ok", text: "", ...(name === "bash" ? { exitCode } : {}) }),
    });
  const ends = new EndRules(null);
  ends.facts = { request: prompt, isWeak, only: runs ? "run" : undefined };
  const again = isWeak ? [{ text: says }] : [];
  const agent = fakeAgent({
    lines: [{ calls: calls.map(([name]) => [name, {}] as const) }, { text: says }, ...again],
    tools: calls.map(([name, writes]) => tool(name, writes)),
    over: { ends },
  });
  const changes = () => Promise.resolve({ changes: NO_CHANGES, untouched, handoff: [] });
  const request = {
    ...REQUEST,
    prompt,
    strict,
    workedBefore,
    changes,
    intent: "change",
  } as const;
  const { exit_code, reason } = await runRequest(agent, request, new AbortController().signal);
  assert.equal(agent.asked.length, 2 + again.length, "nothing is asked again");
  return `${exit_code} ${reason}`;
}

test("a weak model that only looked has not fulfilled a change request, unless the request left it open", async () => {
  const weak = { isWeak: true, says: "Nothing needs to be changed." };
  assert.equal(
    await endOf(weak),
    "1 The model changed nothing. It looked at the workspace; a change was requested, and a small model's word that none is needed is not proof (--check CMD provides one).",
  );
  assert.equal(
    await endOf({ ...weak, says: FIXED }),
    "1 The model changed nothing, although its answer says that it did.",
  );
  const open = { ...weak, prompt: "fix sum.py if it is wrong" };
  assert.match(await endOf(open), /^0 The model changed nothing\. It looked at the workspace\.$/);
  assert.match(await endOf({ ...weak, isWeak: false }), /^0 /);
});

test("an answer that claims a change where there was none is reported as such", async () => {
  const claim = /^0 The model changed nothing, although its answer says that it did\. It looked at /;
  assert.match(await endOf({}), claim);
  assert.match(await endOf({ calls: [["bash"]], commands: "echo fixed" }), claim);
  assert.match(await endOf({ calls: [["bash"]], commands: "git status" }), claim);
  assert.match(await endOf({ calls: [["read_file"], ["edit_file", "/repo/sum.py"]] }), claim);
  assert.equal(
    await endOf({ strict: true }),
    "1 The model changed nothing, although its answer says that it did.",
  );
  const plain = /^0 The model changed nothing\. It looked at /;
  assert.match(await endOf({ says: "It is right as it is." }), plain);
  assert.match(await endOf({ says: "It is right as it is.", strict: true }), plain);
  // What was done may be no change of a file here, or an earlier one.
  assert.match(await endOf({ workedBefore: true }), plain);
  for (const commands of ["git add sum.py", "mkdir out", "cp sum.py /tmp/x"])
    assert.match(await endOf({ calls: [["bash"]], commands }), plain, commands);
  assert.match(await endOf({ calls: [["deploy"]] }), plain);
  assert.match(await endOf({ untouched: false }), /^0 The model gave its answer\.$/);
});

test("a request to run something is answered with how the command ended, even if it only looks", async () => {
  const run = { prompt: "run it", runs: true, says: "Done.", calls: [["bash"]] } as const;
  for (const commands of ["false", "ls /nowhere", "make"])
    assert.equal(
      await endOf({ ...run, commands, exitCode: 2 }),
      `0 The model gave its answer; \`${commands}\` exited with 2.`,
    );
  assert.equal(await endOf({ ...run, commands: "make" }), "0 The model gave its answer.");
  assert.equal(
    await endOf({ ...run, commands: "ls src" }),
    "0 The model changed nothing. It looked at ls src.",
  );
});
