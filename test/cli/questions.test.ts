import assert from "node:assert/strict";
import test from "node:test";
import type { RulesShown } from "../../src/app/run/prompter.ts";
import { questionsOn } from "../../src/cli/approval-question.ts";
import type { Question } from "../../src/core/ports.ts";
import { fakeKeyboard } from "../fakes/keyboard.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const QUESTION: Question = {
  call: "c1",
  tool: "bash",
  args: {},
  text: "make all\nrm -rf build",
  decision: {
    decision: "ask",
    contained: true,
    rules: [{ id: "code.project", reason: "make runs code of the project", span: [0, 8] }],
  },
  mode: "workspace-write",
  writes: false,
};

function asking(rules?: RulesShown) {
  const keys = fakeKeyboard();
  const terminal = fakeTerminal(80);
  const pauses: string[] = [];
  const ask = questionsOn({
    keyboard: keys.keyboard,
    output: terminal.stream,
    edits: true,
    rulesFor: rules === undefined ? undefined : () => Promise.resolve(rules),
    pause: () => {
      pauses.push("paused");
      return () => pauses.push("resumed");
    },
  });
  return { ...keys, terminal, pauses, ask };
}

const going = new AbortController().signal;
const shown = async (written: () => string, what = "[y/N]", times = 1): Promise<void> => {
  while (written().split(what).length <= times) await new Promise((resolve) => setImmediate(resolve));
};

test("the whole command and the reason are shown before a key is accepted", async () => {
  const { ask, type, terminal, pauses } = asking();
  const reply = ask(QUESTION, going);
  await shown(terminal.written);
  for (const part of ["make all", "rm -rf build", "make runs code of the project"])
    assert.ok(terminal.written().includes(part), part);
  type("y\r");
  assert.equal(await reply, "yes");
  assert.deepEqual(pauses, ["paused", "resumed"]);
});

test("keys pressed before a stopped terminal has shown the question do not answer it", async () => {
  const { ask, type, terminal } = asking();
  const goOn = terminal.stop();
  const reply = ask(QUESTION, going);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  type("y\r");
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(terminal.written(), "");
  goOn();
  await shown(terminal.written);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  type("n\r");
  assert.equal(await reply, "no");
});

test("a question on a stopped terminal can be cancelled like any other", async () => {
  const { ask, terminal } = asking();
  const goOn = terminal.stop();
  const ending = new AbortController();
  const reply = ask(QUESTION, ending.signal);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  ending.abort();
  assert.equal(await reply, "no");
  goOn();
});

test("what was typed or pasted before the question does not answer it", async () => {
  const { ask, type, terminal } = asking();
  type("y\r");
  const reply = ask(QUESTION, going);
  type("yes\r");
  await shown(terminal.written);
  type("\u001B[200~y\r\u001B[201~");
  type("\r");
  assert.equal(await reply, "no");
});

test("a request that ends cancels its question", async () => {
  const { ask, terminal, pauses } = asking();
  const ending = new AbortController();
  const reply = ask(QUESTION, ending.signal);
  await shown(terminal.written);
  ending.abort();
  assert.equal(await reply, "no");
  assert.deepEqual(pauses, ["paused", "resumed"]);
});

test("a no passes on the person's words", async () => {
  const { ask, type, terminal } = asking();
  const reply = ask(QUESTION, going);
  await shown(terminal.written);
  type("t\r");
  await shown(terminal.written, "tell the model>");
  type("use the script in bin, please\r");
  assert.deepEqual(await reply, { no: "use the script in bin, please" });
});

test("without words it is a plain no", async () => {
  const { ask, type, terminal } = asking();
  const reply = ask(QUESTION, going);
  await shown(terminal.written);
  type("t\r");
  await shown(terminal.written, "tell the model>");
  type("\r");
  assert.equal(await reply, "no");
});

const LINE: Question = { ...QUESTION, text: "make all", args: { command: "make all" } };

test("a command can be edited in place", async () => {
  const { ask, type, terminal } = asking();
  const reply = ask(LINE, going);
  await shown(terminal.written);
  type("e\r");
  await shown(terminal.written, "edit>");
  type(" -n\r");
  assert.deepEqual(await reply, { edited: "make all -n" });
});

