import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../fixtures/property.ts";
import {
  columnsIn,
  expanded,
  folded,
  graphemesOf,
  inert,
  rowsOf,
} from "../../../src/render/tui/text-rows.ts";
import {
  type EditorState,
  replaceBeforeCursor,
  type KeyEffect,
  newEditor,
  press,
  resized,
  withHistory,
  withText,
  withTexts,
} from "../../../src/render/tui/line-editor.ts";
import { type Key, TerminalKeys } from "../../../src/render/tui/terminal-keys.ts";

const WIDTH = 20;

/** A word in angle brackets is a key, the rest is typed. */
function keys(written: string): readonly Key[] {
  return [...written.matchAll(/<([a-z][^>\n]*)>|[^<]+/g)].map(([text, name]) =>
    name === undefined ? { kind: "text", text } : { kind: "key", name },
  );
}

function after(written: string | readonly Key[], state = newEditor(WIDTH)): EditorState {
  const all = typeof written === "string" ? keys(written) : written;
  return all.reduce((before, key) => press(before, key).state, state);
}

/** The text with a bar where the cursor stands. */
const shown = ({ text, cursor }: EditorState): string => `${text.slice(0, cursor)}|${text.slice(cursor)}`;
const edit = (written: string, state?: EditorState): string => shown(after(written, state));
const paste = (text: string): Key => ({ kind: "paste", text });
const ENTER: Key = { kind: "key", name: "enter" };

const key = (name: string): Key => ({ kind: "key", name });

function did(state: EditorState, key: Key): KeyEffect {
  return press(state, key).did;
}

/** Controls and halves of characters are as likely as letters. */
const anyText = fc.string({
  unit: fc
    .oneof(fc.integer({ min: 0, max: 0xa0 }), fc.integer({ min: 0, max: 0x10ffff }))
    .map((code) => String.fromCodePoint(code)),
  maxLength: 3000,
});

test("the keys of Emacs and similar editors work as usual", () => {
  const rows: readonly (readonly [written: string, becomes: string])[] = [
    ["one two<ctrl+a>x", "x|one two"],
    ["one two<home><ctrl+e>x", "one twox|"],
    ["one two<alt+b><ctrl+k>", "one |"],
    ["one two<alt+b><ctrl+u>", "|two"],
    ["one two<ctrl+w><ctrl+y><ctrl+y>", "one twotwo|"],
    ["one two three<ctrl+w><ctrl+w><ctrl+y>", "one two three|"],
    ["one two<ctrl+a><alt+d><alt+d><ctrl+y>", "one two|"],
    ["a-b c.d<alt+backspace>", "a-b c.|"],
    ["a-b c.d<ctrl+w>", "a-b |"],
    ["one<ctrl+a><alt+f>x", "onex|"],
    ["one<left><left><delete>", "o|e"],
    ["one<left><backspace>", "o|e"],
    ["one<ctrl+a><ctrl+d>", "|ne"],
    ["one<alt+enter>two<shift+enter>three<ctrl+j>", "one\ntwo\nthree\n|"],
    ["one<ctrl+j>two<ctrl+a><ctrl+u>", "one|two"],
    ["one<ctrl+j>two<up><ctrl+k>", "one|two"],
    ["one\\<enter>two", "one\ntwo|"],
    ["one<ctrl+_>", "|"],
    ["one<ctrl+w>two<ctrl+_><ctrl+_>", "one|"],
    ["one<ctrl+c><ctrl+_>", "one|"],
    ["one<f5><ctrl+q>", "one|"],
  ];
  for (const [written, becomes] of rows) assert.equal(edit(written), becomes, written);
});

