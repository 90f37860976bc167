import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFile, mkdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { readResults } from "../../../src/app/batch/eval-run.ts";
import { hasFolder, layForCheck, layRepository, readSuite } from "../../../src/app/batch/eval-suite.ts";
import { lockedFolder, openResults } from "../../../src/app/batch/batch-folder.ts";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { readScenario } from "../../../src/models/providers/scenario.ts";
import { evalPage } from "../../../src/render/result-pages.ts";
import { comparedTable, type EvalResult, evalTotals } from "../../../src/render/batch-results.ts";
import { scratch } from "../../fixtures/scratch.ts";

const SHIPPED = path.join(import.meta.dirname, "../../../examples/evals/small");

test("the shipped suite has forty tasks in seven languages, each with a solution and a wrong one", async () => {
  const tasks = await readSuite(SHIPPED, []);
  assert.ok(tasks.length >= 40, `${tasks.length}`);
  assert.ok(new Set(tasks.map(({ language }) => language)).size >= 7);
  for (const task of tasks) {
    assert.ok(await hasFolder(task, "repo"), task.name);
    // What the check needs comes from the task, whatever the run did to it.
    assert.ok(task.restore.length > 0 || (await hasFolder(task, "check")), task.name);
    for (const file of task.restore) assert.ok(existsSync(path.join(task.folder, "repo", file)), file);
    for (const name of ["solution.jsonl", "wrong.jsonl"])
      assert.ok(readScenario(path.join(task.folder, name)).steps.length > 1, task.name);
  }
});

const TASK = '{"prompt":"p","check":"true","language":"c"}';

test("only the named tasks are taken, and a folder without a task.json is not a task", async () => {
  await using place = await scratch({ "b/task.json": `\uFEFF${TASK}`, "a/task.json": TASK, "notes/x": "" });
  assert.deepEqual(
    (await readSuite(place.path, [])).map(({ name }) => name),
    ["a", "b"],
  );
  const [only] = await readSuite(place.path, ["b"]);
  assert.deepEqual([only?.name, only?.exit, only?.check_timeout], ["b", 0, "2m"]);
  await assert.rejects(readSuite(place.path, ["c"]), /has no task c/);
});

for (const [what, text, said] of [
  ["invalid JSON", "{", /task\.json: /],
  ["an unknown key", '{"prompt":"p","check":"true","language":"c","chek":"x"}', /chek/],
  ["no check", '{"prompt":"p","language":"c"}', /check: expected string, found nothing$/],
  ["a number as its check", '{"prompt":"p","language":"c","check":5}', /check: expected string, found 5$/],
  ["an empty prompt", '{"prompt":" \\n","check":"true","language":"c"}', /prompt: expected a task/],
  ["a NUL in its check", '{"prompt":"p","check":"a\\u0000b","language":"c"}', /check: expected text without/],
  [
    "a check that no program can be given",
    JSON.stringify({ prompt: "p", check: "x".repeat(70_000), language: "c" }),
    /check: it is longer than 64 KiB/,
  ],
  ...[".", "./", "a/..", "../x", "/x", "x/", "a/../../x", "", "a\\u0000"].map(
    (answer) =>
      [
        `${JSON.stringify(answer)} as the file of its answer`,
        `{"prompt":"p","check":"true","language":"c","answer":"${answer}"}`,
        /answer: expected a path inside/,
      ] as const,
  ),
  [
    "a file to restore that its repo does not have",
    '{"prompt":"p","check":"true","language":"c","restore":["test.c"]}',
    /restore: "test\.c" is not a file of its repo/,
  ],
  ["an invalid time", '{"prompt":"p","check":"true","language":"c","check_timeout":"soon"}', /check_timeout/],
] as const)
  test(`a task with ${what} ends the whole suite and names its file`, async () => {
    await using place = await scratch({ "a/task.json": TASK, "b/task.json": text });
    await assert.rejects(readSuite(place.path, []), said);
    await assert.rejects(readSuite(place.path, []), /b\/task\.json/);
  });

test("a task.json that is not a file ends the suite instead of holding it up", async () => {
  await using place = await scratch({ "a/x": "" });
  execFileSync("mkfifo", [place.at("a/task.json")]);
  await assert.rejects(readSuite(place.path, []), /a\/task\.json: /);
});

