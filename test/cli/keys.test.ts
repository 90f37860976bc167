import assert from "node:assert/strict";
import test from "node:test";
import { KeyPieces, type InputPiece } from "../../src/cli/terminal-input.ts";

const keys = (text: string): InputPiece => ({ kind: "keys", text });
const paste = (text: string): InputPiece => ({ kind: "paste", text });

function pieces(...chunks: readonly string[]): readonly InputPiece[] {
  const parter = new KeyPieces();
  return chunks.flatMap((chunk) => parter.push(chunk));
}

test("each line is a separate piece, whatever its line end", () => {
  assert.deepEqual(pieces("ab\rc\nd\r\ne"), [keys("ab\r"), keys("c\r"), keys("d\r"), keys("e")]);
});

test("Ctrl-C and Ctrl-Z are distinguished from other keys", () => {
  assert.deepEqual(pieces("a\u0003b\u001A"), [
    keys("a"),
    { kind: "interrupt" },
    keys("b"),
    { kind: "suspend" },
  ]);
});

test("a pasted block is one piece with all its lines", () => {
  assert.deepEqual(pieces("a\u001B[200~one\r\ntwo\rthree\u001B[201~b"), [
    keys("a"),
    paste("one\ntwo\nthree"),
    keys("b"),
  ]);
});

test("Ctrl-C inside a pasted block is text", () => {
  assert.deepEqual(pieces("\u001B[200~a\u0003b\u001B[201~"), [paste("a\u0003b")]);
});

test("a pasted block may arrive in any chunks", () => {
  const whole = "x\u001B[200~one\rtwo\u001B[201~y";
  const expected = pieces(whole);
  for (let at = 3; at < whole.length; at += 1) {
    const parted = pieces(whole.slice(0, at), whole.slice(at));
    assert.deepEqual(
      parted.filter(({ kind }) => kind === "paste"),
      expected.filter(({ kind }) => kind === "paste"),
      String(at),
    );
  }
});

test("the escape key alone is delivered at once", () => {
  assert.deepEqual(pieces("\u001B"), [keys("\u001B")]);
  assert.deepEqual(pieces("\u001B[A"), [keys("\u001B[A")]);
});
