import assert from "node:assert/strict";
import test from "node:test";
import { combineExtensions } from "../../../src/app/project/open-extensions.ts";
import { type AnyTool, type Extensions, NO_EXTENSIONS } from "../../../src/core/tool.ts";

const tool = (name: string): AnyTool => ({
  name,
  description: name,
  schema: {},
  prepare: () => ({ kind: "invalid", issues: [] }),
});

const names = ({ tools }: Pick<Extensions, "tools">): readonly string[] => tools().map(({ name }) => name);

test("several extensions combine into one, whose tool list changes only when one of theirs does", () => {
  const live: { list: readonly AnyTool[] } = { list: [tool("b")] };
  const fixed = [tool("a")];
  const all = combineExtensions([
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

test("all extensions are disposed of in reverse order, even if one fails", async () => {
  const ended: string[] = [];
  const ending = (name: string, fails = false): Extensions => ({
    ...NO_EXTENSIONS,
    [Symbol.asyncDispose]: () => {
      ended.push(name);
      return fails ? Promise.reject(new Error(name)) : Promise.resolve();
    },
  });
  const all = combineExtensions([ending("a"), ending("b", true), ending("c")]);
  await assert.rejects(Promise.resolve(all[Symbol.asyncDispose]()), /b/);
  assert.deepEqual(ended, ["c", "b", "a"]);
});

test("extensions become ready in parallel, and rest ends what they keep running", async () => {
  const done: string[] = [];
  const first = Promise.withResolvers<void>();
  const all = combineExtensions([
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
