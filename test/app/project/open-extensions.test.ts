import assert from "node:assert/strict";
import test from "node:test";
import { together } from "../../../src/app/project/open-extensions.ts";
import { type AnyTool, type Extensions, NO_EXTENSIONS } from "../../../src/core/tool.ts";

const tool = (name: string): AnyTool => ({
  name,
  description: name,
  schema: {},
  prepare: () => ({ kind: "invalid", issues: [] }),
});

const names = ({ tools }: Pick<Extensions, "tools">): readonly string[] => tools().map(({ name }) => name);

test("several extensions are one; its list is another only when one of theirs is", () => {
  const live: { list: readonly AnyTool[] } = { list: [tool("b")] };
  const fixed = [tool("a")];
  const all = together([
    { ...NO_EXTENSIONS, tools: () => fixed, prompt: "one" },
    NO_EXTENSIONS,
    { ...NO_EXTENSIONS, tools: () => live.list, prompt: "two" },
  ]);
  assert.deepEqual([names(all), all.prompt], [["a", "b"], "one\n\ntwo"]);
  assert.equal(all.tools(), all.tools());
  const before = all.tools();
  live.list = [tool("b"), tool("c")];
  assert.notEqual(all.tools(), before);
  assert.deepEqual(names(all), ["a", "b", "c"]);
});

test("all of them are ended, the last first, also where one of them fails", async () => {
  const ended: string[] = [];
  const ending = (name: string, fails = false): Extensions => ({
    ...NO_EXTENSIONS,
    [Symbol.asyncDispose]: () => {
      ended.push(name);
      return fails ? Promise.reject(new Error(name)) : Promise.resolve();
    },
  });
  const all = together([ending("a"), ending("b", true), ending("c")]);
  await assert.rejects(Promise.resolve(all[Symbol.asyncDispose]()), /b/);
  assert.deepEqual(ended, ["c", "b", "a"]);
});

test("all are made ready side by side, and have an end to what they keep going", async () => {
  const done: string[] = [];
  const first = Promise.withResolvers<void>();
  const all = together([
    { ...NO_EXTENSIONS, ready: () => first.promise, rest: () => Promise.resolve(void done.push("rested")) },
    NO_EXTENSIONS,
    {
      ...NO_EXTENSIONS,
      ready: () => {
        first.resolve();
        return Promise.resolve(void done.push("ready"));
      },
    },
  ]);
  await all.ready?.();
  await all.rest?.();
  assert.deepEqual(done, ["ready", "rested"]);
});
