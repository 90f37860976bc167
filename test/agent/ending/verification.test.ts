import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { runRequest } from "../../../src/agent/agent-run.ts";
import { unattended } from "../../../src/agent/approvers.ts";
import { EndRules } from "../../../src/agent/ending/end-rules.ts";
import { Limits } from "../../../src/agent/limits.ts";
import { cannotRun, type Check, checkNote, Verification } from "../../../src/agent/ending/verification.ts";
import { NO_CHECKPOINTS } from "../../../src/core/session.ts";
import type { OnAsk } from "../../../src/core/decision.ts";
import {
  anyTool,
  type Facts,
  type Hooks,
  NO_FACTS,
  NO_HOOKS,
  type ToolResult,
} from "../../../src/core/tool.ts";
import { fakeAgent, type FakeAgent, type Line } from "../../fakes/agent.ts";
import { type FakeBox, fakeBox } from "../../fakes/box.ts";

/** A box whose commands end with these exit codes one after the other, and then with the last one. */
function boxEnding(
  codes: readonly number[],
  says = "1 test failed",
  files: Readonly<Record<string, string>> = {},
) {
  let nth = 0;
  return fakeBox({
    files,
    commands: {
      bash: async ({ out }) => {
        const code = codes[Math.min(nth, codes.length - 1)] ?? 0;
        nth += 1;
        await out(code === 0 ? "all pass\n" : `${says}\n`);
        return code;
      },
    },
  });
}

const act = anyTool({
  name: "act",
  description: "",
  input: z.object({}),
  facts: () => NO_FACTS,
  concurrent: false,
  where: "session",
  run: () => Promise.resolve({ kind: "ok", text: "acted" }),
});
const ACTS: Line = { calls: [["act", {}]] };
const SAYS: Line = { text: "It is done." };

interface Given {
  readonly codes: readonly number[];
  readonly lines?: readonly Line[];
  readonly check?: Check;
  readonly onAsk?: OnAsk;
  readonly turns?: number;
  readonly says?: string;
  readonly after?: Hooks["after"];
}

const MINE: Check = { command: "run the checks", by: "user" };

function agentWith({
  codes,
  lines = [ACTS, SAYS],
  check = MINE,
  onAsk = "contained",
  turns = 40,
  says,
  after = NO_HOOKS.after,
}: Given): FakeAgent {
  return fakeAgent({
    lines,
    tools: [act],
    box: boxEnding(codes, says),
    over: {
      ends: new EndRules(new Verification(check, 1000)),
      approver: unattended(onAsk),
      limits: new Limits({ turns }, () => 0),
      hooks: { ...NO_HOOKS, after },
    },
  });
}

const run = (agent: FakeAgent) =>
  runRequest(
    agent,
    {
      prompt: "mend it",
      intent: "change",
      strict: false,
      session: "s",
      changes: () => Promise.resolve({ changes: null, handoff: [] }),
      record: () => undefined,
      workspace: "/repo",
    },
    new AbortController().signal,
  );

const checks = (agent: FakeAgent) =>
  agent.events.flatMap((event) =>
    event.type === "check.ended" ? [[event.when, event.round, event.exit_code]] : [],
  );

test("a check that fails before and passes after verifies the run, and the model is shown the failure", async () => {
  const agent = agentWith({ codes: [1, 0] });
  const { exit_code, reason, verified } = await run(agent);
  assert.deepEqual(
    [exit_code, reason, verified],
    [
      0,
      "The model gave its answer; verified by `run the checks`.",
      { command: "run the checks", exit_code: 0, rounds: 0 },
    ],
  );
  assert.deepEqual(checks(agent), [
    ["before", 0, 1],
    ["after", 0, 0],
  ]);
  assert.match(
    agent.asked[0]?.messages.at(-1)?.text ?? "",
    /^mend it\n\n\[harness\] `run the checks` will be run.*\n1 test failed/s,
  );
});