test("links of a repository and of a check are laid as they are, and a shared repository may be a link", async () => {
  await using place = await scratch({
    "shared/real.txt": "real",
    "suite/a/task.json": '{"prompt":"p","check":"true","language":"c","restore":["./link.txt"]}',
    "suite/a/check/one": "1",
  });
  await symlink("real.txt", place.at("shared/link.txt"));
  await symlink("circle", place.at("shared/circle"));
  await symlink("../../shared", place.at("suite/a/repo"));
  await symlink("one", place.at("suite/a/check/two"));
  const [task] = await readSuite(place.at("suite"), []);
  assert.ok(task !== undefined);
  const workspace = place.at("workspace");
  await mkdir(workspace);
  await layRepository(task, workspace);
  assert.equal(await readlink(path.join(workspace, "link.txt")), "real.txt");
  assert.equal(await readlink(path.join(workspace, "circle")), "circle");
  await rm(path.join(workspace, "link.txt"));
  await writeFile(path.join(workspace, "link.txt"), "changed by the run");
  await layForCheck(task, workspace, "");
  assert.equal(await readlink(path.join(workspace, "link.txt")), "real.txt");
  assert.equal(await readlink(path.join(workspace, "two")), "one");
});

test("a repository with a pipe is a fault of the suite, and named", async () => {
  await using place = await scratch({ "a/task.json": TASK, "a/repo/x": "" });
  execFileSync("mkfifo", [place.at("a/repo/pipe")]);
  const [task] = await readSuite(place.path, []);
  assert.ok(task !== undefined);
  await mkdir(place.at("workspace"));
  await assert.rejects(layRepository(task, place.at("workspace")), (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.equal(thrown.exit, EXIT.usage);
    assert.match(thrown.message, /^a: its repo cannot be copied: .*pipe/);
    return true;
  });
});

test("one eval at a time writes into a folder", async () => {
  await using place = await scratch({});
  using _ = lockedFolder(place.at("out"), "eval");
  assert.throws(() => lockedFolder(place.at("out"), "eval"), /another harness eval is using/);
});

test("a suite that is missing or has no tasks is reported", async () => {
  await using place = await scratch({ x: "" });
  await assert.rejects(readSuite(place.at("gone"), []), /cannot be read/);
  await assert.rejects(readSuite(place.path, []), /has no tasks/);
});

const result = (task: string, more: Partial<EvalResult> = {}): EvalResult => ({
  task,
  language: "c",
  nth: 1,
  exit_code: 0,
  status: "done",
  reason: "",
  check_exit_code: 0,
  check_output: "",
  solved: true,
  false_done: false,
  refusals: 0,
  attempts: 1,
  turns: 2,
  tool_calls: 1,
  prompt_tokens: 10,
  completion_tokens: null,
  duration_ms: 5,
  ...more,
});

test("a line truncated by a kill loses only itself", async () => {
  await using place = await scratch();
  const file = place.at("results.jsonl");
  {
    await using results = await openResults(file);
    await results.add(result("one"));
    await results.add(result("two"));
  }
  const whole = await readFile(file, "utf8");
  await appendFile(file, JSON.stringify(result("three")).slice(0, 40));
  assert.deepEqual(
    (await readResults(file)).map(({ task }) => task),
    ["one", "two"],
  );
  {
    await using results = await openResults(file);
    await results.add(result("four"));
  }
  assert.equal(await readFile(file, "utf8"), `${whole}${JSON.stringify(result("four"))}\n`);
  await assert.rejects(readResults(await place.write("other.jsonl", "{}\n")), /line 1 is not a result/);
  assert.deepEqual(await readResults(place.at("none")), []);
});

test("long results that end at the same time are kept as whole lines", async () => {
  await using place = await scratch();
  const file = place.at("results.jsonl");
  const names = Array.from({ length: 4 }, (_, at) => String(at).repeat(3 * 2 ** 20));
  {
    await using results = await openResults(file);
    await Promise.all(names.map((name) => results.add(result(name))));
  }
  assert.deepEqual(
    (await readResults(file)).map(({ task }) => task.slice(0, 3)),
    ["000", "111", "222", "333"],
  );
});

test("a result of an older version counts as one attempt", async () => {
  await using place = await scratch();
  const { attempts: _, ...older } = result("one");
  const file = await place.write("results.jsonl", `${JSON.stringify(older)}\n`);
  assert.deepEqual(await readResults(file), [result("one")]);
});

test("totals, page and comparison of results", () => {
  const results = [
    result("one"),
    result("<b>two</b>", { solved: false, false_done: true, check_exit_code: 1, check_output: "<script>" }),
    result("three", { exit_code: 4, solved: false, status: "refused", attempts: 3 }),
  ];
  const { runs, solved, false_done, refused, attempts, tokens } = evalTotals(results);
  assert.deepEqual([runs, solved, false_done, refused, attempts, tokens], [3, 1, 1, 1, 5, 30]);
  const page = evalPage("suite", results);
  assert.ok(page.includes("&lt;b&gt;two&lt;/b&gt;") && !page.includes("<script>"));
  assert.match(
    comparedTable(results, [result("one"), result("three")]),
    /\* {2}three +0 \(0 %\) +1 \(100 %\)/,
  );
});
