import assert from "node:assert/strict";
import test from "node:test";
import { questionsOn } from "../../src/cli/terminal-input.ts";
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

function asking() {
  const keys = fakeKeyboard();
  const terminal = fakeTerminal(80);
  const pauses: string[] = [];
  const ask = questionsOn({
    keyboard: keys.keyboard,
    output: terminal.stream,
    pause: () => {
      pauses.push("paused");
      return () => pauses.push("resumed");
    },
  });
  return { ...keys, terminal, pauses, ask };
}

const going = new AbortController().signal;
const shown = async (written: () => string): Promise<void> => {
  while (!written().includes("[y/N]")) await new Promise((resolve) => setImmediate(resolve));
};

test("the whole command and the reason are shown before a key counts", async () => {
  const { ask, type, terminal, pauses } = asking();
  const reply = ask(QUESTION, going);
  await shown(terminal.written);
  for (const part of ["make all", "rm -rf build", "make runs code of the project"])
    assert.ok(terminal.written().includes(part), part);
  type("y\r");
  assert.equal(await reply, "yes");
  assert.deepEqual(pauses, ["paused", "resumed"]);
});

test("what was typed or pasted before the question is no answer", async () => {
  const { ask, type, terminal } = asking();
  type("y\r");
  const reply = ask(QUESTION, going);
  type("yes\r");
  await shown(terminal.written);
  type("\u001B[200~y\r\u001B[201~");
  type("\r");
  assert.equal(await reply, "no");
});

test("a request that ends takes its question along", async () => {
  const { ask, terminal, pauses } = asking();
  const ending = new AbortController();
  const reply = ask(QUESTION, ending.signal);
  await shown(terminal.written);
  ending.abort();
  assert.equal(await reply, "no");
  assert.deepEqual(pauses, ["paused", "resumed"]);
});
