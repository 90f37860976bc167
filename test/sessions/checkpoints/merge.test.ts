import assert from "node:assert/strict";
import test from "node:test";
import { mergeLines } from "../../../src/sessions/checkpoints/checkpoint-diff.ts";
import { fc } from "../../fixtures/property.ts";

const text = fc
  .array(fc.constantFrom("a\n", "b\n", "c\n", "\n"), { maxLength: 12 })
  .map((lines) => lines.join(""));

test("if only one side changed, the merge is that side", () => {
  fc.assert(
    fc.property(text, text, (base, other) => {
      assert.equal(mergeLines(base, other, base), other);
      assert.equal(mergeLines(base, base, other), other);
      assert.equal(mergeLines(base, other, other), other);
    }),
  );
});

test("changes to different lines are both kept, in either order", () => {
  const lines = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 6, maxLength: 20 });
  fc.assert(
    fc.property(lines, fc.nat(), fc.nat(), (given, one, two) => {
      // Every line is its own, so that there is one way only to see a change.
      const base = given.map((line, at) => `${at} ${line}\n`);
      const [i, j] = [one % base.length, two % base.length];
      if (i === j) return;
      const ours = base.with(i, "mine\n").join("");
      const theirs = base.with(j, "").join("");
      const both = base.with(i, "mine\n").with(j, "").join("");
      assert.equal(mergeLines(base.join(""), ours, theirs), both);
      assert.equal(mergeLines(base.join(""), theirs, ours), both);
    }),
  );
});

test("the same line changed in two ways cannot be merged, changed in the same way it can", () => {
  assert.equal(mergeLines("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n"), undefined);
  assert.equal(mergeLines("a\nb\nc\n", "a\nx\nc\n", "a\nx\nc\n"), "a\nx\nc\n");
  assert.equal(mergeLines("a\n", "a\nx\n", "a\ny\n"), undefined);
  assert.equal(mergeLines("a\nb", "a\nb\n", "x\nb"), "x\nb\n");
});
