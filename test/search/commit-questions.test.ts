import assert from "node:assert/strict";
import { test } from "node:test";
import { commitQuestions, historyIn } from "../../src/search/measure-worth.ts";
import { hostBox } from "../fakes/host-box.ts";
import { scratch } from "../fixtures/scratch.ts";
import { NEVER } from "./stores/words.ts";

const FILES = new Set(["src/a.ts", "src/b.ts", "src/c.ts"]);
const commit = (subject: string, ...paths: readonly string[]): string =>
  `\u0001${subject}\0\n${paths.map((path) => `${path}\0`).join("")}`;

test("a commit is a question, and the source files that it changed are its answers", () => {
  const output = [
    commit("fix(http): read the header of a chunked reply (#41)", "src/a.ts", "test/a.test.ts", "README.md"),
    commit("walk the tree of folders once", "src/b.ts", "src/gone.ts"),
  ].join("");
  assert.deepEqual(commitQuestions(output, FILES, 10), [
    { question: "read the header of a chunked reply", answers: new Set(["src/a.ts"]) },
    { question: "walk the tree of folders once", answers: new Set(["src/b.ts"]) },
  ]);
  assert.equal(commitQuestions(output, FILES, 1).length, 1, "only as many as wanted, the newest");
});

test("subjects that are no question, have no answer here or too many, or are repeated are left out", () => {
  const many = Array.from({ length: 7 }, (_, at) => `src/f${at}.ts`);
  const output = [
    commit("Revert the walk of the whole tree", "src/a.ts"),
    commit("v1.2.3", "src/a.ts"),
    commit("fix it", "src/a.ts"),
    commit("read the header of a reply", "src/gone.ts"),
    commit("read the header of tests", "test/a.test.ts"),
    commit("rename the reader of headers everywhere", "src/a.ts", ...many),
    commit("close the socket of a reply", "src/c.ts"),
    commit("close the socket of a reply", "src/b.ts"),
  ].join("");
  assert.deepEqual(
    commitQuestions(output, FILES, 10).map(({ question, answers }) => [question, [...answers]]),
    [["close the socket of a reply", ["src/c.ts"]]],
  );
});

test("a folder without a history and invalid output of git yield no questions", async () => {
  await using place = await scratch({ "work/src/a.ts": "export const a = 1;\n" });
  assert.deepEqual(await historyIn(hostBox(place.at("work")), FILES, 10, NEVER), []);
  for (const output of ["", "\0\0", "fatal: not a repository", "\u0001", "\u0001\0\0"])
    assert.deepEqual(commitQuestions(output, FILES, 10), [], output);
});
