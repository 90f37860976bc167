import assert from "node:assert/strict";
import test from "node:test";
import { choicesOf, TypedChoice } from "../../src/cli/approval-question.ts";
import type { InputPiece } from "../../src/cli/terminal-input.ts";

function replied(...pieces: readonly (InputPiece | string | undefined)[]): unknown {
  const answer = new TypedChoice();
  let reply: unknown;
  for (const piece of pieces)
    reply ??= answer.take(typeof piece === "string" ? { kind: "keys", text: piece } : piece).choice;
  return reply;
}

test("y and yes in any case mean yes, once Enter is pressed", () => {
  for (const yes of ["y\r", "Y\r", "yes\r", "YES\r", " y \r"]) assert.equal(replied(yes), "yes", yes);
  assert.equal(replied("y"), undefined);
  assert.equal(replied("y", "e", "s", "\r"), "yes");
});

test("everything else means no", () => {
  for (const no of ["\r", "n\r", "yy\r", "ye\r", "yes please\r", "j\r", "\u0004"])
    assert.equal(replied(no), "no", JSON.stringify(no));
  assert.equal(replied(undefined), "no");
});

const chosen = (text: string, offers: Parameters<typeof choicesOf>[0]): unknown =>
  new TypedChoice(choicesOf(offers)).take({ kind: "keys", text }).choice;

test("each letter selects its offered choice, and means no where it is not offered", () => {
  const all = { grants: true, edits: true, whole: true };
  for (const [key, choice] of [
    ["y", "yes"],
    ["g", "call"],
    ["s", "session"],
    ["A", "always"],
    ["t", "tell"],
    ["e", "edit"],
    ["gs", "no"],
    ["constructor", "no"],
    ["", "no"],
  ] as const) {
    assert.equal(chosen(`${key}\r`, all), choice, key);
    const plain = choice === "call" || choice === "edit" ? "no" : choice;
    assert.equal(chosen(`${key}\r`, { grants: false, edits: false, whole: true }), plain, key);
  }
});

test("nothing approves what was not shown completely", () => {
  const cut = { grants: true, edits: true, whole: false };
  for (const key of ["y", "yes", "g", "s", "a", "e"]) assert.equal(chosen(`${key}\r`, cut), "no", key);
  assert.equal(chosen("t\r", cut), "tell");
});

test("pasted text is not an answer", () => {
  assert.equal(replied({ kind: "paste", text: "y\n" }), undefined);
  assert.equal(replied({ kind: "paste", text: "y" }, "\r"), "no");
});

test("Ctrl-C is a separate answer", () => {
  assert.equal(replied("y", { kind: "interrupt" }), "interrupt");
});

test("keys can be deleted, and arrow keys are ignored", () => {
  assert.equal(replied("nx\u007F\u007Fy\r"), "yes");
  assert.equal(replied("\u001B[Ay\u001B[D\r"), "yes");
});