test("text that a hook removes from a check's output is sent nowhere, and the hook sees the check as a bash command", async () => {
  const seen: unknown[] = [];
  const agent = agentWith({
    codes: [1, 1, 0],
    lines: [ACTS, SAYS, SAYS],
    says: "the key is AKIA123",
    after: ({ id, name, args }, { kind, text, exitCode }) => {
      if (name === "bash") seen.push([id, args, kind, exitCode]);
      return Promise.resolve(text.replace("AKIA123", "[masked]"));
    },
  });
  const { verified } = await run(agent);
  const args = { command: "run the checks" };
  assert.deepEqual(seen, [
    ["check-1", args, "failed", 1],
    ["check-2", args, "failed", 1],
    ["check-3", args, "ok", 0],
  ]);
  assert.equal(verified?.exit_code, 0);
  assert.ok(!JSON.stringify([agent.events, agent.records, agent.asked]).includes("AKIA"));
  assert.match(agent.asked.at(-1)?.messages.at(-1)?.text ?? "", /fails \(exit 1\).*the key is \[masked\]/s);
});

test("a hook's rewrite of the output does not affect whether the check counts as runnable", async () => {
  const project: Check = { command: "run the checks", by: "project" };
  const here = { codes: [1], check: project, turns: 2 };
  const hidden = await run(
    agentWith({ ...here, says: "sh: 1: pytest: not found", after: () => Promise.resolve("all is well") }),
  );
  assert.deepEqual([hidden.exit_code, hidden.verified], [0, null]);
  const made = await run(
    agentWith({ ...here, says: "1 failed", after: () => Promise.resolve("sh: 1: pytest: not found") }),
  );
  assert.equal(made.verified?.exit_code, 1);
});

test("a failing check is repaired at most twice, then the run fails with the last lines of the output", async () => {
  const mended = agentWith({ codes: [1, 1, 1, 0], lines: [ACTS, SAYS, ACTS, SAYS, ACTS, SAYS] });
  assert.deepEqual((await run(mended)).verified, { command: "run the checks", exit_code: 0, rounds: 2 });
  assert.match(
    mended.asked[2]?.messages.at(-1)?.text ?? "",
    /You said that you are done, but `run the checks` fails \(exit 1\)/,
  );
  const red = agentWith({ codes: [0, 3], lines: [ACTS, SAYS, SAYS, SAYS, SAYS] });
  const end = await run(red);
  assert.deepEqual([end.exit_code, end.status, end.answer], [1, "failed", null]);
  assert.deepEqual(end.verified, { command: "run the checks", exit_code: 3, rounds: 2 });
  assert.equal(end.reason, "`run the checks` still fails after 2 rounds of repair (exit 3): 1 test failed");
  assert.equal(red.asked.length, 4);
  const silent = await run(agentWith({ codes: [0, 3], says: "", lines: [ACTS, SAYS, SAYS, SAYS, SAYS] }));
  assert.equal(silent.reason, "`run the checks` still fails after 2 rounds of repair (exit 3)");
});

test("a failing check ends the run when no turn is left", async () => {
  const end = await run(agentWith({ codes: [1], turns: 2 }));
  assert.deepEqual(
    [end.exit_code, end.reason],
    [1, "`run the checks` fails (exit 1, as it did before): 1 test failed"],
  );
});

test("the project's own check counts only if it can be run", async () => {
  const check: Check = { command: "npm test", by: "project" };
  const lacking = agentWith({ codes: [1], says: "sh: 1: jest: not found", check });
  const end = await run(lacking);
  assert.deepEqual([end.exit_code, end.verified], [0, null]);
  assert.deepEqual(checks(lacking), [["before", 0, 1]]);
  assert.match(
    lacking.events.map((event) => (event.type === "notice" ? event.text : "")).join("\n"),
    /No check: `npm test` cannot be used in the box \(jest is missing\)/,
  );
  // What the user named has to succeed, whatever it says.
  const named = agentWith({ codes: [1], says: "sh: 1: jest: not found", lines: [ACTS, SAYS] });
  assert.equal((await run(named)).exit_code, 1);
});

