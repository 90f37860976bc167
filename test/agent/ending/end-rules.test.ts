import assert from "node:assert/strict";
import test from "node:test";
import { ACT_NOW, ACT_SOON, Deeds } from "../../../src/agent/ending/deeds.ts";
import { EndRules } from "../../../src/agent/ending/end-rules.ts";
import { missingForRequest } from "../../../src/agent/ending/missing-work.ts";
import type { Verification } from "../../../src/agent/ending/verification.ts";
import { Limits, type LimitValues } from "../../../src/agent/limits.ts";
import { runLoop } from "../../../src/agent/loop.ts";
import type { Intent } from "../../../src/core/model-provider.ts";
import type { EndedCall } from "../../../src/core/session.ts";
import { anyTool, NO_FACTS, type ToolResult } from "../../../src/core/tool.ts";
import * as z from "zod";
import { fakeAgent, type FakeAgent, type Line } from "../../fakes/agent.ts";

const NEVER = new AbortController().signal;

const call = (over: Partial<EndedCall> = {}): EndedCall => ({
  call: "c1",
  tool: "read_file",
  target: "a.ts",
  kind: "ok",
  refused: false,
  decision: "allow",
  rule: "",
  reason: "",
  changes: false,
  ...over,
});

const after = (
  ...calls: readonly (readonly [Partial<EndedCall>, exitCode?: number | undefined])[]
): Deeds => {
  const deeds = new Deeds();
  for (const [at, [over, exitCode]] of calls.entries()) deeds.take(call(over), exitCode, `result ${at}`);
  return deeds;
};

test("calls that succeeded and commands that ran are work; calls that failed, were refused or never started are not", () => {
  const table: readonly (readonly [Partial<EndedCall>, number | undefined, boolean])[] = [
    [{}, undefined, true],
    [{ tool: "write_file", changes: true }, undefined, true],
    [{ tool: "bash", target: "npm test" }, 0, true],
    [{ tool: "bash", target: "npm test", kind: "failed" }, 1, true],
    [{ tool: "bash", target: "sleep 900", kind: "timed_out" }, 124, true],
    [{ tool: "bash", target: "nosuch", kind: "failed" }, 127, false],
    [{ tool: "bash", target: "./a.txt", kind: "failed" }, 126, false],
    [{ tool: "edit_file", kind: "failed" }, undefined, false],
    [{ kind: "invalid" }, undefined, false],
    [{ kind: "denied", refused: true }, undefined, false],
    [{ kind: "cancelled" }, undefined, false],
    [{ tool: "note", target: "" }, undefined, true],
    [{ tool: "task", target: "" }, undefined, true],
  ];
  for (const [over, exitCode, worked] of table)
    assert.equal(after([over, exitCode]).worked, worked, JSON.stringify(over));
  assert.equal(new Deeds([call()]).worked, true);
  assert.equal(new Deeds([call({ kind: "failed" })]).worked, false);
});

const NOTHING = {
  worked: false,
  isGrounded: false,
  changed: false,
  acted: false,
  actedBeside: false,
  ran: undefined,
  ranTests: undefined,
  triedSince: "nothing" as const,
  lastTests: undefined,
};

const lack = (
  intent: Intent,
  over: Partial<
    typeof NOTHING & { readonly answer: string; readonly isWeak: boolean; readonly refused: boolean }
  > = {},
) => {
  const { answer = "It is at the top.", isWeak = false, refused = false, ...done } = over;
  const calls = refused ? [call({ refused })] : [];
  return missingForRequest(
    answer,
    { intent, request: "mend the parser", isWeak },
    { ...NOTHING, ...done },
    calls,
  );
};

test("what an answer lacks depends on the request and on what was done", () => {
  const back = "Please provide more details.";
  for (const intent of ["direct", "web"] as const) assert.equal(lack(intent, { answer: back }), undefined);
  for (const intent of ["change", "repo"] as const) {
    const worked = { worked: true, isGrounded: true };
    assert.equal(lack(intent), "work");
    assert.equal(lack(intent, worked), undefined);
    assert.equal(lack(intent, { ...worked, answer: back }), "asks back");
    // The refusal is what a person can lift.
    assert.equal(lack(intent, { refused: true }), undefined);
    assert.equal(lack(intent, { refused: true, answer: back }), undefined);
  }
  // Behind a deed such words are manners.
  for (const done of [
    { changed: true, acted: true },
    { actedBeside: true, acted: true },
  ]) {
    assert.equal(lack("change", { worked: true, answer: back, ...done }), undefined);
    assert.equal(lack("repo", { isGrounded: true, answer: back, ...done }), "asks back");
  }
  assert.equal(lack("change", { worked: true, isWeak: true }), "change");
  assert.equal(lack("change", { worked: true, isWeak: true, changed: true, acted: true }), undefined);
  // Files left by a test run are not work.
  assert.equal(lack("change", { worked: true, isWeak: true, changed: true }), "change");
  assert.equal(lack("repo", { isGrounded: true, isWeak: true }), undefined);
  assert.equal(lack("repo", { isGrounded: true, isWeak: true, answer: "I am done." }), "says done");
  assert.equal(lack("repo", { isGrounded: true, answer: "I am done." }), undefined);
});

