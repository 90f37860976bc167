import assert from "node:assert/strict";
import test from "node:test";
import { dealt, described } from "./suites.ts";

const PLAIN = 'import test from "node:test";\ntest("one", () => {});\n';

test("a file shares its process, whatever its suite, unless it changes what a process has once", () => {
  for (const file of ["test/core/a.test.ts", "test/e2e/a.test.ts", "test/docker/a.engine.test.ts"]) {
    assert.equal(described(file, PLAIN).ownProcess, false, file);
    for (const line of [
      'process.env["HOME"] = "/x";',
      "process.chdir(folder);",
      "after(() => box.end());",
      'import { attacks } from "../fixtures/escape-cases.ts";',
      "// own process: it measures its own memory",
    ])
      assert.equal(described(file, `${PLAIN}${line}\n`).ownProcess, true, `${file}: ${line}`);
  }
});

test("a file is alone when it says why", () => {
  const file = "test/escape/a.engine.test.ts";
  assert.deepEqual(
    ["", "// alone:\n", "// alone: it fills the disk\n"].map((line) => described(file, line + PLAIN).alone),
    [false, false, true],
  );
});

test("files are dealt to groups that take about the same time, each to one of them", () => {
  const times = new Map([
    ["a", 9],
    ["b", 5],
    ["c", 4],
    ["d", 1],
  ]);
  assert.deepEqual(dealt(["d", "c", "b", "a"], 2, times), [
    ["a", "d"],
    ["b", "c"],
  ]);
  assert.deepEqual(dealt(["a"], 8, times), [["a"]]);
});
