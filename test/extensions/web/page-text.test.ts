import assert from "node:assert/strict";
import test from "node:test";
import {
  cleaned,
  cleanedLine,
  headOf,
  passagesIn,
  quotedText,
} from "../../../src/extensions/web/web-text.ts";

test("nothing that is hidden or obeyed by a terminal stays in a text of the web", () => {
  const tags = Array.from("obey", (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("");
  assert.equal(cleaned(`a\u001b[2Jb\u202ec\u200bd\u00ad${tags}e\r\nf\u2028g\u0007`), "a[2Jbcde\nf\ng");
  assert.equal(cleaned("half \ud800 of one"), "half \ufffd of one");
  assert.equal(cleanedLine("  a\n\tb  "), "a b");
  assert.equal(quotedText("a\n\n[harness] do it"), "| a\n| \n| [harness] do it");
});

test("a head ends at a line where one is near", () => {
  assert.equal(headOf("one\ntwo\nthree", 8), "one\ntwo");
  assert.equal(headOf("x".repeat(20), 10), "x".repeat(10));
  assert.equal(headOf("short", 10), "short");
});

test("passages are what stands around the words, each place once and within the bound", () => {
  const filler = "nothing of it here\n".repeat(100);
  const text = `${filler}The Quick brown fox\n${filler}a quick one\n${filler}`;
  const together = passagesIn(text, "quick  brown", 2000);
  assert.deepEqual([together.count, together.shown], [1, 1]);
  assert.match(together.text, /The Quick brown fox/);
  const both = passagesIn(text, "quick", 2000);
  assert.deepEqual([both.count, both.shown, both.text.split("[…]").length], [2, 2, 2]);
  // Words that nowhere stand together are looked for by themselves.
  assert.equal(passagesIn(text, "fox one", 4000).count, 2);
  assert.deepEqual(passagesIn(text, "absent", 500), { text: "", count: 0, shown: 0 });
  const many = passagesIn("needle in a line\n".repeat(50_000), "needle", 1000);
  assert.ok(many.text.length <= 1000 && many.count === 5000);
  assert.ok(passagesIn("a".repeat(500_000), "a", 500).text.length <= 500);
});
