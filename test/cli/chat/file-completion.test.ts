import assert from "node:assert/strict";
import test from "node:test";
import { fileCompletion } from "../../../src/cli/chat/chat-lines.ts";

const finding = (files: readonly string[]) => {
  const asked: string[] = [];
  const complete = fileCompletion((typed) => {
    asked.push(typed);
    return Promise.resolve(files);
  });
  return { asked, complete };
};

test("the text after an @ at the end of the line is completed", async () => {
  const { asked, complete } = finding(["src/a.ts"]);
  for (const line of ["", "see", "a@src", "@src and"]) assert.equal(complete(line), undefined, line);
  assert.deepEqual(await complete("see @src/"), [["@src/a.ts"], "@src/"]);
  assert.deepEqual(await complete("@"), [["@src/a.ts"], "@"]);
  assert.deepEqual(await complete('@"with bl'), [["@src/a.ts"], '@"with bl']);
  assert.deepEqual(asked, ["src/", "", "with bl"]);
});

test("a name with a blank is quoted, and several different candidates are listed with the typed text", async () => {
  assert.deepEqual(await finding(["with blank.md"]).complete("@with"), [['@"with blank.md"'], "@with"]);
  const [hits] = (await finding(["src/pa.ts", "src/pb.ts"]).complete("@p")) ?? [[]];
  assert.deepEqual(hits, ["@p", "@src/pa.ts", "@src/pb.ts"]);
  const [same] = (await finding(["pa.ts", "pb.ts"]).complete("@p")) ?? [[]];
  assert.deepEqual(same, ["@pa.ts", "@pb.ts"]);
});

test("the next completion cancels the previous one, and a failing search finds nothing", async () => {
  const signals: AbortSignal[] = [];
  const complete = fileCompletion((_, signal) => {
    signals.push(signal);
    return Promise.reject(new Error("no"));
  });
  assert.deepEqual(await complete("@a"), [[], "@a"]);
  assert.equal(complete("done"), undefined);
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true],
  );
});
