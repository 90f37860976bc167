import assert from "node:assert/strict";
import test from "node:test";
import type { InputPiece, InputReader } from "../../src/cli/terminal-input.ts";
import { fakeKeyboard } from "../fakes/keyboard.ts";

const keys = (text: string): InputPiece => ({ kind: "keys", text });

test("keys typed while nobody reads wait for the next readers, one line each", () => {
  const { keyboard, type } = fakeKeyboard();
  type("one\rtwo\rthr");
  const lines: (InputPiece | undefined)[] = [];
  const once: InputReader = (piece) => {
    lines.push(piece);
    keyboard.done(once);
  };
  keyboard.read(once);
  assert.deepEqual(lines, [keys("one\r")]);
  keyboard.read(once);
  assert.deepEqual(lines, [keys("one\r"), keys("two\r")]);
});

test("Ctrl-C while nobody reads is reported at once, and drops what was typed ahead", () => {
  const { keyboard, type, told } = fakeKeyboard();
  type("one\r\u0003two\r");
  assert.equal(told.at(-1), "interrupt");
  const read: (InputPiece | undefined)[] = [];
  keyboard.read((piece) => void read.push(piece));
  assert.deepEqual(read, [keys("two\r")]);
});

test("Ctrl-C while nothing is running is delivered to the next reader", () => {
  const { keyboard, type, told } = fakeKeyboard({ busy: false });
  type("\u0003");
  assert.equal(told.includes("interrupt"), false);
  const read: (InputPiece | undefined)[] = [];
  keyboard.read((piece) => void read.push(piece));
  assert.deepEqual(read, [{ kind: "interrupt" }]);
});

test("a closed terminal is reported to readers, current or later", () => {
  const { keyboard, hangUp } = fakeKeyboard();
  const read: (InputPiece | undefined)[] = [];
  const reader: InputReader = (piece) => {
    read.push(piece);
    keyboard.done(reader);
  };
  keyboard.read(reader);
  hangUp();
  keyboard.read(reader);
  assert.deepEqual(read, [undefined, undefined]);
});

test("the terminal is restored when suspended and at the end", () => {
  const { keyboard, type, told } = fakeKeyboard();
  assert.deepEqual(told.splice(0), ["raw", String.raw`"\u001b[?2004h"`]);
  type("\u001A");
  assert.deepEqual(told.splice(0), [String.raw`"\u001b[?2004l"`, "cooked", "suspend"]);
  keyboard.resume();
  keyboard[Symbol.dispose]();
  // A shell may have changed the terminal, and Node sets no mode that it believes to be set.
  assert.deepEqual(told, [
    "cooked",
    "raw",
    String.raw`"\u001b[?2004h"`,
    String.raw`"\u001b[?2004l"`,
    "cooked",
    "paused",
  ]);
});
