import assert from "node:assert/strict";
import test from "node:test";
import { asksToLook, asksToRun, guessIntent, RunIntent } from "../../../src/agent/ending/intent.ts";
import { judgedRequests, type JudgedRequest } from "../../fixtures/intents/judged.ts";

const requests = judgedRequests("*.jsonl");
const guessed = (text: string): string => guessIntent(text, "workspace-write");
const wrong = requests.filter(({ text, want }) => guessed(text) !== want);
const asText = ({ text, want }: JudgedRequest): string => `${want} <- ${guessed(text)}: ${text}`;

test(`the intent of nine in ten of ${requests.length} requests is guessed as labelled`, () => {
  assert.ok(requests.length > 700);
  assert.ok(wrong.length < 0.1 * requests.length, wrong.map(asText).join("\n"));
});

test("at most 3 % of the tasks are mistaken for questions", () => {
  const tasks = requests.filter(({ want }) => want === "change");
  const missed = tasks.filter(({ text }) => guessed(text) === "repo");
  assert.ok(missed.length <= 0.03 * tasks.length, missed.map(asText).join("\n"));
});

test("no request is labelled twice", () => {
  const texts = requests.map(({ text }) => text);
  assert.deepEqual(
    texts.filter((text, at) => texts.indexOf(text) !== at),
    [],
  );
});

test("a text without clear words is a change, and in read-only mode a question about the repository", () => {
  const story = `${"The build is slow and nobody knows. ".repeat(40)}What is a closure?`;
  for (const text of ["", "  \n ", "...", "👍", "\u0000", "login", "login is slow", "Why?", "你好", story]) {
    assert.equal(guessIntent(text, "workspace-write"), "change", text);
    assert.equal(guessIntent(text, "danger-full-access"), "change", text);
    assert.equal(guessIntent(text, "read-only"), "repo", text);
  }
});

test("a question about anything is about the repository, and a wish in the form of a question is a change", () => {
  for (const text of [
    "how does login work?",
    "Why is startup slow?",
    "Can users upload images?",
    "when are emails sent?",
  ])
    assert.equal(guessed(text), "repo", text);
  for (const text of [
    "how about caching?",
    "why is login slow, and can you fix it?",
    "could the header be sticky?",
    "Why not use a Set instead?",
    "is login slow? make it fast",
  ])
    assert.equal(guessed(text), "change", text);
});

test("clear words decide in every mode", () => {
  for (const [text, intent] of [
    ["hello", "direct"],
    ["what is 2+2", "direct"],
    ["what does this project do?", "repo"],
    ["fix the bug", "change"],
    ["search the web for the CVE of log4j", "web"],
  ] as const)
    for (const mode of ["read-only", "workspace-write", "danger-full-access"] as const)
      assert.equal(guessIntent(text, mode), intent, text);
});

test("surrounding blanks and curly apostrophes do not affect the guess", () => {
  for (const { text } of requests) {
    assert.equal(guessed(`  ${text}\n\n`), guessed(text), text);
    assert.equal(guessed(text.replaceAll("'", "’")), guessed(text), text);
  }
});

test("a greeting before a task does not affect the guess", () => {
  const tasks = requests.filter(
    ({ want, text }) => want === "change" && guessed(text) === want && text.includes(" "),
  );
  for (const { text } of tasks) assert.equal(guessed(`Hello! ${text}`), "change", text);
});

test("repetitive hostile texts are classified without hanging", () => {
  for (const piece of ["hello ", "what ", "a/", "(", "the new ", "1+", "please "])
    assert.equal(typeof guessed(piece.repeat(1200 / piece.length)), "string");
});

test("the first write after a question is challenged once, and again in the next request", () => {
  const intent = new RunIntent();
  intent.begin("repo");
  assert.deepEqual(
    [1, 1, 2, 3].map((turn) => intent.write(turn)),
    ["questioned", "questioned", "escalated", "runs"],
  );
  assert.equal(intent.intent, "change");
  intent.begin("repo");
  assert.equal(intent.write(4), "questioned");
  intent.begin("change", true);
  assert.deepEqual(
    [6, 7, 8].map((turn) => intent.write(turn)),
    ["questioned", "escalated", "runs"],
  );
  for (const other of ["direct", "change", "web"] as const) {
    intent.begin(other);
    assert.equal(intent.write(5), "runs");
  }
});

test("requests that only ask to run something are recognised", () => {
  for (const request of [
    "run the tests",
    "Run the tests.",
    "Please run the test suite and tell me which tests fail.",
    "Can you run `npm test`?",
    "run main.py and show me the output",
    "Run the tests, then report what failed",
    "execute ./scripts/update.sh",
    "build the project",
    "Build it and print the errors.",
    "compile the code",
    "lint the project",
    "Lint it and list the warnings.",
    "type-check the code",
    "test the project",
    "check the build",
    "check whether the tests pass",
    "verify that all tests still pass",
    "do the tests pass?",
    "Is the build green?",
    "which tests fail?",
    "Hi! Run the tests please. They fail on another machine.",
    "run prettier on src/app/main.ts",
    "re-run the tests",
    "start the server",
    "Run the commands one after the other.",
  ])
    assert.equal(asksToRun(request), true, request);
  for (const request of [
    "",
    "hello",
    "run the tests and fix what fails",
    "run the tests until they pass",
    "Run the tests. Fix the bug.",
    "make the tests pass",
    "make sure the tests pass",
    "run the tests and commit",
    "run an audit of the code",
    "execute the plan in PLAN.md",
    "run the following tasks",
    "build a web server",
    "build the login page",
    "test the parser",
    "write tests",
    "add a test for the parser and run it",
    "check the README for typos",
    "start a new module for the parser",
    "rename the function and run the tests",
    "how are the tests run?",
    "explain how to run the tests",
    "which tests are there?",
    "run the tests; refactor what is slow",
    "the tests fail",
    "Run the benchmark and save its output to out.txt",
    `run the tests ${"x ".repeat(700)}`,
  ])
    assert.equal(asksToRun(request), false, request);
});

test("requests that only ask for information about the repository are recognised", () => {
  for (const request of [
    "what changed in the last commit?",
    "show me the largest file",
    "list all TODOs",
    "Please list all files that import zod.",
    "print the version of the package",
    "count the lines of src/a.ts",
    "are there uncommitted changes?",
    "who changed src/a.ts last?",
    "show the last 3 commits and tell me who made them",
  ])
    assert.equal(asksToLook(request), true, request);
  for (const request of [
    "",
    "revert the last commit",
    "amend the last commit",
    "show the user's name in the header",
    "give me a script that prints primes",
    "show me how to add a test",
    "show me an example of a test in a new file",
    "list all users on the page",
    "print the version when --version is given",
    "show all errors in red",
    "list all TODOs and fix them",
    "print a warning",
    "run the tests",
    "squash the last two commits",
    "commit the staged files",
    "what does a.ts do?",
  ])
    assert.equal(asksToLook(request), false, request);
});
