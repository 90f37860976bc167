import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { scratch } from "../fixtures/scratch.ts";
import { changedFiles, selected } from "./changed.ts";
import { called, dealt, described, longestFirst, testFiles } from "./suites.ts";

const TREE = {
  "src/core/a.ts": "export const a = 1;\n",
  "src/core/b.ts": 'import { a } from "./a.ts";\nexport const b = a;\n',
  "src/core/c.ts": 'import type { a } from "./a.ts";\nexport type C = typeof a;\n',
  "src/core/late.ts": 'export const late = () => import("./a.ts");\n',
  "src/core/worker.ts": "export const worker = 1;\n",
  "src/core/starts.ts": 'export const at = new URL("./worker.ts", import.meta.url);\n',
  "src/core/rows.yaml": "a: 1\n",
  "src/core/rows.generated.ts": "export const ROWS = 1;\n",
  "src/core/rows.ts": 'import { ROWS } from "./rows.generated.ts";\nvoid ROWS;\n',
  "test/core/rows.test.ts": 'import "../../src/core/rows.ts";\n',
  "test/fixtures/data.jsonl": "{}\n",
  "test/core/b.test.ts": 'import { b } from "../../src/core/b.ts";\nvoid b;\n',
  "test/core/c.test.ts": 'import type { C } from "../../src/core/c.ts";\n',
  "test/core/late.test.ts": 'import { late } from "../../src/core/late.ts";\nvoid late;\n',
  "test/core/starts.test.ts": 'import { at } from "../../src/core/starts.ts";\nvoid at;\n',
  "test/core/data.test.ts": 'const at = ["..", "fixtures", "data.jsonl"];\nvoid at;\n',
  "test/core/box.engine.test.ts": 'import { a } from "../../src/core/a.ts";\nvoid a;\n',
  "test/e2e/cli.test.ts": "",
};

const names = (files: readonly { readonly file: string }[]) => files.map(({ file }) => file.slice(5));

async function chosen(changed: readonly string[], all = false) {
  await using place = await scratch(TREE);
  const { chosen: ran, left } = selected(place.path, testFiles(place.path), changed, all);
  return { ran: names(ran), left: names(left) };
}

test("a change selects the unit tests that reach it through imports of any kind except types", async () => {
  assert.deepEqual(await chosen(["src/core/a.ts"]), {
    ran: ["core/b.test.ts", "core/late.test.ts"],
    left: ["core/box.engine.test.ts", "e2e/cli.test.ts"],
  });
});

test("files named by a string are reached too: a worker, a data file", async () => {
  assert.deepEqual((await chosen(["src/core/worker.ts"])).ran, ["core/starts.test.ts"]);
  assert.deepEqual((await chosen(["test/fixtures/data.jsonl"])).ran, ["core/data.test.ts"]);
});

test("a changed YAML table selects the tests that reach the module generated from it", async () => {
  assert.deepEqual((await chosen(["src/core/rows.yaml"])).ran, ["core/rows.test.ts"]);
});

test("with --all the affected slow tests run as well, and a changed test file always runs", async () => {
  assert.deepEqual((await chosen(["src/core/a.ts"], true)).left, []);
  assert.equal((await chosen(["src/core/a.ts"], true)).ran.length, 4);
  assert.deepEqual(await chosen(["test/core/box.engine.test.ts"]), {
    ran: ["core/box.engine.test.ts"],
    left: [],
  });
});

test("a file that every test depends on selects every unit test; a file that no test names selects none", async () => {
  assert.equal((await chosen(["package.json"])).ran.length, 6);
  assert.deepEqual(await chosen(["README.md"]), { ran: [], left: [] });
});

test("changed files are those of the branch, the work tree and untracked files that differ from main", async () => {
  await using place = await scratch({ "a.ts": "1\n", "b.ts": "1\n", "c.ts": "1\n" });
  const git = (...words: readonly string[]) =>
    execFileSync("git", ["-C", place.path, "-c", "user.name=t", "-c", "user.email=t@t", ...words], {
      stdio: "pipe",
    });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-q", "-m", "first");
  assert.deepEqual(changedFiles(place.path), []);
  git("switch", "-q", "-c", "branch");
  await place.write("a.ts", "2\n");
  git("commit", "-q", "-a", "-m", "second");
  await place.write("b.ts", "2\n");
  await place.write("new.ts", "1\n");
  assert.deepEqual(changedFiles(place.path), ["a.ts", "b.ts", "new.ts"]);
});

const own = (text: string): boolean => described("test/core/a.test.ts", text).ownProcess;

test("a file shares a process unless it changes global state of the process", () => {
  assert.equal(own('test("x", () => undefined);\n'), false);
  for (const line of [
    'process.env["X"] = "1";',
    "process.chdir(place);",
    't.mock.timers.enable({ apis: ["Date"] });',
    "after(() => place.close());",
    "// own process: it counts its threads",
  ])
    assert.equal(own(`${line}\n`), true, line);
  assert.equal(described("test/e2e/a.test.ts", "").ownProcess, false);
});

test("files are dealt once each to groups that take equally long; a file without a known time may be long", () => {
  const none = new Map<string, number>();
  assert.deepEqual(dealt(["a", "b", "c", "d", "e"], 2, none), [
    ["a", "c", "e"],
    ["b", "d"],
  ]);
  assert.deepEqual(dealt(["a"], 3, none), [["a"]]);
  assert.deepEqual(dealt([], 3, none), []);
  const times = new Map([
    ["a", 1],
    ["b", 5000],
    ["d", 4000],
    ["e", 10],
  ]);
  assert.deepEqual(dealt(["a", "b", "c", "d", "e"], 2, times), [
    ["b", "e", "a"],
    ["d", "c"],
  ]);
});

test("the longest file is started first", () => {
  const times = new Map([
    ["a", 1],
    ["b", 5000],
  ]);
  assert.deepEqual(
    longestFirst(["a", "b", "c"], times, (file) => [file]),
    ["b", "c", "a"],
  );
});

test("a slow file runs only when it is named, and nothing else is left out", () => {
  const files = [
    described("test/core/a.test.ts", ""),
    described("test/e2e/b.engine.test.ts", "// slow: kills one after the other\n"),
    described("test/e2e/c.engine.test.ts", 'const text = "// slow: no line of its own";\n'),
    described("test/core/d.test.ts", "// also slow: all cases of its properties\n"),
  ];
  const names = (words: readonly string[]): readonly string[] =>
    called(files, words).map(({ file }) => file.split("/").at(-1)?.slice(0, 1) ?? "");
  assert.deepEqual(names([]), ["a", "c", "d"]);
  assert.deepEqual(names(["unit", "engine"]), ["a", "c", "d"]);
  assert.deepEqual(names(["slow"]), ["b", "d"]);
  assert.deepEqual(names(["test/e2e/b.engine.test.ts", "unit"]), ["a", "b", "d"]);
});