test("running a command that the request names fulfils the request, even if the command only looks", () => {
  const asked = { intent: "change", request: "run ls", isWeak: true, only: "run" } as const;
  const listed = after([{ tool: "bash", target: "ls" }, 0]);
  assert.equal(missingForRequest("a.ts", asked, listed, []), undefined);
  assert.equal(missingForRequest("a.ts", { ...asked, request: "run the tests" }, listed, []), "run");
  const ends = new EndRules(null);
  const run = { intent: { intent: "change" }, ended: [], mode: "workspace-write" } as const;
  for (const [request, deeds, demand] of [
    ["run ls", new Deeds(), "run"],
    ["run ls", listed, undefined],
    ["run the tests", listed, "run"],
    ["run the tests", after([{ tool: "bash", target: "npm run build" }, 0]), "run"],
    ["run the tests", after([{ tool: "bash", target: "npm test" }, 0]), undefined],
    ["build the project", after([{ tool: "bash", target: "npm run build" }, 0]), undefined],
  ] as const) {
    ends.facts = { request, isWeak: true, only: "run" };
    assert.equal(ends.demands.next({ ...run, deeds }), demand, request);
  }
});

const lackAfter = (deeds: Deeds, { answer = "2 of 30 fail.", isWeak = true, refused = false } = {}) => {
  const asked = { intent: "change", request: "run the tests", isWeak, only: "run" } as const;
  return missingForRequest(answer, asked, deeds, refused ? [call({ refused })] : []);
};

test("a request to run something is fulfilled once it has run and its result is reported truthfully", () => {
  const looked = after([{ tool: "bash", target: "cat setup.py" }, 0]);
  const red = after([{ tool: "bash", target: "npm test", kind: "failed" }, 1]);
  const missing = after([{ tool: "bash", target: "pytest", kind: "failed" }, 127]);
  const green = after([{ tool: "bash", target: "sh check.sh" }, 0]);
  for (const isWeak of [true, false]) {
    assert.equal(lackAfter(new Deeds(), { isWeak }), "run");
    for (const ran of [red, missing, green]) assert.equal(lackAfter(ran, { isWeak }), undefined);
    // A person can lift the refusal.
    assert.equal(lackAfter(new Deeds(), { isWeak, refused: true }), undefined);
    for (const ran of [red, missing])
      assert.equal(lackAfter(ran, { isWeak, answer: "The tests passed." }), "green");
    assert.equal(lackAfter(green, { isWeak, answer: "The tests passed." }), undefined);
    assert.equal(lackAfter(green, { isWeak, answer: "I will run the tests." }), "announces");
  }
  // There may be nothing to run, and who is believed has seen that.
  assert.equal(lackAfter(looked, { isWeak: false }), undefined);
  assert.equal(lackAfter(looked), "run");
  // It started a shell and gave it nothing; or it ran something else than the tests.
  for (const target of ["bash", " python3 ", "node", "true", "exit 0", "sleep 1"])
    assert.equal(lackAfter(after([{ tool: "bash", target }, 0]), { isWeak: true }), "run", target);
  const build = { intent: "change", request: "build the project", isWeak: true, only: "run" } as const;
  assert.equal(
    missingForRequest("It is built.", build, after([{ tool: "bash", target: "bash" }, 0]), []),
    "run",
  );
  assert.equal(
    missingForRequest("It is built.", build, after([{ tool: "bash", target: "make" }, 0]), []),
    undefined,
  );
  const built = after([{ tool: "bash", target: "npm run build" }, 0]);
  assert.equal(lackAfter(built), "run");
  assert.equal(lackAfter(built, { isWeak: false }), undefined);
  for (const target of [
    "./run-tests.sh",
    "make verify",
    "npm run ci",
    "python -m unittest",
    "cargo nextest run",
  ])
    assert.equal(lackAfter(after([{ tool: "bash", target }, 0])), undefined, target);
  // A command after a successful test run may fail.
  const linted = after(
    [{ tool: "bash", target: "npm test" }, 0],
    [{ tool: "bash", target: "npm run lint", kind: "failed" }, 1],
  );
  assert.equal(lackAfter(linted, { answer: "All tests pass. The linter has 3 complaints." }), undefined);
});