test("when a program of the project's own check is missing, the notice says what would install it", async () => {
  const check: Check = { command: "npm test", by: "project" };
  const missing = { codes: [1], says: "sh: 1: jest: not found", check };
  const asked = { request: "", strict: false, remedy: () => Promise.resolve("`x` installs it.") };
  const agent = agentWith(missing);
  await new Verification(check, 1000, asked).before(agent, new AbortController().signal);
  const told = agent.events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
  assert.deepEqual(told, [
    "No check: `npm test` cannot be used in the box (jest is missing). `x` installs it. To name another check: --check CMD.",
  ]);
});

test("a check named in a record is judged by the policy, because anybody may have written it", async () => {
  const denied = agentWith({ codes: [0], check: { command: "rm -rf /", by: "record" } });
  assert.deepEqual([(await run(denied)).verified, checks(denied)], [null, []]);
  const mine = agentWith({ codes: [0], check: { command: "rm -rf /", by: "user" } });
  assert.equal((await run(mine)).verified?.exit_code, 0);
  const contained = agentWith({ codes: [0], check: { command: "make verify", by: "record" } });
  assert.equal((await run(contained)).verified?.exit_code, 0);
  const lacking = { codes: [1], says: "sh: 1: jest: not found", lines: [ACTS, SAYS] };
  const red = agentWith({ ...lacking, check: { command: "npm test", by: "record" } });
  assert.equal((await run(red)).exit_code, 1, "as it was for the user's");
});

test("the project's own check needs the same confirmation as any command", async () => {
  const check: Check = { command: "make verify", by: "project" };
  const refused = agentWith({ codes: [0], check, onAsk: "refuse" });
  assert.deepEqual([(await run(refused)).verified, checks(refused)], [null, []]);
  const denied = agentWith({ codes: [0], check: { command: "rm -rf /", by: "project" } });
  assert.deepEqual([(await run(denied)).verified, checks(denied)], [null, []]);
  const { judge, ...agent } = agentWith({ codes: [0], check });
  const byRule = async () => {
    const policy = await judge();
    return {
      judge: (facts: Facts, tool?: string) =>
        tool === "bash"
          ? { ...policy.judge(facts, tool), decision: "deny" as const }
          : policy.judge(facts, tool),
    };
  };
  assert.equal((await run({ ...agent, judge: byRule })).verified, null, "a rule that denies bash denies it");
  const contained = agentWith({ codes: [0], check });
  assert.equal((await run(contained)).verified?.exit_code, 0);
});

const RED = { exit_code: 1, text: "1 test failed", ms: 5 } as const;
const GREEN = { exit_code: 0, text: "", ms: 5, when: "between" } as const;

const behind = async (...before: readonly Parameters<Verification["resume"]>[0][]) => {
  const box = boxEnding([1]);
  const agent = { ...agentWith({ codes: [1] }), box: () => Promise.resolve(box) };
  const verification = new Verification(MINE, 60_000);
  for (const each of before) verification.resume(each);
  const said = await verification.between(agent, new AbortController().signal);
  return { said: said?.split("\n")[0], times: box.asked.map(({ timeoutMs }) => timeoutMs) };
};

test("after a change, a parked run's check runs again only if it failed before and was quick", async () => {
  const still = "`run the checks` still fails (exit 1). Its output, which is data:";
  const [before, after] = [
    { ...RED, when: "before" },
    { ...RED, when: "after" },
  ] as const;
  assert.deepEqual(await behind(before), { said: still, times: [10_000] });
  assert.deepEqual(await behind(before, GREEN), { said: still, times: [10_000] }, "it was red before");
  assert.deepEqual(await behind(before, after), { said: still, times: [10_000] });
  const none = { said: undefined, times: [] };
  assert.deepEqual(await behind({ ...GREEN, when: "before" }), none);
  assert.deepEqual(await behind({ ...before, ms: 90_000 }), none, "it is slow");
  assert.deepEqual(await behind(before, { ...GREEN, ms: 10_000 }), none, "it has become so");
});

