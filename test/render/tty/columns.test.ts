import assert from "node:assert/strict";
import test from "node:test";
import {
  alignedRows,
  cellsOf,
  fitToWidth,
  hangingIndent,
  widthOf,
  wrapped,
  wrappedRow,
} from "../../../src/render/tty/columns.ts";
import { columnsIn } from "../../../src/render/tui/text-rows.ts";

for (const [text, columns] of [
  ["\u{1F1E9}\u{1F1EA}", 2],
  ["\u{1F1E9}\u{1F1EA}\u{1F1EB}\u{1F1F7}", 4],
  ["\u{1F44D}\u{1F3FD}", 2],
  ["\u{1F44D}\u{1F44D}", 4],
  ["a\u{1F3FD}", 3],
] as const)
  test(`${text} takes ${columns} columns in a line and in the chat`, () => {
    assert.equal(widthOf(cellsOf(text)), columns);
    assert.equal(columnsIn(text), columns);
  });

test("a flag or an accented letter is cut off as a whole", () => {
  const [germany, france] = ["\u{1F1E9}\u{1F1EA}", "\u{1F1EB}\u{1F1F7}"];
  assert.equal(fitToWidth(`ab${germany}cd${france}`, 10), `ab${germany}cd${france}`);
  assert.equal(fitToWidth(`${germany}${germany}${france}${france}`, 7), `${germany}…${france}${france}`);
  assert.equal(fitToWidth(`${germany}${germany}${france}${france}`, 6), `${germany}…${france}`);
  assert.equal(fitToWidth(`abcdef${france}`, 4), `ab…`);
  assert.equal(fitToWidth("abcdee\u0301", 3), "a…e\u0301");
  assert.equal(fitToWidth("abcdee\u0301", 2), "a…");
});

test("prose continues indented in a terminal, and stays one line elsewhere", () => {
  const text = "one two three four five six seven eight";
  assert.equal(hangingIndent(text, 4, { columns: 25 }), "one two three four\n    five six seven eight");
  for (const columns of [0, 10, 24]) assert.equal(hangingIndent(text, 4, { columns }), text);
  assert.equal(hangingIndent(text, 4, { columns: undefined }), text);
});

test("a huge text is wrapped without losing any of it", () => {
  const words = Array.from({ length: 20_000 }, (_, at) => `w${at % 97}`);
  const lines = wrapped(words.join("  "), 80);
  assert.ok(lines.every((line) => line.length <= 80));
  assert.deepEqual(
    lines.flatMap((line) => line.split(" ")),
    words,
  );
});

test("a row that is too long continues after its label, and columns that fit are kept", () => {
  assert.deepEqual(wrappedRow("mode     one two three four five six", 24), [
    "mode     one two three",
    "         four five six",
  ]);
  assert.deepEqual(wrappedRow("    a reason that is longer", 20), ["    a reason that is", "    longer"]);
  assert.deepEqual(wrappedRow("a label that takes all of it  and more", 20), [
    "a label that takes",
    "all of it and more",
  ]);
  const hostile = wrappedRow(`${"x ".repeat(50_000)}  \u001B[2J`, 40);
  assert.ok(hostile.every((line) => line.length <= 40 && !line.includes("\u001B")));
});

test("columns are as wide as their widest cell, without trailing blanks; a cell beyond the limit does not widen them", () => {
  assert.deepEqual(
    alignedRows([
      ["a", "bb"],
      ["ccc", ""],
    ]),
    ["a    bb", "ccc"],
  );
  assert.deepEqual(
    alignedRows(
      [
        ["a", "b"],
        ["cccc", "d"],
      ],
      3,
    ),
    ["a  b", "cccc  d"],
  );
  assert.deepEqual(
    alignedRows([
      ["日本", "x"],
      ["abcd", "y"],
      ["e\u0301", "z"],
    ]),
    ["日本  x", "abcd  y", "e\u0301     z"],
  );
  assert.deepEqual(alignedRows([]), []);
});