const noReply = () => Promise.resolve(undefined);

const judged = (ends: EndRules, answer: string, deeds: Deeds, mayTell: boolean) => {
  const agent = fakeAgent({ lines: [], tools: [], over: { ends, deeds } });
  agent.intent.begin("change");
  return ends.judge(answer, agent, { mayTell, ask: noReply, signal: NEVER });
};

test("a request for information needs a look and no change", async () => {
  for (const isWeak of [true, false]) {
    const asked = { intent: "change", request: "list all TODOs", isWeak, only: "look" } as const;
    assert.equal(missingForRequest("There are 3.", asked, new Deeds(), []), "work");
    assert.equal(missingForRequest("There are 3.", asked, after([{ tool: "grep" }]), []), undefined);
    assert.equal(missingForRequest("I will look.", asked, after([{ tool: "grep" }]), []), "announces");
  }
  const ends = new EndRules(null);
  ends.facts = { request: "list all TODOs", isWeak: true, only: "look" };
  const run = {
    intent: { intent: "change" },
    deeds: new Deeds(),
    ended: [],
    mode: "workspace-write",
  } as const;
  assert.equal(ends.demands.next(run), undefined);
  const first = await judged(ends, "There are 3.", run.deeds, true);
  assert.ok(first.kind === "told" && first.demand === "call");
  assert.match(first.text, /You looked at nothing of the repository/);
  assert.deepEqual(await judged(ends, "There are 3.", run.deeds, false), {
    kind: "ends",
    end: { how: "nothing_done", reason: "nothing was done" },
  });
});

const ran = (target: string, tool = "bash") => after([{ tool, target }, 0]).ran?.command;

test("commands that only look are not a run, however they are joined; any other command and any added tool is", () => {
  for (const look of [
    "ls",
    "cd src && ls -la",
    "cat a b",
    "grep -n x a; head b",
    "git status",
    "git log -3 | head",
    "pwd",
  ])
    assert.equal(ran(look), undefined, look);
  for (const run of [
    "npm test",
    "cd src && make",
    "ls; make",
    "python3 a.py | tail",
    "cat $(make x)",
    "git bisect run make",
  ])
    assert.equal(ran(run), run, run);
  assert.equal(ran("", "run_tests"), "run_tests");
  assert.equal(ran("a.ts", "read_file"), undefined);
});

const acted = (tool: string, target: string, changes: boolean): boolean =>
  after([{ tool, target, changes }, 0]).acted;

test("running tests is not an act, whatever files it leaves; an edit or an effect outside the files is", () => {
  assert.equal(acted("bash", "make test", true), false);
  assert.equal(acted("bash", "npm test", false), false);
  assert.equal(acted("bash", "git commit -m x", false), true);
  assert.equal(acted("bash", "sed -i s/a/b/ c", true), true);
  assert.equal(acted("edit_file", "make test", true), true);
  assert.equal(acted("read_file", "a", false), false);
});

test("what an earlier request of the session showed grounds an answer, but is not a change", () => {
  assert.deepEqual(
    [lack("repo", { isGrounded: true }), lack("change", { isGrounded: true })],
    [undefined, "work"],
  );
  const deeds = new Deeds();
  deeds.goOn();
  assert.equal(deeds.worked, false);
  deeds.saw("files with the task");
  deeds.goOn();
  assert.deepEqual([deeds.isGrounded, deeds.worked], [true, false]);
  deeds.saw("earlier request");
  deeds.goOn();
  assert.equal(deeds.worked, true);
});

test("files that were looked at are listed once, in order, without those that were changed", () => {
  const deeds = after(
    [{ target: "a.ts" }],
    [{ target: "b.ts" }],
    [{ target: "a.ts" }],
    [{ tool: "write_file", target: "c.ts", changes: true }],
  );
  assert.deepEqual(deeds.looked, ["a.ts", "b.ts"]);
});

test("a model that sees only what it has already seen, or looks for long without a change, is reminded to act", () => {
  const stale = new Deeds();
  for (let at = 0; at < 4; at += 1) stale.take(call({ target: `a${at}` }), undefined, "the same");
  assert.equal(stale.note("repo"), undefined);
  stale.take(call({ target: "a5" }), undefined, "the same");
  assert.equal(stale.note("repo"), ACT_NOW);
  assert.equal(stale.note("repo"), undefined);
  const long = new Deeds();
  for (let at = 0; at < 25; at += 1) long.take(call({ target: `a${at}` }), undefined, `text ${at}`);
  assert.equal(long.note("repo"), undefined);
  const paging = new Deeds();
  for (let at = 0; at < 50; at += 1) paging.take(call({ tool: "show_full", target: "" }), undefined, "page");
  assert.deepEqual([paging.worked, paging.note("change")], [true, undefined]);
  assert.equal(long.note("change"), ACT_SOON);
  assert.equal(long.note("change"), undefined);
});