test("a check that does not end after a change is cut off soon and reported as not finished", async () => {
  const agent = agentWith({ codes: [1] });
  const box = {
    ...boxEnding([1]),
    exec: async (...asked: Parameters<FakeBox["exec"]>) => ({
      ...(await boxEnding([124]).exec(...asked)),
      timed_out: true,
      duration_ms: asked[0].timeoutMs ?? 0,
    }),
  };
  const verification = new Verification(MINE, 60_000);
  verification.resume({ ...RED, when: "before" });
  const between = () =>
    verification.between({ ...agent, box: () => Promise.resolve(box) }, new AbortController().signal);
  assert.equal(
    await between(),
    "`run the checks` took a moment before; now it was not over after 10 s, and was ended.",
  );
  assert.equal(verification.isRed, true);
  assert.equal(await between(), undefined);
  assert.equal(verification.isRed, false, "later changes were not checked");
});

test("the report of a check leaves out what Node's test runner says about itself", () => {
  const lines: readonly (readonly [line: string, isTold: boolean])[] = [
    ["AssertionError: 2 != 3", true],
    ["    at TestContext.<anonymous> (file:///w/range.test.js:5:25)", true],
    ["    at Test.run (node:internal/test_runner/test:1402:25)", false],
    ["    at async node:internal/process/task_queues:95:5", false],
    ["    at async Test.run (node:internal/test_runner/test:974:7) {", false],
    ["    generatedMessage: true,", false],
    ["    code: 'ERR_ASSERTION',", false],
    ["    actual: [ 1, 2 ],", false],
    ["    diff: 'simple'", false],
    ["  }", false],
    ["  at node: the kitchen", true],
    ["read at (node:fs) what you like", true],
    ["ℹ tests 3", false],
    ["ℹ duration_ms 193.486402", false],
    ["ℹ tests of mine", true],
    ["    generatedMessage: false", true],
    ["[exit 1]", true],
  ];
  const run = { exit_code: 1, text: lines.map(([line]) => line).join("\n"), ending: "exit 1" };
  const told = checkNote("npm test", run).split("which is data:\n")[1];
  assert.deepEqual(
    told?.split("\n").filter((line) => line !== ""),
    lines.flatMap(([line, isTold]) => (isTold ? [line] : [])),
  );
});

test("a very long test output is processed in one pass", () => {
  const text = `    generatedMessage: true,\n${"    a\n".repeat(100_000)}`;
  // What is looked for from each line on again would take minutes.
  assert.ok(checkNote("npm test", { exit_code: 1, text: text.repeat(2), ending: "exit 1" }).length < 3000);
});

const why = (text: string, exit_code = 1): string | undefined =>
  cannotRun({ exit_code, text, ending: `exit ${exit_code}` });

const proofAfter = async (check: Check, given: Omit<Given, "check">) => {
  const agent = agentWith({ ...given, check });
  return (await agent.ends?.verification?.after(agent, new AbortController().signal, false))?.kind;
};

test("a resumed run without a look before its first turn also ignores a check that cannot run", async () => {
  const own: Check = { command: "make verify", by: "project" };
  assert.equal(
    await proofAfter(own, {
      codes: [2],
      says: "make: gcc: No such file or directory\nsh: 1: gcc: not found",
    }),
    "green",
  );
  assert.equal(await proofAfter(own, { codes: [2], onAsk: "refuse" }), "green");
  assert.equal(await proofAfter(own, { codes: [2] }), "repair");
  assert.equal(await proofAfter(MINE, { codes: [127] }), "repair");
});

const OWN: Check = { command: "make test", by: "project" };

/** Where a command ends with 124 it was ended, at the end of its time. */
function boxCutting(codes: readonly number[]): FakeBox {
  const box = boxEnding(codes);
  const exec: FakeBox["exec"] = async (request, signal) => {
    const ended = await box.exec(request, signal);
    const isCut = ended.exit_code === 124;
    return isCut ? { ...ended, timed_out: true, duration_ms: request.timeoutMs ?? 0 } : ended;
  };
  return { ...box, exec };
}

