import assert from "node:assert/strict";
import test from "node:test";
import { type PlannedStep, touches } from "../../src/vet/step-plan.ts";

const step = (what: PlannedStep["what"], folder = "", from: string | null = "package.json"): PlannedStep => ({
  words: ["x"],
  command: "x",
  what,
  from,
  folder,
  needs: [],
});

test("documents affect no step, test files only tests, code every step of its folder", () => {
  const touched = (...changed: readonly string[]): readonly boolean[] =>
    [
      step("install"),
      step("build"),
      step("test"),
      step("install", "packages/a", "packages/a/package.json"),
    ].map((each) => touches(each, changed));
  assert.deepEqual(touched("README.md", "docs/a.js", "LICENSE"), [false, false, false, false]);
  assert.deepEqual(touched("test/a.js", "src/b.test.ts"), [false, false, true, false]);
  assert.deepEqual(touched("lib/a.js"), [true, true, true, false]);
  assert.deepEqual(touched("packages/a/post.js"), [true, true, true, true]);
  assert.deepEqual(touched("requirements.txt"), [true, true, true, false]);
  assert.deepEqual(touched("package.json"), [true, true, true, false]);
  assert.deepEqual(touched(), [false, false, false, false]);
  assert.ok(touches(step("given"), []));
});