test("enter sends the text, including an escaped backslash at the end", () => {
  assert.deepEqual(did(after("do it"), ENTER), { kind: "submit", text: "do it" });
  assert.deepEqual(did(after("path\\\\"), ENTER), { kind: "submit", text: "path\\\\" });
  assert.deepEqual(did(after("one<ctrl+j>two<up>"), ENTER), { kind: "submit", text: "one\ntwo" });
  assert.deepEqual(did(after("  <ctrl+j>"), ENTER), { kind: "nothing" });
  assert.deepEqual(did(after(""), ENTER), { kind: "nothing" });
});

test("keys meant for the owner of the editor are reported", () => {
  assert.deepEqual(did(after(""), key("ctrl+d")), { kind: "leave" });
  assert.deepEqual(did(after("x"), key("ctrl+d")), { kind: "nothing" });
  assert.deepEqual(did(after(""), key("ctrl+c")), { kind: "interrupt", empty: true });
  assert.deepEqual(did(after("x"), key("ctrl+c")), { kind: "interrupt", empty: false });
  assert.deepEqual(did(after("x"), key("tab")), { kind: "complete" });
  assert.deepEqual(did(after("x"), key("escape")), { kind: "escape" });
  assert.deepEqual(did(after("x"), key("ctrl+z")), { kind: "suspend" });
});

test("a chosen completion replaces the text that was begun", () => {
  assert.equal(shown(replaceBeforeCursor(after("see @sr"), 4, "@src/main.ts ")), "see @src/main.ts |");
});

test("the arrow keys move over wrapped rows, and keep their column", () => {
  const state = after("0123456789<ctrl+j>x<ctrl+j>0123456789", newEditor(8));
  assert.deepEqual(
    rowsOf(state, 8).rows.map((row) => row.map(({ text }) => text).join("")),
    ["0123456", "789", "x", "0123456", "789"],
  );
  assert.equal(edit("<left><up>x", state), "0123456789\nx\n01x|23456789");
  assert.equal(edit("<up><left><up><up>x", state), "012345678x|9\nx\n0123456789");
  assert.equal(edit("<up><up><down>", resized(state, 40)), "0123456789\nx|\n0123456789");
});

test("up and down bring back sent messages and the current draft", () => {
  const state = newEditor(WIDTH, ["first", "second"]);
  assert.equal(edit("new<up>", state), "second|");
  assert.equal(edit("new<up><up><up>", state), "|first");
  assert.equal(edit("new<up><up><down><down>", state), "new|");
  assert.equal(edit("new<up>!<up><down>", state), "second!|");
  const sent = after("<up>!<enter>", state);
  assert.deepEqual([sent.text, sent.history], ["", ["first", "second", "second!"]]);
  assert.equal(edit("<up><up>", sent), "second|");
});

test("repeated messages are kept once, and messages that begin with a blank not at all", () => {
  assert.deepEqual(after("a<enter>a<enter> b<enter>c<enter>").history, ["a", "c"]);
});

test("Ctrl-R finds a sent message by a part of it, an older one each time, and Escape goes back", () => {
  const state = newEditor(WIDTH, ["fix the parser", "write tests", "Parse it"]);
  assert.equal(edit("draft<ctrl+r>pars", state), "|Parse it");
  assert.equal(edit("draft<ctrl+r>pars<ctrl+r>", state), "fix the |parser");
  assert.equal(edit("draft<ctrl+r>pars<ctrl+r><ctrl+r>", state), "fix the |parser");
  assert.equal(edit("draft<ctrl+r>pars<escape>", state), "draft|");
  assert.equal(edit("draft<ctrl+r>tests<enter>!", state), "write !|tests");
  assert.equal(edit("draft<ctrl+r>tests<ctrl+e>!", state), "write tests!|");
  assert.equal(edit("draft<ctrl+r>tests<enter><down><down>", state), "draft|");
  assert.equal(after("<ctrl+r>nowhere", state).search?.found, undefined);
  assert.equal(edit("<ctrl+r>testx<backspace>", state), "write |tests");
});