/** A run of a check that had no end before the first turn. */
async function unended(codes: readonly number[], isWeak: boolean, check = OWN) {
  const box = boxCutting(codes);
  const agent = {
    ...agentWith({ codes, check, lines: [ACTS, SAYS, ACTS, SAYS, ACTS, SAYS] }),
    box: () => Promise.resolve(box),
  };
  assert.ok(agent.ends);
  agent.ends.facts = { request: "mend it", isWeak };
  const { exit_code, reason, verified } = await run(agent);
  const notices = agent.events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
  return { exit_code, reason, exit: verified?.exit_code ?? null, checks: checks(agent), notices };
}

test("a project's check that never ended before counts if it ends afterwards", async () => {
  const mended = await unended([124, 0], false);
  assert.deepEqual([mended.exit_code, mended.exit], [0, 0]);
  assert.match(mended.reason, /verified by `make test`/);
  const wrong = await unended([124, 1, 0], false);
  assert.deepEqual(
    [wrong.exit_code, wrong.checks],
    [
      0,
      [
        ["before", 0, 124],
        ["after", 0, 1],
        ["after", 1, 0],
      ],
    ],
  );
});

test("a project's check that ends neither before nor after is ignored, and proves nothing for a small model", async () => {
  const large = await unended([124], false);
  assert.deepEqual([large.exit_code, large.exit], [0, null]);
  assert.deepEqual(
    large.notices.filter((text) => text.startsWith("No check")),
    [
      "No check: `make test` cannot be used in the box (timed out after 1.0 s). To name another check: --check CMD.",
    ],
  );
  const small = await unended([124], true);
  assert.deepEqual([small.exit_code, small.exit], [1, null]);
  assert.match(
    small.reason,
    /`make test` did not finish \(timed out after 1.0 s\), so nothing shows that the task is done/,
  );
  const users = await unended([124], false, MINE);
  assert.equal(users.exit_code, 1, "the user's own has to succeed");
});

test("a check without an end gets a quarter of the run beforehand, then a short time after three changes", async () => {
  const box = boxCutting([124]);
  const limits = new Limits({ turns: 9, ms: 100_000 }, () => 0);
  const agent = { ...agentWith({ codes: [124] }), box: () => Promise.resolve(box), limits };
  const verification = new Verification(OWN, 60_000);
  const { signal } = new AbortController();
  await verification.before(agent, signal);
  const said: (string | undefined)[] = [];
  for (let change = 0; change < 4; change += 1) said.push(await verification.between(agent, signal));
  const still = "`make test` is not over after 10 s, as it was not before, and was ended.";
  assert.deepEqual(said, [still, still, still, undefined]);
  assert.deepEqual(
    box.asked.map(({ timeoutMs }) => timeoutMs),
    [25_000, 10_000, 10_000, 10_000],
  );
  assert.equal(verification.isRed, false);
  const users = new Verification(MINE, 60_000);
  await users.before(agent, signal);
  assert.equal(box.asked.at(-1)?.timeoutMs, 60_000);
});

test("a resumed run remembers that its check did not end before", async () => {
  const box = boxCutting([124]);
  const agent = { ...agentWith({ codes: [124], check: OWN }), box: () => Promise.resolve(box) };
  const verification = new Verification(OWN, 60_000);
  verification.resume({ exit_code: 124, text: "", when: "before", ms: 60_000 });
  const { signal } = new AbortController();
  assert.match(
    (await verification.between(agent, signal)) ?? "",
    /not over after 10 s, as it was not before/,
  );
  assert.equal((await verification.after(agent, signal, false)).kind, "unknown");
});