const look = anyTool({
  name: "read_file",
  description: "",
  input: z.object({ word: z.string() }),
  facts: ({ word }) => ({ ...NO_FACTS, reads: [`/repo/${word}`] }),
  concurrent: false,
  where: "session",
  run: async ({ word }): Promise<ToolResult> =>
    Promise.resolve(
      word === "bad" ? { kind: "failed", cause: "program", text: "no" } : { kind: "ok", text: word },
    ),
});

function agentFor(intent: Intent, lines: readonly Line[], turns = 40): FakeAgent {
  const limits = new Limits({ turns }, () => 0);
  const agent = fakeAgent({ lines, tools: [look], over: { ends: new EndRules(null), limits } });
  agent.intent.begin(intent);
  return agent;
}

const looks = (word: string): Line => ({ calls: [["read_file", { word }]] });

test("a change request answered without a call is nudged once, then ends as nothing done", async () => {
  const agent = agentFor("change", [{ text: "Please tell me more." }, { text: "More, please." }]);
  assert.deepEqual(await runLoop(agent, NEVER), { how: "nothing_done", reason: "nothing was done" });
  assert.equal(agent.asked.length, 2);
  const nudge = agent.asked[1]?.messages.at(-1);
  assert.match(nudge?.text ?? "", /^\[harness\] Nothing was read or changed/);
  // Where the server can hold a reply, the one to the nudge is held.
  assert.deepEqual(
    agent.asked.map(({ hold }) => hold?.now ?? false),
    [false, true],
  );
});

test("a failed call is not work, and a call that succeeds after the nudge is", async () => {
  const failed = agentFor("change", [looks("bad"), { text: "Done!" }, { text: "Done, really." }]);
  assert.deepEqual(await runLoop(failed, NEVER), { how: "nothing_done", reason: "nothing was done" });
  const worked = agentFor("change", [{ text: "Done!" }, looks("a"), { text: "It is right as it is." }]);
  assert.deepEqual(await runLoop(worked, NEVER), { how: "answered", text: "It is right as it is." });
});

test("an answer about the repository without a look is nudged once, then accepted", async () => {
  const agent = agentFor("repo", [{ text: "At the server." }, { text: "At the server level." }]);
  assert.deepEqual(await runLoop(agent, NEVER), { how: "answered", text: "At the server level." });
  assert.match(agent.asked[1]?.messages.at(-1)?.text ?? "", /looked at nothing/);
});

test("any other request ends with the model's answer, and so does everything in a chat", async () => {
  for (const intent of ["direct", "web"] as const)
    assert.deepEqual(await runLoop(agentFor(intent, [{ text: "4" }]), NEVER), { how: "answered", text: "4" });
  const chat = fakeAgent({ lines: [{ text: "Which one?" }], tools: [look] });
  chat.intent.begin("change");
  assert.deepEqual(await runLoop(chat, NEVER), { how: "answered", text: "Which one?" });
});

test("there is no nudge when no turn is left", async () => {
  const change = agentFor("change", [{ text: "Please tell me more." }], 1);
  assert.deepEqual(await runLoop(change, NEVER), { how: "nothing_done", reason: "nothing was done" });
  const repo = agentFor("repo", [{ text: "At the server." }], 1);
  assert.deepEqual(await runLoop(repo, NEVER), { how: "answered", text: "At the server." });
});

test("the answer after a nudge replaces the first one", async () => {
  const agent = agentFor("repo", [{ text: "One." }, looks("a"), { text: "Two." }]);
  assert.deepEqual(await runLoop(agent, NEVER), { how: "answered", text: "Two." });
});