test("a long paste counts as one character until it is sent", () => {
  const long = Array.from({ length: 143 }, (_, line) => `line ${line}`).join("\n");
  const state = after(
    [{ kind: "text", text: "see " }, paste(long), { kind: "text", text: " there" }],
    newEditor(60),
  );
  assert.deepEqual(rowsOf(state, 60).rows, [
    [
      { text: "see ", kind: "text" },
      { text: "[pasted 143 lines]", kind: "paste" },
      { text: " there", kind: "text" },
    ],
  ]);
  assert.deepEqual(did(state, ENTER), { kind: "submit", text: `see ${long} there` });
  assert.equal(edit("<alt+b><backspace><backspace>", state), "see |there");
  const moved = after("<alt+b><ctrl+u><ctrl+e><ctrl+y>", state);
  assert.deepEqual(did(moved, ENTER), { kind: "submit", text: `theresee ${long} ` });
  assert.equal(after([ENTER, { kind: "key", name: "up" }], state).text.length < 40, true);
});

test("a paste never sends, and none of it acts", () => {
  const bytes = "\u001B[200~rm -rf x\r\u001B]52;c;eA==\u0007\u0003\u001B[2J\u0004\u001B[201~";
  const all = new TerminalKeys().push(bytes);
  const state = after(all);
  assert.deepEqual(
    all.map((key) => did(newEditor(WIDTH), key).kind),
    ["nothing"],
  );
  assert.equal(state.text, "rm -rf x\n␛]52;c;eA==␇␃␛[2J␄");
  const hidden = after([paste("a\u202Eb\u200B")]);
  assert.equal(hidden.text, "a\u202Eb\u200B");
  assert.equal(rowsOf(hidden, 60).rows[0]?.[0]?.text, "a<U+202E>b<U+200B>");
  assert.equal(after([paste("\u{100000}")]).text, "<U+100000>");
});

const PIECES = [
  "a",
  " ",
  "\n",
  "é",
  "e\u0301",
  "漢",
  "👨‍👩‍👧",
  "👍🏽",
  "🇩🇪",
  "🇩",
  "\u200D",
  "\u0301",
  "नी",
  "\u202E",
  "\t",
  ".",
];
const written = fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((parts) => parts.join(""));
const long = fc
  .tuple(written, fc.integer({ min: 9, max: 30 }))
  .map(([text, lines]) => `${text}\n`.repeat(lines));
const NAMES =
  "left right up down home end ctrl+home backspace delete ctrl+k ctrl+u ctrl+w ctrl+y alt+b alt+f alt+d ctrl+_ alt+enter ctrl+r ctrl+s enter escape ctrl+c";
const anyKey: fc.Arbitrary<Key> = fc.oneof(
  written.filter((text) => !/[\n\t]/.test(text)).map((text): Key => ({ kind: "text", text })),
  fc.oneof(written, long).map((text): Key => ({ kind: "paste", text })),
  fc.constantFrom(...NAMES.split(" ")).map((name): Key => ({ kind: "key", name })),
);

test("whatever is pressed, the cursor stands between two characters and no row is too wide", () => {
  fc.assert(
    fc.property(fc.array(anyKey, { maxLength: 30 }), fc.integer({ min: 3, max: 30 }), (pressed, width) => {
      let state = newEditor(width, ["漢字 🇩🇪🇩🇪", "e\u0301 one\ntwo"]);
      for (const key of pressed) {
        state = press(state, key).state;
        const places = [...graphemesOf(state.text).map(({ at }) => at), state.text.length];
        assert.ok(places.includes(state.cursor), JSON.stringify(shown(state)));
        const { rows, row, column } = rowsOf(state, width);
        for (const pieces of rows)
          assert.ok(columnsIn(pieces.map(({ text }) => text).join("")) < width, JSON.stringify(rows));
        assert.ok(row < rows.length && column < width);
      }
    }),
  );
});

