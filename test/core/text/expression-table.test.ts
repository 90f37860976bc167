import assert from "node:assert/strict";
import test from "node:test";
import { anyOf } from "../../../src/core/text/expression-table.ts";

test("a row is an expression, a table, or whole words", () => {
  const table = anyOf(["git sed_-n cats?", /^\d+$/, anyOf([/x/, /y/], { before: "<", after: ">" })]);
  for (const text of ["use git", "sed -n 1p", "cat", "two cats", "12", "a <y>"])
    assert.ok(table.test(text), text);
  for (const text of ["digit", "sed", "cattle", "12a", "y"]) assert.ok(!table.test(text), text);
  assert.equal(table.expression, table.expression, "compiled once");
});

test("what stands around the rows applies to each of them, and so do the flags", () => {
  const table = anyOf(["hello good_day", /yo+/], { before: "^", after: "(?!\\w)", flags: "i" });
  assert.deepEqual(
    ["Hello there", "good day", "YOOO!", "yoke", "oh hello"].map((text) => table.test(text)),
    [true, true, true, false, false],
  );
  assert.equal("Good day, all".replace(table.expression, ""), ", all");
});