test("a small model asked to run something must call commands until one has run, and its false claim about tests is rejected", async () => {
  const ends = new EndRules(null);
  ends.facts = { request: "run the tests", isWeak: true, only: "run" };
  const lines = [
    looks("a"),
    { text: "The tests passed." },
    runs(1, "npm test"),
    { text: "All tests pass." },
    { text: "All tests pass." },
  ];
  const limits = new Limits({ turns: 40 }, () => 0);
  const agent = fakeAgent({ lines, tools: [look, bash], over: { ends, limits } });
  agent.intent.begin("change");
  assert.deepEqual(await runLoop(agent, NEVER), {
    how: "nothing_done",
    reason:
      "the answer says that tests pass, but the last command that the model ran failed (exit 1): `npm test`",
  });
  assert.match(agent.asked[2]?.messages.at(-1)?.text ?? "", /^\[harness\] Nothing was run so far/);
  assert.match(agent.asked[4]?.messages.at(-1)?.text ?? "", /^\[harness\] Your answer says that tests pass/);
  assert.deepEqual(
    agent.asked.map(({ hold }) => hold?.call === true && hold.without?.includes("read_file")),
    [true, true, true, false, false],
  );
  const idle = new EndRules(null);
  idle.facts = { request: "run the tests", isWeak: true, only: "run" };
  const never = fakeAgent({
    lines: [{ text: "Yes." }, { text: "Yes." }],
    tools: [look, bash],
    over: { ends: idle, limits },
  });
  never.intent.begin("change");
  assert.deepEqual(await runLoop(never, NEVER), { how: "nothing_done", reason: "nothing was done" });
  const looked = [looks("a"), { text: "Yes." }, { text: "Yes." }];
  const only = new EndRules(null);
  only.facts = { request: "run the tests", isWeak: true, only: "run" };
  const read = fakeAgent({ lines: looked, tools: [look, bash], over: { ends: only, limits } });
  read.intent.begin("change");
  assert.deepEqual(await runLoop(read, NEVER), { how: "nothing_done", reason: "nothing was run" });
});

/** An answer in which a call stands that was not run. */
const UNRUN: Line = {
  text: '```json\n{"name": "fix_it", "arguments": {}}\n```',
  malformed: [{ id: "m1", name: "fix_it", reason: "there is no fix_it", missed: "not_offered", nearest: [] }],
};

test("an answer with calls written as text is told once which tools exist, then the model counts as broken", async () => {
  const agent = agentFor("repo", [UNRUN, UNRUN]);
  const end = await runLoop(agent, NEVER);
  assert.equal(end.how, "model_broken");
  assert.equal(agent.asked.length, 2);
  assert.match(
    agent.asked[1]?.messages.at(-1)?.text ?? "",
    /What stands in an answer is not run\. There are these tools: read_file\./,
  );
  assert.equal(agent.asked[1]?.hold?.now, true);
});

test("unrun calls are tolerated when a working call comes in between, or when they have the server's own form", async () => {
  const between = agentFor("repo", [UNRUN, looks("a"), UNRUN, looks("b"), { text: "Done." }]);
  assert.deepEqual(await runLoop(between, NEVER), { how: "answered", text: "Done." });
  const native = { ...UNRUN, text: "" };
  const called = agentFor("repo", [native, native, native, looks("a"), { text: "Done." }]);
  assert.deepEqual(await runLoop(called, NEVER), { how: "answered", text: "Done." });
});

test("a small model that only looked is asked once more, a large one is believed", async () => {
  const small = agentFor("change", [looks("a"), { text: "It is fine." }, { text: "It is fine as it is." }]);
  if (small.ends !== null) small.ends.facts = { request: "mend it", isWeak: true };
  assert.deepEqual(await runLoop(small, NEVER), { how: "answered", text: "It is fine as it is." });
  assert.match(small.asked[2]?.messages.at(-1)?.text ?? "", /You looked, and changed nothing/);
  const large = agentFor("change", [looks("a"), { text: "It is fine." }]);
  assert.deepEqual(await runLoop(large, NEVER), { how: "answered", text: "It is fine." });
});

test("a reply that is not an answer is challenged once, then the run ends without one", async () => {
  const back = "Could you please provide more details?";
  const change = agentFor("change", [looks("a"), { text: back }, { text: back }]);
  assert.deepEqual(await runLoop(change, NEVER), {
    how: "nothing_done",
    reason: "nothing was changed: the model's answer asks somebody who is not there",
  });
  assert.match(change.asked[2]?.messages.at(-1)?.text ?? "", /^\[harness\] Your answer asks somebody/);
  assert.equal(change.asked[2]?.hold?.now, true);
  const repo = agentFor("repo", [
    looks("a"),
    { text: "I'm sorry, but I can't assist with that." },
    { text: "I will look at it." },
  ]);
  assert.deepEqual(await runLoop(repo, NEVER), {
    how: "nothing_done",
    reason: "there is no answer: the model's answer only says what comes next",
  });
  const mended = agentFor("repo", [looks("a"), { text: back }, { text: "It lists files." }]);
  assert.deepEqual(await runLoop(mended, NEVER), { how: "answered", text: "It lists files." });
  const lastTurn = agentFor("repo", [looks("a"), { text: back }], 2);
  assert.equal((await runLoop(lastTurn, NEVER)).how, "nothing_done");
});

