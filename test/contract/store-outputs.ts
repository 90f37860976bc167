import assert from "node:assert/strict";
import type { Outputs } from "../../src/core/session.ts";
import { fc } from "../fixtures/property.ts";
import { ABOUT } from "./store-words.ts";
import type { Add } from "./store-suite.ts";

/** Reads an output page by page, as a reader does. */
function readThrough(outputs: Outputs, id: string, limit: number): readonly string[] {
  const pages: string[] = [];
  for (let offset = 0; ;) {
    const page = outputs.page(id, offset, limit);
    assert.ok(page !== undefined && page.offset === offset);
    pages.push(page.text);
    if (page.end === page.total) return pages;
    assert.ok(page.end > offset, "a page brings its reader on");
    offset = page.end;
  }
}

export function outputCases(add: Add): void {
  add("outputs are numbered in each session", ({ store }) => {
    const [one, two] = [store.create(ABOUT), store.create(ABOUT)];
    assert.deepEqual(
      [one.outputs.keep("a"), one.outputs.keep("b"), one.outputs.keep("a")],
      ["o1", "o2", "o3"],
    );
    assert.equal(two.outputs.keep("c"), "o1");
    const text = (id: string): string | undefined => store.open(one.id).outputs.page(id, 0, 9)?.text;
    assert.deepEqual(["o1", "o2", "o3"].map(text), ["a", "b", "a"]);
    for (const id of ["o0", "o4", "o", "", "1", "o01", "o1 ", "O1", "../o1", "o1e0", `o${"9".repeat(40)}`])
      assert.equal(text(id), undefined, id);
  });

  add("a page starts and ends where it says", ({ store }) => {
    const { outputs } = store.create(ABOUT);
    outputs.keep("0123456789");
    assert.deepEqual(outputs.page("o1", 2, 3), { text: "234", offset: 2, end: 5, total: 10 });
    assert.deepEqual(outputs.page("o1", 8, 100), { text: "89", offset: 8, end: 10, total: 10 });
    assert.deepEqual(outputs.page("o1", 50, 3), { text: "", offset: 10, end: 10, total: 10 });
    assert.deepEqual(outputs.page("o1", -5, 2), { text: "01", offset: 0, end: 2, total: 10 });
    assert.deepEqual(outputs.page("o1", 3, 0), { text: "", offset: 3, end: 3, total: 10 });
    assert.equal(outputs.keep(""), "o2");
    assert.deepEqual(outputs.page("o2", 0, 5), { text: "", offset: 0, end: 0, total: 0 });
  });

  add("a character is never split", ({ store }) => {
    const { outputs } = store.create(ABOUT);
    outputs.keep("a\u{1F600}b");
    assert.deepEqual(outputs.page("o1", 0, 2), { text: "a", offset: 0, end: 1, total: 4 });
    assert.deepEqual(outputs.page("o1", 1, 1), { text: "\u{1F600}", offset: 1, end: 3, total: 4 });
    assert.deepEqual(outputs.page("o1", 2, 1), { text: "\u{1F600}", offset: 1, end: 3, total: 4 });
    const { text } = outputs.page("o1", 2, 2) ?? { text: "" };
    assert.deepEqual([text, text.isWellFormed()], ["\u{1F600}b", true]);
  });

  add("all pages together are the text, whatever their length", ({ store }) => {
    const { outputs } = store.create(ABOUT);
    const unit = fc.constantFrom("a", "\n", "ß", "漢", "\u{1F600}", "e\u0301", "\u0000", "\uFEFF");
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 40 }), fc.integer({ min: 1, max: 12 }), (text, limit) => {
        const pages = readThrough(outputs, outputs.keep(text), limit);
        assert.equal(pages.join(""), text);
        for (const page of pages) assert.ok(page.isWellFormed() && page.length <= Math.max(2, limit));
      }),
      { numRuns: 60 },
    );
  });
}
