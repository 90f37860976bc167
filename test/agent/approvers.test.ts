import assert from "node:assert/strict";
import test from "node:test";
import { refusedBy, remembering, unattended } from "../../src/agent/approvers.ts";
import { type Mode, MODES } from "../../src/core/decision.ts";
import type { Question } from "../../src/core/ports.ts";
import { type Judge, judgeIn } from "../../src/agent/action-judge.ts";

const NEVER = new AbortController().signal;

const question = (over: Partial<Question> = {}, contained = false): Question => ({
  call: "c1",
  tool: "bash",
  args: { command: "curl x" },
  text: "curl x",
  decision: {
    decision: "ask",
    contained,
    rules: [{ id: "network", reason: "it reaches out", span: [0, 4] }],
  },
  mode: "workspace-write",
  writes: false,
  ...over,
});

const parking = unattended("park");

const answerOf = async (mode: Mode, contained: boolean, writes = false): Promise<unknown> => {
  const answer = await parking.ask(question({ mode, writes }, contained), NEVER);
  return answer === "waits" ? answer : [answer.runs, answer.by];
};

test("with park, contained calls run as usual and all others wait", async () => {
  assert.deepEqual(await answerOf("workspace-write", true), [true, "contained"]);
  assert.equal(await answerOf("workspace-write", false), "waits");
  assert.deepEqual(await answerOf("danger-full-access", false), [true, "mode"]);
  assert.equal(await answerOf("read-only", false), "waits");
  assert.deepEqual(await answerOf("read-only", true), [false, "nobody"]);
  assert.deepEqual(await answerOf("read-only", false, true), [false, "nobody"]);
});

test("an answer applies to the waiting call only, and only once", async () => {
  const approver = remembering({ always: [], once: { question: question(), runs: true } }, parking);
  assert.equal(await approver.ask(question({ call: "c2" }), NEVER), "waits");
  assert.deepEqual(await approver.ask(question(), NEVER), { runs: true, by: "person", reason: "" });
  assert.equal(await approver.ask(question(), NEVER), "waits");
});

const others: readonly (readonly [string, Partial<Question>])[] = [
  ["another text", { text: "curl y" }],
  ["another tool", { tool: "fetch" }],
  ["another folder", { folder: "/elsewhere" }],
  ["another mode", { mode: "read-only" }],
  ["another reason", { decision: { decision: "ask", contained: false, rules: [] } }],
];
for (const [what, over] of others)
  test(`a yes does not apply to ${what}`, async () => {
    const once = { question: question(), runs: true };
    const approver = remembering({ always: [question()], once }, parking);
    assert.equal(await approver.ask(question(over), NEVER), "waits");
  });

test("a yes for the session applies to every identical call", async () => {
  const approver = remembering({ always: [question()] }, parking);
  for (const call of ["c1", "c2", "c2"]) {
    const answer = await approver.ask(question({ call }), NEVER);
    assert.ok(answer !== "waits" && answer.runs && answer.by === "person");
  }
});

test("a no applies to its call even if the policy allows the call by then", () => {
  const refusing = remembering({ always: [], once: { question: question(), runs: false } }, parking);
  const other: Question = { ...question(), decision: { decision: "allow", contained: true, rules: [] } };
  assert.deepEqual(refusing.refuses?.(other), { runs: false, by: "person", reason: "" });
  assert.equal(refusing.refuses?.({ ...other, call: "c2" }), undefined);
  const allowing = remembering({ always: [], once: { question: question(), runs: true } }, parking);
  assert.equal(allowing.refuses?.(other), undefined);
});

test("a yes applies to the exact arguments, even where the text of the call does not contain them", async () => {
  const tool = { tool: "tracker__close", text: "tracker__close" };
  const asked = question({ ...tool, args: { id: 7, why: { a: 1, b: 2 } } });
  const answer = (args: Question["args"]) =>
    remembering({ always: [], once: { question: asked, runs: true } }, parking).ask(
      question({ ...tool, args }),
      NEVER,
    );
  assert.equal(await answer({ id: 8, why: { a: 1, b: 2 } }), "waits");
  assert.deepEqual(await answer({ id: 7, why: { a: 1, b: 2 } }), { runs: true, by: "person", reason: "" });
});

test("an edited command replaces the waiting call once and still requires confirmation", async () => {
  const once = { question: question(), runs: true, edited: "curl y" };
  const approver = remembering({ always: [], once }, parking);
  assert.equal(approver.refuses?.(question({ call: "c2" })), undefined);
  assert.equal(approver.refuses?.(question())?.edited, "curl y");
  assert.equal(approver.refuses?.(question()), undefined);
  const asked = question({ args: { command: "curl y" }, text: "curl y", replaces: "curl x" });
  assert.equal(await approver.ask(asked, NEVER), "waits");
});