test("a weak model's claim that no change is needed is believed only if the request left it open or the user's check proves it", () => {
  const proof = { isProof: true } as Verification;
  const table: readonly (readonly [string, string, Verification | null, boolean])[] = [
    ["set debug to false", "Nothing needs to be changed.", null, true],
    ["set debug to false", "Nothing needs to be changed.", proof, false],
    ["remove the TODO if there is one", "There are no TODOs.", null, false],
    ["remove the TODO if there is one", "The file has lines.", null, true],
    ["make sure that the version is 2", "The version is already 2.", null, false],
  ];
  for (const [request, answer, verification, doubted] of table) {
    const rules = new EndRules(verification);
    assert.equal(rules.doubts(answer), false, "a model that is not known to be weak");
    rules.facts = { request, isWeak: true };
    assert.equal(rules.doubts(answer), doubted, `${request}: ${answer}`);
  }
});

const edit = anyTool({
  name: "edit_file",
  description: "",
  input: z.object({}),
  facts: () => ({ ...NO_FACTS, writes: ["/repo/a.sh"] }),
  concurrent: false,
  where: "box",
  run: (): Promise<ToolResult> => Promise.resolve({ kind: "ok", text: "edited" }),
});
/** Ends with the given result. */
const bash = anyTool({
  name: "bash",
  description: "",
  input: z.object({ command: z.string(), code: z.number(), prints: z.string().default("fine") }),
  facts: ({ command }) => ({ ...NO_FACTS, commands: [command] }),
  concurrent: false,
  where: "box",
  run: ({ code: exitCode, prints }): Promise<ToolResult> =>
    Promise.resolve(
      exitCode === 0
        ? { kind: "ok", text: prints, exitCode }
        : { kind: "failed", cause: "program", text: "sh: 4: echo_upper: not found", exitCode },
    ),
});
const EDITS: Line = { calls: [["edit_file", {}]] };
const runs = (code: number, command = "sh a.sh"): Line => ({ calls: [["bash", { command, code }]] });
const printing = (prints: string): Line => ({ calls: [["bash", { command: "sh a.sh", code: 0, prints }]] });
const SAYS: Line = { text: "The greeting is in upper case now." };
/** Asked twice what the command prints when the task is done. */
const EXPECTS: readonly Line[] = [{ text: "`fine`" }, { text: "```\nfine\n```" }];

async function tried(
  lines: readonly Line[],
  isWeak = true,
  verification: Verification | null = null,
  limits: LimitValues = { turns: 40 },
) {
  const ends = new EndRules(verification);
  ends.facts = { request: "make the greeting upper case", isWeak };
  const agent = fakeAgent({
    lines,
    tools: [edit, bash],
    over: { ends, limits: new Limits(limits, () => 0) },
  });
  agent.intent.begin("change");
  const end = await runLoop(agent, NEVER);
  return { end, asked: agent.asked, told: (at: number) => agent.asked[at]?.messages.at(-1)?.text ?? "" };
}

test("a weak model must continue while the check after its last change fails, up to a limit", () => {
  const checked = { isRed: true, command: "make test" };
  const rules = new EndRules(checked as Verification);
  rules.facts = { request: "Fix a.ts", isWeak: true };
  const run = {
    intent: { intent: "change" },
    deeds: after([{ tool: "edit_file", changes: true }]),
    ended: [],
    mode: "workspace-write",
  } as const;
  assert.equal(rules.demands.next(run), "call");
  checked.isRed = false;
  assert.equal(rules.demands.next(run), undefined);
  const tried = (target: string, exitCode: number) => ({
    ...run,
    deeds: after(
      [{ tool: "edit_file", changes: true }],
      [{ tool: "bash", target, kind: "failed" }, exitCode],
    ),
  });
  assert.equal(rules.demands.next(tried("make test", 0)), undefined);
  assert.equal(rules.demands.next(tried("make", 2)), undefined);
  assert.equal(rules.demands.next(tried("make test", 2)), "call", "it ran the check itself");
  checked.isRed = true;
  assert.equal(rules.demands.next({ ...run, mode: "read-only" }), undefined);
  const more = Array.from({ length: 20 }, () => rules.demands.next(run));
  assert.equal(more.filter((each) => each === "call").length, 6, "it may have its reasons");
  rules.facts = { request: "Fix a.ts", isWeak: false };
  assert.equal(new EndRules(checked as Verification).demands.next(run), undefined);
});

