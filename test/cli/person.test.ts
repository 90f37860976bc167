import assert from "node:assert/strict";
import test from "node:test";
import { person } from "../../src/cli/chat/chat-screen.ts";
import type { PersonReply } from "../../src/app/run/prompter.ts";
import type { Question } from "../../src/core/ports.ts";

const question = (text: string, more: Partial<Question> = {}): Question => ({
  call: text,
  tool: "bash",
  args: {},
  text,
  decision: { decision: "ask", contained: true, rules: [] },
  mode: "workspace-write",
  writes: false,
  ...more,
});

const going = new AbortController().signal;

/** A person whose answers are given when they are let. */
function asked() {
  const open: { readonly text: string; readonly answer: (reply: PersonReply) => void }[] = [];
  const cancelled: string[] = [];
  const kept: [Question, string][] = [];
  const approver = person({
    ask: ({ text }) => new Promise((answer) => open.push({ text, answer })),
    cancel: () => cancelled.push("cancelled"),
    settled: () => kept.map(([each]) => each),
    keep: async (asked, term) => void kept.push([asked, term]),
  });
  return { approver, open, cancelled, kept };
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("yes runs the call once, no does not", async () => {
  const { approver, open } = asked();
  const first = approver.ask(question("make"), going);
  await soon();
  open[0]?.answer("yes");
  assert.deepEqual(await first, { runs: true, by: "person", reason: "" });
  const second = approver.ask(question("make"), going);
  await soon();
  open[1]?.answer("no");
  assert.deepEqual(await second, { runs: false, by: "person", reason: "" });
});

test("with a grant the call runs with what the question names, for the chosen term", async () => {
  const { approver, open } = asked();
  for (const [at, term] of (["call", "session", "always"] as const).entries()) {
    const answer = approver.ask(question("npm ci", { grants: ["npm"] }), going);
    await soon();
    open[at]?.answer(term);
    const grant = { domains: ["npm"], for: term };
    assert.deepEqual(await answer, { runs: true, by: "person", reason: "", grant });
  }
});

test("questions are asked one at a time, in order", async () => {
  const { approver, open } = asked();
  const answers = ["a", "b", "c"].map((text) => approver.ask(question(text), going));
  for (const [at, text] of ["a", "b", "c"].entries()) {
    await soon();
    assert.deepEqual(
      open.map((each) => each.text),
      ["a", "b", "c"].slice(0, at + 1),
    );
    open[at]?.answer(text === "b" ? "yes" : "no");
  }
  assert.deepEqual(
    (await Promise.all(answers)).map(({ runs }) => runs),
    [false, true, false],
  );
});

test("an interrupt is a no that ends the request, and waiting questions are not asked", async () => {
  const { open, cancelled } = asked();
  const ending = new AbortController();
  const approver = person({
    ask: ({ text }) => new Promise((answer) => open.push({ text, answer })),
    cancel: () => {
      cancelled.push("cancelled");
      ending.abort();
    },
    settled: () => [],
    keep: async () => undefined,
  });
  const answers = [approver.ask(question("a"), ending.signal), approver.ask(question("b"), ending.signal)];
  await soon();
  open[0]?.answer("interrupt");
  assert.deepEqual(
    (await Promise.all(answers)).map(({ runs }) => runs),
    [false, false],
  );
  assert.deepEqual([open.length, cancelled], [1, ["cancelled"]]);
});

test("in read-only mode writes are refused without a question, and other calls are asked about", async () => {
  const { approver, open } = asked();
  const write = await approver.ask(question("a.txt", { mode: "read-only", writes: true }), going);
  assert.deepEqual(write, { runs: false, by: "mode", reason: "the mode is read-only" });
  void approver.ask(question("make", { mode: "read-only" }), going);
  await soon();
  assert.deepEqual(
    open.map(({ text }) => text),
    ["make"],
  );
});

test("a no carries the person's words, and an edited command replaces the one asked about", async () => {
  const { approver, open } = asked();
  const first = approver.ask(question("make"), going);
  await soon();
  open[0]?.answer({ no: "use npm" });
  assert.deepEqual(await first, { runs: false, by: "person", reason: "", word: "use npm" });
  const second = approver.ask(question("make"), going);
  await soon();
  open[1]?.answer({ edited: "make -n" });
  assert.deepEqual(await second, { runs: false, by: "person", reason: "", edited: "make -n" });
});

test("an answer for the session is remembered for exactly the same call and nothing similar", async () => {
  const { approver, open, kept } = asked();
  const write = question("/w/a.txt", { tool: "write_file", shown: "+one" });
  const first = approver.ask(write, going);
  await soon();
  open[0]?.answer("session");
  assert.equal((await first).runs, true);
  assert.equal((await approver.ask(write, going)).runs, true);
  assert.deepEqual([open.length, kept], [1, [[write, "session"]]]);
  for (const other of [
    { ...write, shown: "+two" },
    { ...write, text: "/w/b.txt" },
    { ...write, folder: "/w/sub" },
  ]) {
    const answer = approver.ask(other, going);
    await soon();
    open.at(-1)?.answer("no");
    assert.equal((await answer).runs, false);
  }
  assert.equal(open.length, 4);
});