for (const runs of [true, false])
  test(`when the edited command was the one that waited, a ${runs ? "yes" : "no"} applies to it and not to the model's command`, async () => {
    const waited = question({ args: { command: "curl y" }, text: "curl y", replaces: "curl x" });
    const approver = remembering({ always: [], once: { question: waited, runs } }, parking);
    assert.equal(approver.refuses?.(question())?.edited, "curl y");
    const answer = approver.refuses?.(waited) ?? (await approver.ask(waited, NEVER));
    assert.deepEqual(answer, { runs, by: "person", reason: "" });
  });

/** Of variables of every kind that says something to a program, and of plain ones. */
const VARIABLES: readonly (readonly [name: string, value: string])[] = [
  ["FOO", "1"],
  ["EMPTY", ""],
  ["QUOTED", "it's $(rm -rf /) `x` \n; true"],
  ["PATH", "/x:/usr/bin"],
  ["PATH", "/usr/bin:/bin"],
  ["LD_PRELOAD", "/tmp/x.so"],
  ["LD_LIBRARY_PATH", "/tmp"],
  ["IFS", "/"],
  ["HOME", "/etc"],
  ["HOME", "/tmp/home"],
  ["CDPATH", "/etc"],
  ["GLOBIGNORE", "*"],
  ["ENV", "/tmp/rc"],
  ["PS4", "$(touch x)"],
  ["PROMPT_COMMAND", "rm -rf /"],
  ["NODE_OPTIONS", "--require /tmp/x.js"],
  ["PYTHONPATH", "/tmp"],
  ["PYTHONSTARTUP", "/tmp/x.py"],
  ["GIT_DIR", "/etc"],
  ["GIT_SSH_COMMAND", "sh -c x"],
  ["EDITOR", "vim"],
  ["PAGER", "less"],
  ["http_proxy", "http://x.example"],
  ["TMPDIR", "/etc"],
  ["POSIXLY_CORRECT", "1"],
  ["LC_ALL", "C"],
  ["SECRET_TOKEN", "AKIAIOSFODNN7EXAMPLE"],
  ["DOCKER_HOST", "tcp://x:1"],
];

function counting(mode: Mode): { readonly judge: Judge; readonly texts: string[] } {
  const texts: string[] = [];
  const own = judgeIn({ mode, workspace: "/repo", home: "/home/user", links: (path) => path });
  return { texts, judge: { judge: (facts) => (texts.push(...facts.commands), own.judge(facts)) } };
}

for (const mode of MODES)
  test(`in ${mode}, variables judged together get the same refusals as each one alone`, async () => {
    const { judge } = counting(mode);
    const alone = async (name: string, value: string): Promise<boolean> =>
      (await refusedBy(() => Promise.resolve(judge), mode)(new Map([[name, value]]))).has(name);
    const bad = new Map<string, boolean>();
    for (const [name, value] of VARIABLES) bad.set(`${name}=${value}`, await alone(name, value));
    if (mode === "workspace-write")
      assert.deepEqual([bad.get("FOO=1"), bad.get("http_proxy=http://x.example")], [false, true]);
    for (const one of VARIABLES)
      for (const other of VARIABLES) {
        if (one[0] === other[0]) continue;
        const expected = [one, other].filter((pair) => bad.get(pair.join("="))).map(([name]) => name);
        const refused = await refusedBy(() => Promise.resolve(judge), mode)(new Map([one, other]));
        assert.deepEqual([...refused], expected, `${one.join("=")} ${other.join("=")}`);
      }
  });

test("any number of allowed variables is judged in one text, and judged only once", async () => {
  const { judge, texts } = counting("workspace-write");
  const refused = refusedBy(() => Promise.resolve(judge), "workspace-write");
  const many = new Map(Array.from({ length: 90 }, (_, at) => [`V${at}`, String(at)]));
  assert.deepEqual([[...(await refused(many))], texts.length], [[], 1]);
  assert.deepEqual([[...(await refused(many))], texts.length], [[], 1]);
  assert.deepEqual([[...(await refused(new Map([["V1", "other"]])))], texts.length], [[], 2]);
});

test("a refused variable is found among others, and is judged again only after it changes", async () => {
  const { judge, texts } = counting("workspace-write");
  const refused = refusedBy(() => Promise.resolve(judge), "workspace-write");
  const three = new Map([
    ["A", "1"],
    ["http_proxy", "http://x.example"],
    ["B", "2"],
  ]);
  assert.deepEqual([[...(await refused(three))], texts.length], [["http_proxy"], 4]);
  const proxy = new Map([["http_proxy", "http://x.example"]]);
  assert.deepEqual([[...(await refused(proxy))], texts.length], [["http_proxy"], 4]);
  assert.deepEqual(
    [[...(await refused(new Map([["http_proxy", "http://y.example"]])))], texts.length],
    [["http_proxy"], 5],
  );
});