test("a weak model must run what it changed if there is no check, and a failure does not end the run", async () => {
  const told = await tried([EDITS, SAYS, runs(0), SAYS, ...EXPECTS]);
  assert.equal(told.end.how, "answered");
  assert.match(told.told(2), /^\[harness\] You changed files and ran nothing since/);
  assert.deepEqual(told.asked[2]?.hold?.without, ["edit_file"]);
  const failed = await tried([EDITS, SAYS, runs(127), SAYS, SAYS]);
  assert.match(failed.told(4), /The last command that you ran failed/);
  assert.deepEqual(failed.end, {
    how: "nothing_done",
    reason: "the last command that the model ran failed (exit 127): `sh a.sh`",
  });
  const mended = await tried([EDITS, runs(127), SAYS, EDITS, runs(0), SAYS, ...EXPECTS]);
  assert.equal(mended.end.how, "answered");
  // What was tried before the last edit says nothing of it.
  const again = await tried([EDITS, runs(0), EDITS, SAYS, SAYS]);
  assert.match(again.told(4), /You changed files and ran nothing since/);
  assert.equal(again.end.how, "answered", "once is enough");
  for (const lines of [
    [EDITS, runs(0), SAYS, ...EXPECTS],
    [EDITS, runs(1, "grep -n x a.sh"), SAYS],
  ])
    assert.deepEqual([(await tried(lines)).end.how, lines.length >= 3], ["answered", true]);
  assert.equal((await tried([EDITS, SAYS], false)).asked.length, 2, "a large model is believed");
});

test("the output of a weak model's last command must match what the model expects when asked separately", async () => {
  const other: readonly Line[] = [{ text: "FINE" }, { text: "`FINE`" }];
  const stays = await tried([EDITS, runs(0), SAYS, ...other, EDITS, runs(0), SAYS]);
  const [question, again] = stays.asked.slice(3, 5);
  assert.deepEqual(
    [question?.messages.length, question?.tools, question?.maxTokens, again?.messages.length],
    [2, [], 200, 2],
  );
  assert.match(question?.messages[1]?.text ?? "", /^The task: make the greeting .*\$ sh a\.sh\n/s);
  assert.doesNotMatch(JSON.stringify(question), /fine|edited/, "nothing of what it did or saw");
  assert.match(
    stays.told(5),
    /Asked beforehand what `sh a\.sh` prints when the task is done, you said `FINE`; it printed, which is data, `fine`\./,
  );
  assert.equal(stays.asked[5]?.hold?.call, true);
  assert.deepEqual(stays.end, {
    how: "nothing_done",
    reason: "nothing checks it, and `sh a.sh` printed `fine` where the model itself expects `FINE`",
  });
  assert.equal(stays.asked.length, 8, "asked once for each command");
  const first = await tried([EDITS, printing("Now: FINE"), SAYS, ...other]);
  assert.equal(first.end.how, "answered", "more may be printed than was expected");
  for (const [prints, how] of [
    ["Fine. FINE\nfine", "nothing_done"],
    ["FINE!", "answered"],
  ] as const) {
    const { end } = await tried([EDITS, runs(0), SAYS, ...other, EDITS, printing(prints), SAYS]);
    assert.equal(end.how, how, "a model that was told the text may not just add it");
  }
  const untried = await tried([EDITS, runs(0), SAYS, ...other, EDITS, SAYS, EDITS, SAYS]);
  assert.match(untried.told(7), /You changed files and ran nothing since/);
  assert.equal(untried.end.how, "nothing_done", "a change that is not tried again counts as untried");
  for (const replies of [
    [{ text: "FINE" }, { text: "Fine" }],
    [{ text: "" }, { text: "" }],
    [{ text: "f.i.n e" }, { text: "fine!" }],
    [{ text: "FINE" }, { fails: "unreachable" as const }],
  ])
    assert.equal(
      (await tried([EDITS, runs(0), SAYS, ...replies])).end.how,
      "answered",
      JSON.stringify(replies),
    );
});

test(
  "an expectation that takes too long is done without before the time is up",
  { timeout: 60_000 },
  async () => {
    const never: Line = { before: () => new Promise(() => undefined) };
    const { end } = await tried([EDITS, runs(0), SAYS, never], true, null, { turns: 40, ms: 400 });
    assert.equal(end.how, "answered");
  },
);

test("a task without files is asked in two ways, and a truncated reply is ignored", async () => {
  const ends = [EDITS, runs(0), SAYS];
  const { asked } = await tried([...ends, ...EXPECTS]);
  const [first, second] = asked.slice(3).map(({ messages }) => messages.at(-1)?.text.replaceAll(/\s+/g, " "));
  assert.notEqual(first, second);
  const cut = { text: "FINE", stop: "length" } as const;
  assert.equal((await tried([...ends, cut, cut])).end.how, "answered");
});

