import assert from "node:assert/strict";
import { test } from "node:test";
import { Models } from "../../../src/policy/programs/read-arguments.ts";
import { PROGRAMS } from "../../../src/policy/programs/program-table.ts";

test("every table of every program can be read", () => {
  assert.doesNotThrow(() => new Models(PROGRAMS).compileAll());
});