test("a discarded or unchanged edit asks again, and a command that does not fit on a line cannot be edited", async () => {
  const { ask, type, terminal } = asking();
  const reply = ask(LINE, going);
  await shown(terminal.written);
  type("e\r");
  await shown(terminal.written, "edit>");
  type("\u0003");
  await shown(terminal.written, "[y/N]", 2);
  type("e\r");
  await shown(terminal.written, "edit>", 2);
  type("\r");
  await shown(terminal.written, "[y/N]", 3);
  type("\r");
  assert.equal(await reply, "no");
  const other: readonly Partial<Question>[] = [
    { args: { command: "make\nall" } },
    { args: { command: "make \u202Eall" } },
    { args: {} },
    { args: { command: "make" }, fixed: true },
  ];
  for (const more of other) {
    const again = asking();
    const refused = again.ask({ ...QUESTION, ...more }, going);
    await shown(again.terminal.written);
    again.type("e\r");
    assert.equal(await refused, "no");
    assert.doesNotMatch(again.terminal.written(), /edits the/);
  }
});

test("always shows the rule and its file, and writes it only after a second yes", async () => {
  const rules: RulesShown = {
    kind: "rules",
    file: "/home/ann/policy.toml",
    text: '[[rule]]\nprefix = ["make", "all"]\ndecision = "allow"',
    rules: [
      { prefix: ["make", "all"], decision: "allow", reason: "approved as it stands", match: ["make all"] },
    ],
  };
  const { ask, type, terminal } = asking(rules);
  const reply = ask(LINE, going);
  await shown(terminal.written);
  type("a\ry\r");
  await shown(terminal.written, "write it, and run");
  assert.match(
    terminal.written(),
    /written to \/home\/ann\/policy\.toml:\n {2}│ \[\[rule\]\]\n {2}│ prefix = \["make", "all"\]\n {2}│ decision = "allow"\n/,
  );
  type("\r");
  await shown(terminal.written, "run it?", 2);
  type("a\r");
  await shown(terminal.written, "write it, and run", 2);
  type("y\r");
  assert.equal(await reply, "always");
});

test("when no rule can be written the reason is given, and the question stays open", async () => {
  const { ask, type, terminal } = asking({ kind: "none", reason: "it is bad for every shell" });
  const reply = ask(LINE, going);
  await shown(terminal.written);
  type("a\r");
  await shown(terminal.written, "[y/N]", 2);
  assert.match(terminal.written(), /No rule can be written for this: it is bad for every shell\./);
  type("s\r");
  assert.equal(await reply, "session");
});

const lines = (count: number): Question => ({
  ...QUESTION,
  text: Array.from({ length: count }, (_, at) => `echo ${at}.`).join("\n"),
});

test("a question longer than the screen is shown page by page before it can be answered", async () => {
  const { ask, type, terminal } = asking();
  const reply = ask(lines(50), going);
  await shown(terminal.written, "page 1 of 3");
  assert.doesNotMatch(terminal.written(), /echo 30\.|run it\?/);
  type("y\r");
  await shown(terminal.written, "page 2 of 3");
  assert.doesNotMatch(terminal.written(), /run it\?/);
  type("\r");
  await shown(terminal.written);
  for (let at = 0; at < 50; at += 1) assert.ok(terminal.written().includes(`echo ${at}.`), String(at));
  type("y\r");
  assert.equal(await reply, "yes");
});

test("a page can be refused and interrupted", async () => {
  for (const [keys, wanted] of [
    ["n\r", "no"],
    ["\u0003", "interrupt"],
  ] as const) {
    const { ask, type, terminal } = asking();
    const reply = ask(lines(50), going);
    await shown(terminal.written, "page 1 of 3");
    type(keys);
    assert.equal(await reply, wanted);
  }
});

test("what is too long to review cannot be approved", async () => {
  for (const text of [lines(2000).text, "x".repeat(200_000)]) {
    const { ask, type, terminal } = asking();
    const reply = ask({ ...QUESTION, text }, going);
    await shown(terminal.written, "refuse it?");
    assert.match(terminal.written(), /too many to review/);
    type("y\r");
    assert.equal(await reply, "no");
  }
});

test("no control characters of a hostile question reach the terminal", async () => {
  const hostile = "\u001B]52;c;aGk=\u0007\u001B[2J\r\u202Erm\u0085\u009B1A";
  const { ask, type, terminal } = asking();
  const reply = ask(
    {
      ...QUESTION,
      tool: hostile,
      text: hostile,
      folder: hostile,
      shown: `+${hostile}`,
      effects: [hostile],
      grants: [hostile],
      decision: { ...QUESTION.decision, rules: [{ id: hostile, reason: hostile, span: [2, 4] }] },
    },
    going,
  );
  await shown(terminal.written);
  assert.doesNotMatch(terminal.written(), /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
  type("\r");
  assert.equal(await reply, "no");
});