test("nothing written is lost: undo restores it, and cut text can be pasted back", () => {
  fc.assert(
    fc.property(
      fc.array(anyKey, { maxLength: 12 }),
      fc.constantFrom("ctrl+k", "ctrl+u", "ctrl+w", "alt+d"),
      (pressed, cut) => {
        const before = { ...after(pressed), search: undefined, last: "other" as const };
        const cutOut = after(`<${cut}>`, before);
        assert.equal(
          after("<ctrl+y>", cutOut).text,
          cutOut.text === before.text ? after("<ctrl+y>", before).text : before.text,
        );
        assert.equal(
          after("<ctrl+_>", cutOut).text,
          cutOut.undo.length > before.undo.length ? before.text : after("<ctrl+_>", before).text,
        );
      },
    ),
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(written, long), { maxLength: 8 }), (texts) => {
      const state = after(texts.map(paste));
      assert.equal(expanded(state.text, state.pastes), texts.join(""));
      const back = after(
        texts.map(() => ({ kind: "key", name: "ctrl+_" }) as const),
        state,
      );
      assert.equal(back.text, "");
    }),
  );
});

test("a folded paste expands to the same text, with control characters spelled out", () => {
  fc.assert(
    fc.property(fc.oneof(anyText, written, long), (text) => {
      const { text: token, pastes } = folded(text, ["another"]);
      assert.equal(expanded(token, pastes), inert(text));
      assert.doesNotMatch(inert(text), /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u{100000}-\u{10FFFF}]/u);
      assert.equal(inert(inert(text)), inert(text));
    }),
  );
});

const rows = (name: string): string => Array.from({ length: 20 }, (_, at) => `${name} ${at}`).join("\n");
const sentBy = (state: EditorState): KeyEffect => did(state, ENTER);
const submit = (...texts: readonly string[]): KeyEffect => ({ kind: "submit", text: texts.join("\n") });

test("a folded paste stays whole when texts come back, and when the history changes", () => {
  const state = after([paste(rows("a"))]);
  assert.deepEqual(sentBy(withTexts(state, [rows("b")], "before")), submit(rows("b"), rows("a")));
  assert.deepEqual(sentBy(withTexts(state, ["c", "d"], "behind")), submit(rows("a"), "c", "d"));
  assert.deepEqual(sentBy(withHistory(state, ["earlier"])), submit(rows("a")));
  assert.deepEqual(sentBy(withTexts(after(""), ["c"], "before")), submit("c"));
});

test("replacing the text can be undone", () => {
  const state = withText(after("mine"), "from the queue");
  assert.equal(shown(state), "from the queue|");
  assert.equal(edit("<ctrl+_>", state), "mine|");
});

test("a text can be put aside, survives a sent message, and returns to an empty line", () => {
  const [one, two] = [after("first<ctrl+s>"), after("first<ctrl+s>second<ctrl+s>")];
  assert.deepEqual([shown(one), one.aside], ["|", ["first"]]);
  assert.deepEqual([shown(two), two.aside], ["|", ["first", "second"]]);
  const sent = after("a question<enter>", two);
  assert.deepEqual(sent.aside, ["first", "second"]);
  const back = after("<ctrl+s>", sent);
  assert.deepEqual([shown(back), back.aside], ["second|", ["first"]]);
  assert.deepEqual(after("<ctrl+s>", resized(sent, 9)).text, "second");
  assert.equal(edit("<ctrl+s>"), "|");
  const long = "a line\n".repeat(40);
  const folded = after([paste(long), key("ctrl+s"), key("ctrl+s")]);
  assert.equal(expanded(folded.text, folded.pastes), long);
});

test("a search goes back with Ctrl-R and forward with Ctrl-S", () => {
  const state = newEditor(WIDTH, ["fix the parser", "other", "Parse it"]);
  assert.equal(edit("<ctrl+r>pars<ctrl+r><ctrl+s>", state), "|Parse it");
  assert.equal(edit("<ctrl+r>pars<ctrl+s><ctrl+s>", state), "|Parse it");
  assert.equal(edit("<ctrl+r><ctrl+s>", state), "|");
});