test("a cancelled check proves nothing, and a resumed run continues from its recorded result", async () => {
  const agent = agentWith({ codes: [1] });
  const verification = agent.ends?.verification;
  assert.ok(verification);
  await verification.after(agent, AbortSignal.abort(), false);
  assert.equal(verification.verified, null);
  const own: Check = { command: "make test", by: "project" };
  const says = "sh: 1: gcc: not found";
  for (const [before, kind] of [
    [{ exit_code: 1, text: "1 test failed" }, "repair"],
    [{ exit_code: 2, text: says }, "green"],
  ] as const) {
    const parked = agentWith({ codes: [2], check: own, says });
    parked.ends?.verification?.resume({ ...before, when: "before", ms: 5 });
    assert.equal(
      (await parked.ends?.verification?.after(parked, new AbortController().signal, false))?.kind,
      kind,
    );
  }
});

test("messages about missing programs and modules are recognised", () => {
  for (const [text, named] of [
    ["sh: 1: jest: not found", "jest"],
    ["> test\n> jest\n\nsh: 1: jest: not found\n[exit 127, 0.2 s]", "jest"],
    ["bash: line 1: cargo: command not found", "cargo"],
    ["/usr/bin/python3: No module named pytest", "pytest"],
    ["Error: Cannot find module 'express'\nRequire stack:\n- /w/a.js", "express"],
    ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chai' imported from /w/a.js", "chai"],
    ["main.go:4:2: no required module provides package github.com/a/b; to add it:", "github.com/a/b"],
    ["error: no matching package named `serde` found", "serde"],
    ['npm error Missing script: "test"', "test"],
  ] as const)
    assert.equal(why(text), `${named} is missing`, text);
  for (const text of [
    "AssertionError: 4 != 5",
    "Error: Cannot find module './sum.js'\nRequire stack:",
    "ModuleNotFoundError: No module named 'calc'",
    "404: page not found",
    "Error: user 7: not found",
    "  Error: key: not found",
    "expected 'sh: 1: jest: not found'",
    "AssertionError: Error: Cannot find module 'express'",
  ])
    assert.equal(why(text), undefined, text);
  assert.equal(why("", 127), "exit 127");
  assert.equal(why("timed out", 124), undefined, "it may be what is to be mended");
  assert.equal(why("jest: not found", 0), undefined);
});

interface Bends {
  readonly what: Readonly<Record<string, string>>;
  readonly strict?: boolean;
  readonly request?: string;
  readonly puts?: Readonly<Record<string, string>>;
}

const TESTS = "def test_a():\n    assert f(1) == 2\n\ndef test_b():\n    assert f(2) == 3\n";
const BEFORE: Readonly<Record<string, string>> = { "test_f.py": TESTS, "f.py": "def f(x): ..." };

/** A check that fails, and succeeds once these files are written; then perhaps others. */
async function bending({ what, strict = false, request = "The test fails, fix it", puts }: Bends) {
  const box = boxEnding([1, 0], undefined, BEFORE);
  const writing = (name: string, texts: Readonly<Record<string, string>>) =>
    anyTool({
      name,
      description: "",
      input: z.object({}),
      facts: () => ({ ...NO_FACTS, writes: ["/repo/x"] }),
      concurrent: false,
      where: "box",
      run: async () => {
        for (const [path, text] of Object.entries(texts)) await box.write(path, Buffer.from(text));
        return { kind: "ok", text: "written" } as const;
      },
    });
  const again: readonly Line[] = puts === undefined ? [SAYS] : [{ calls: [["mend", {}]] }, SAYS];
  const agent = fakeAgent({
    lines: [{ calls: [["bend", {}]] }, SAYS, ...again],
    tools: [writing("bend", what), writing("mend", puts ?? {})],
    box,
    over: {
      ends: new EndRules(new Verification(MINE, 1000, { request, strict })),
      checkpoints: { ...NO_CHECKPOINTS, before: (path) => Promise.resolve(BEFORE[path]) },
    },
  });
  const { exit_code, reason, verified } = await run(agent);
  return { exit_code, reason, verified, asked: agent.asked };
}

const LESS = "def test_a():\n    assert f(1) == 2\n";
const SAID = "`run the checks` succeeds, but is not the check that it was: test_f.py";