test("no side question is asked once a limit is spent, except the limits of turns and calls", async () => {
  const other: readonly Line[] = [{ text: "FINE" }, { text: "FINE" }];
  const asked = async (limits: LimitValues) =>
    (await tried([EDITS, runs(0), SAYS, ...other], true, null, limits)).asked.length;
  assert.equal(await asked({ tokens: 330 }), 3);
  assert.equal(await asked({ tokens: 440 }), 4);
  assert.equal(await asked({ turns: 3, calls: 2 }), 5);
});

test("a weak model that answers a repair round without a call is told so once per round", () => {
  const rules = new EndRules(null);
  rules.repairs(3);
  assert.equal(rules.isIdleRepair(3), false, "not for any model");
  rules.facts = { request: "", isWeak: true };
  assert.equal(rules.isIdleRepair(3), false, "no repair is open");
  rules.repairs(3);
  assert.deepEqual([rules.isIdleRepair(3), rules.isIdleRepair(3)], [true, false]);
  rules.repairs(3);
  assert.equal(rules.isIdleRepair(4), false);
});

const idle = (name: string) =>
  anyTool({
    name,
    description: "",
    input: z.object({}),
    concurrent: false,
    where: "session",
    facts: () => NO_FACTS,
    run: (): Promise<ToolResult> => Promise.resolve({ kind: "ok", text: "noted" }),
  });

test("a plan, a skill or a background task is not work, so an answer after these alone is rejected", async () => {
  assert.equal(after([{ tool: "plan", target: "", idle: true }, undefined]).worked, false);
  assert.equal(new Deeds([call({ tool: "plan", idle: true })]).worked, false);
  const table = [
    ["plan", {}, "nothing_done"],
    ["skill", { name: "x" }, "nothing_done"],
    ["task", { prompt: "x", background: true }, "nothing_done"],
    ["task", { task: "t1" }, "nothing_done"],
    ["task", { prompt: "x" }, "answered"],
  ] as const;
  for (const [tool, args, how] of table) {
    const lines = [{ calls: [[tool, args]] }, { text: "done" }, { text: "done" }] as const;
    const agent = fakeAgent({ lines, tools: [idle(tool)], over: { ends: new EndRules(null) } });
    agent.intent.begin("change");
    agent.history.add({ role: "user", text: "mend it" });
    assert.equal((await runLoop(agent, NEVER)).how, how, JSON.stringify(args));
  }
});

const redTests = ({ lastTests }: Deeds): string | undefined =>
  lastTests?.exitCode === 0 ? undefined : lastTests?.command;

test("a failed test run is recognised by its command, however it is wrapped, and other commands are not", () => {
  for (const target of [
    "npm test",
    "cd app && yarn run test",
    "node --import ./x.mjs --test",
    "python3 -m pytest -q",
    "make -C lib check",
    "./gradlew :app:test",
    "cargo test --all | tail",
  ]) {
    const red = [{ tool: "bash", target, kind: "failed" }, 1] as const;
    assert.equal(redTests(after(red)), target);
    assert.equal(redTests(after(red, [{ tool: "bash", target: "pytest" }, 0])), undefined);
    assert.equal(redTests(after(red, [{ tool: "bash", target: "ls" }, 2])), target);
  }
  for (const target of ["ls tests", "cat test.js", "node main.js", "npm run tester", "make"])
    assert.equal(redTests(after([{ tool: "bash", target, kind: "failed" }, 1])), undefined, target);
});

test("a command of megabytes is scanned for tests in one pass", () => {
  for (const word of ["node x ", "make a ", "mvn a "]) {
    const target = word.repeat(400_000);
    assert.equal(redTests(after([{ tool: "bash", target, kind: "failed" }, 1])), undefined);
  }
});

const reasonAfterARun = async (request: string, only?: "run"): Promise<string> => {
  const ends = new EndRules(null);
  ends.facts = { request, isWeak: true, only };
  const deeds = after([{ tool: "bash", target: "npm test", kind: "failed" }, 1]);
  const verdict = await judged(ends, "I will look at it.", deeds, false);
  return verdict.kind === "ends" && verdict.end.how === "nothing_done" ? verdict.end.reason : verdict.kind;
};

test("when a requested run ends without an answer, the reason includes how the last command ended", async () => {
  assert.match(
    await reasonAfterARun("run the tests", "run"),
    /^there is no answer: .*, and the last command that the model ran failed \(exit 1\): `npm test`$/,
  );
  assert.match(await reasonAfterARun("mend the parser"), /^nothing was changed: (?!.*npm test)/);
});
