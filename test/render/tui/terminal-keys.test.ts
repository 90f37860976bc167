import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../fixtures/property.ts";
import { type Key, TerminalKeys } from "../../../src/render/tui/terminal-keys.ts";

/** All that a person pressed, the last escape included. */
function keysIn(...chunks: readonly string[]): readonly Key[] {
  const keys = new TerminalKeys();
  return [...chunks.flatMap((chunk) => keys.push(chunk)), ...keys.flush()];
}

const names = (...chunks: readonly string[]): readonly string[] =>
  keysIn(...chunks).map((key) => (key.kind === "key" ? key.name : `${key.kind} ${key.text}`));

const ROWS: readonly (readonly [sent: string, name: string])[] = [
  ["a", "text a"],
  ["größer 👍🏽", "text größer 👍🏽"],
  ["\r", "enter"],
  ["\r\n", "enter"],
  ["\n", "ctrl+j"],
  ["\t", "tab"],
  ["\u007F", "backspace"],
  ["\u0001", "ctrl+a"],
  ["\u001A", "ctrl+z"],
  ["\u001F", "ctrl+_"],
  ["\u001B", "escape"],
  ["\u001B\r", "alt+enter"],
  ["\u001Bb", "alt+b"],
  ["\u001BB", "alt+b"],
  ["\u001B\u007F", "alt+backspace"],
  ["\u001B\u0001", "ctrl+alt+a"],
  ["\u001B[A", "up"],
  ["\u001BOA", "up"],
  ["\u001B[H", "home"],
  ["\u001B[1~", "home"],
  ["\u001B[4~", "end"],
  ["\u001B[3~", "delete"],
  ["\u001B[3;5~", "ctrl+delete"],
  ["\u001B[1;5D", "ctrl+left"],
  ["\u001B[1;3C", "alt+right"],
  ["\u001B[Z", "shift+tab"],
  // kitty
  ["\u001B[13;2u", "shift+enter"],
  ["\u001B[13;3u", "alt+enter"],
  ["\u001B[97;5u", "ctrl+a"],
  ["\u001B[97:65;6u", "ctrl+a"],
  ["\u001B[97;2u", "text A"],
  ["\u001B[27u", "escape"],
  ["\u001B[57420;1u", "down"],
  ["\u001B[1;1:1B", "down"],
  // xterm's modifyOtherKeys
  ["\u001B[27;2;13~", "shift+enter"],
  ["\u001B[27;5;119~", "ctrl+w"],
];

/** Controls and halves of characters are as likely as letters. */
const anyText = fc.string({
  unit: fc
    .oneof(fc.integer({ min: 0, max: 0xa0 }), fc.integer({ min: 0, max: 0x10ffff }))
    .map((code) => String.fromCodePoint(code)),
  maxLength: 300,
});

test("every encoding of a key gives that key, wherever its bytes are split", () => {
  for (const [sent, name] of ROWS) {
    assert.deepEqual(names(sent), [name], JSON.stringify(sent));
    if (sent.length < 3) continue;
    for (let at = 1; at < sent.length; at += 1) {
      const parted = names(sent.slice(0, at), sent.slice(at));
      if (sent.startsWith("\u001B")) assert.deepEqual(parted, [name], JSON.stringify([sent, at]));
    }
  }
});

test("a lone escape waits for more bytes, and is a key if none follow", () => {
  const keys = new TerminalKeys();
  assert.deepEqual(keys.push("\u001B"), []);
  assert.equal(keys.waits, true);
  assert.deepEqual(keys.flush(), [{ kind: "key", name: "escape" }]);
  assert.equal(keys.waits, false);
  assert.deepEqual(names("\u001B\u001B[A"), ["escape", "up"]);
});

test("replies, mouse events, focus events and released keys are not text", () => {
  const dropped = [
    "\u001B[?62;22c",
    "\u001B[I",
    "\u001B[O",
    "\u001B[<0;12;4M",
    "\u001B[M !!",
    "\u001B]11;rgb:0000/0000/0000\u0007",
    "\u001BP1$r0m\u001B\\",
    "\u001B[97;1:3u",
    "\u001B[200;3h",
  ];
  for (const sent of dropped)
    assert.deepEqual(names(`a${sent}b`), ["text a", "text b"], JSON.stringify(sent));
});

test("a paste is one piece, whatever it contains and wherever its bytes are split", () => {
  const sent = "x\u001B[200~a\rb\u001B[31m\u0003\r\nc\u001B[20\u001B[201~\r";
  const expected = ["text x", "paste a\nb\u001B[31m\u0003\nc\u001B[20", "enter"];
  for (let at = 0; at < sent.length; at += 1)
    assert.deepEqual(names(sent.slice(0, at), sent.slice(at)), expected, String(at));
});

test("no part of a paste is a key", () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 7 }), (text, size) => {
      const paste = text.replaceAll("\u001B[201~", "");
      const sent = `\u001B[200~${paste}\u001B[201~`;
      const chunks = sent.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
      assert.deepEqual(keysIn(...chunks), [{ kind: "paste", text: paste.replaceAll(/\r\n?/g, "\n") }]);
    }),
  );
});

test("typed text never holds a control character", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.integer({ min: 0, max: 127 }).map((code) => String.fromCodePoint(code)) }),
      (sent) => {
        for (const key of keysIn(sent))
          if (key.kind === "text") assert.doesNotMatch(key.text, /[\u0000-\u001F\u007F]/);
      },
    ),
  );
});