test("tampering with a check is challenged once, then the run fails; together with other work it only proves nothing", async () => {
  const only = await bending({ what: { "test_f.py": LESS } });
  assert.deepEqual(
    [only.exit_code, only.reason, only.verified, only.asked.length],
    [1, `${SAID} lost 1 of its 2 tests`, null, 3],
  );
  assert.match(only.asked[2]?.messages.at(-1)?.text ?? "", /Put it back as it was, and mend what it tests/);
  const back = await bending({
    what: { "test_f.py": LESS },
    puts: { "test_f.py": TESTS, "f.py": "def f(x): 1" },
  });
  assert.deepEqual(
    [back.exit_code, back.verified],
    [0, { command: "run the checks", exit_code: 0, rounds: 1 }],
  );
  const beside = await bending({ what: { "test_f.py": LESS, "f.py": "def f(x): 1" } });
  assert.deepEqual(
    [beside.exit_code, beside.reason, beside.verified, beside.asked.length],
    [0, `The model gave its answer; ${SAID} lost 1 of its 2 tests.`, null, 2],
  );
  const strict = await bending({ what: { "test_f.py": LESS, "f.py": "def f(x): 1" }, strict: true });
  assert.deepEqual([strict.exit_code, strict.verified], [1, null]);
  const other = await bending({ what: { "test_f.py": TESTS.replace("== 3", "== 4") } });
  assert.deepEqual(
    [other.exit_code, other.reason, other.verified],
    [0, `The model gave its answer; ${SAID} was changed, and nothing else.`, null],
  );
  const asked = await bending({ what: { "test_f.py": LESS }, request: "remove test_b from test_f.py" });
  assert.deepEqual([asked.exit_code, asked.verified?.exit_code], [0, 0]);
});

const edit = anyTool({
  name: "edit_file",
  description: "",
  input: z.object({ path: z.string(), old: z.string(), new: z.string() }),
  facts: ({ path }) => ({ ...NO_FACTS, writes: [path] }),
  concurrent: false,
  where: "box",
  run: ({ path }): Promise<ToolResult> => Promise.resolve({ kind: "ok", text: "edited", path }),
});
const puts = (old: string, now: string): Line => ({ calls: [["edit_file", { path: "a", old, new: now }]] });

const endOf = async (lines: readonly Line[], { isCandidate = true, isWeak = true } = {}) => {
  const ends = new EndRules(new Verification(MINE, 1000));
  ends.facts = { request: "mend it", isWeak };
  ends.candidate = isCandidate ? 1 : undefined;
  const agent = fakeAgent({
    lines,
    tools: [edit],
    box: boxEnding([1]),
    over: { ends, limits: new Limits({ turns: 9 }, () => 0) },
  });
  // Too long to be asked for whole: that has a bound of its own.
  agent.next.files(["a"], [{ path: "a", text: `1\tone\n2\t${"x".repeat(5000)}\n[2 lines]` }]);
  const { reason, turns, verified } = await run(agent);
  assert.equal(turns, agent.asked.length, "a turn is a request");
  return { asked: agent.asked.length, reason, verified };
};

test("a candidate is given up after three replies in a row that restore already failing files, and another run is not", async () => {
  const circle = [puts("one", "two"), puts("two", "three"), puts("three", "one")];
  const given = await endOf([...circle, ...circle, ...circle]);
  assert.equal(given.asked, 6);
  assert.deepEqual(given.verified, { command: "run the checks", exit_code: 1, rounds: 0 });
  assert.equal(
    given.reason,
    "`run the checks` still fails, and 3 replies in a row left the files in a state on which it had already failed.",
  );
  const words = Array.from({ length: 9 }, () => SAYS);
  assert.equal((await endOf([puts("one", "two"), ...words])).asked, 4);
  const news = Array.from({ length: 8 }, (_, at) => puts(at === 0 ? "one" : `${at}`, `${at + 1}`));
  assert.equal((await endOf([...news, SAYS])).asked, 9, "new content each time is not a circle");
  for (const over of [{ isCandidate: false }, { isWeak: false }])
    assert.doesNotMatch((await endOf([...circle, ...circle, ...circle], over)).reason, /replies in a row/);
});
