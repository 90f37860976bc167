import assert from "node:assert/strict";
import test from "node:test";
import { answerIn, inTurn, personOn } from "../../src/cli/approval-question.ts";
import { fakeKeyboard } from "../fakes/keyboard.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const never = new AbortController().signal;
const asked = { question: "Which \u001B[2Jone?", choices: ["the first", "the second"] };
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

function asking() {
  const keys = fakeKeyboard();
  const terminal = fakeTerminal(60);
  const done: string[] = [];
  const ask = personOn({
    keyboard: keys.keyboard,
    output: terminal.stream,
    pause: () => {
      done.push("paused");
      return () => void done.push("resumed");
    },
    cancel: () => void done.push("cancelled"),
  });
  return { ...keys, ask, done };
}

test("a number selects a choice, other words are the answer, and blanks are no answer", () => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["1", "the first"],
    [" 2 ", "the second"],
    ["3", "3"],
    ["the third", "the third"],
    ["  ", undefined],
  ];
  for (const [text, answer] of rows) assert.equal(answerIn(text, asked.choices), answer);
});

test("a person answers in one line, and what was typed before is not an answer", async () => {
  const { ask, type, done } = asking();
  type("typed ahead\r");
  const answer = ask(asked, never);
  await settled();
  type("2\r");
  assert.deepEqual([await answer, done], ["the second", ["paused", "resumed"]]);
});

test("Ctrl-C ends the request; Ctrl-D gives no answer, and neither does a request that ends", async () => {
  const first = asking();
  const interrupted = first.ask(asked, never);
  await settled();
  first.type("\u0003");
  assert.deepEqual([await interrupted, first.done], [undefined, ["paused", "cancelled", "resumed"]]);
  const second = asking();
  const left = second.ask(asked, never);
  await settled();
  second.type("\u0004");
  assert.deepEqual([await left, second.done], [undefined, ["paused", "resumed"]]);
  const third = asking();
  const ending = new AbortController();
  const ended = third.ask(asked, ending.signal);
  await settled();
  ending.abort();
  assert.deepEqual([await ended, third.done], [undefined, ["paused", "resumed"]]);
});

test("questions are asked one after the other, also after one that failed", async () => {
  const turns = inTurn();
  const order: string[] = [];
  const gate = Promise.withResolvers<never>();
  const first = turns(() => gate.promise);
  const second = turns(() => Promise.resolve(order.push("second")));
  await settled();
  assert.deepEqual(order, []);
  gate.reject(new Error("gone"));
  await assert.rejects(first, /gone/);
  await second;
  assert.deepEqual(order, ["second"]);
});
