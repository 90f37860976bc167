import assert from "node:assert/strict";
import test from "node:test";
import { type Piece, type Reply, YesNo } from "../../src/cli/terminal-input.ts";

function replied(...pieces: readonly (Piece | string | undefined)[]): Reply | undefined {
  const answer = new YesNo();
  let reply: Reply | undefined;
  for (const piece of pieces)
    reply ??= answer.take(typeof piece === "string" ? { kind: "keys", text: piece } : piece).reply;
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

test("what is pasted answers nothing", () => {
  assert.equal(replied({ kind: "paste", text: "y\n" }), undefined);
  assert.equal(replied({ kind: "paste", text: "y" }, "\r"), "no");
});

test("Ctrl-C is an answer of its own", () => {
  assert.equal(replied("y", { kind: "interrupt" }), "interrupt");
});

test("keys can be taken back, and arrows are none", () => {
  assert.equal(replied("nx\u007F\u007Fy\r"), "yes");
  assert.equal(replied("\u001B[Ay\u001B[D\r"), "yes");
});
