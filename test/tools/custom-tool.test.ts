import assert from "node:assert/strict";
import test from "node:test";
import { judgeIn } from "../../src/agent/action-judge.ts";
import { type Mode, runsUnattended } from "../../src/core/decision.ts";
import type { PreparedCall } from "../../src/core/tool.ts";
import { readRules, type UserRule } from "../../src/policy/rule.ts";
import { type CustomTool, customTool } from "../../src/tools/custom-tool.ts";
import { fakeBox } from "../fakes/box.ts";
import type { FakeCommand } from "../fakes/commands.ts";

const never = new AbortController().signal;

const toolOf = (
  over: Omit<Partial<CustomTool>, "given"> & { readonly given?: Partial<CustomTool["definition"]> } = {},
) => {
  const { given = {}, ...others } = over;
  return customTool({
    name: "lookup",
    commandText: "lookup --json",
    folder: "/repo",
    timeoutMs: 1000,
    issuesOf: () => [],
    ...others,
    definition: { description: "looks up", command: ["lookup", "--json"], ...given },
  });
};

function prepared(tool: ReturnType<typeof toolOf>, args: unknown): PreparedCall {
  const read = tool.prepare(args);
  assert.ok(read.kind === "prepared");
  return read;
}

async function ran(tool: ReturnType<typeof toolOf>, lookup: FakeCommand, args: unknown = { word: "a" }) {
  const box = fakeBox({ commands: { lookup } });
  const result = await prepared(tool, args)
    .state()
    .run(() => Promise.resolve(box), never);
  return { result, asked: box.asked };
}

test("a custom tool gets its arguments only as JSON on stdin, and its result is its output", async () => {
  const { result, asked } = await ran(
    toolOf(),
    async ({ input, out, err }) => {
      for await (const bytes of input) await out(bytes);
      await err("a warning");
      return 0;
    },
    { word: "$(rm -rf /)" },
  );
  assert.deepEqual([result.kind, result.text], ["ok", '{"word":"$(rm -rf /)"}']);
  const [request] = asked;
  assert.deepEqual(
    [request?.words, request?.folder, request?.env],
    [["lookup", "--json"], "/repo", undefined],
  );
});

test("a failure includes stderr, a late tool is ended, and an empty output is stated", async () => {
  const failed = await ran(toolOf(), async ({ out, err }) => {
    await out("half");
    await err("no such word");
    return 3;
  });
  assert.deepEqual([failed.result.kind, failed.result.exitCode], ["failed", 3]);
  assert.match(failed.result.text, /^half\n\[stderr\]\nno such word\n\[exit 3/);
  const late = await ran(
    toolOf({ timeoutMs: 30 }),
    ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(137))),
  );
  assert.equal(late.result.kind, "timed_out");
  assert.doesNotMatch(late.result.text, /advice|background/, "arguments of bash are not its own");
  assert.equal((await ran(toolOf(), () => 0)).result.text, "(no output)");
});

test("arguments that do not match, or are too large, run nothing", () => {
  const strict = toolOf({ issuesOf: () => ["word: must be string"] });
  assert.deepEqual(strict.prepare({ word: 1 }), { kind: "invalid", issues: ["word: must be string"] });
  assert.equal(toolOf().prepare("a").kind, "invalid");
  assert.equal(toolOf().prepare([1]).kind, "invalid");
  assert.equal(toolOf().prepare({ word: "x".repeat(300_000) }).kind, "invalid");
});

test("the model gets the schema as it was written", () => {
  const schema = { type: "object", properties: { word: { type: "string", pattern: "^a" } } };
  assert.deepEqual(toolOf({ given: { schema } }).schema, schema);
  assert.deepEqual(toolOf().schema, { type: "object" });
});

function rulesOf(read: ReturnType<typeof readRules>): readonly UserRule[] {
  assert.deepEqual(read.problems, []);
  return read.examples.map(({ rule }) => rule);
}

const judged = (
  tool: ReturnType<typeof toolOf>,
  mode: Mode,
  rules: readonly object[] = [],
  granted: readonly string[] = [],
) => {
  const read = rulesOf(readRules(rules, "user"));
  const judge = judgeIn({
    mode,
    workspace: "/repo",
    home: "/home/user",
    links: (path) => path,
    rules: read,
    granted,
  });
  return judge.judge(prepared(tool, {}).state().facts, tool.name);
};
const runs = (...given: Parameters<typeof judged>): boolean => runsUnattended(judged(...given), given[1]);

test("with nobody there a tool runs if contained and nothing is granted, and a reading one is judged by its command", () => {
  const [own, reads] = [toolOf(), toolOf({ given: { reads: true }, commandText: "cat a.txt" })];
  assert.deepEqual(
    [
      runs(own, "workspace-write"),
      runs(own, "read-only"),
      runs(own, "workspace-write", [], ["example.org"]),
      runs(reads, "workspace-write"),
      runs(reads, "read-only"),
    ],
    [true, false, false, true, true],
  );
  assert.ok(judged(own, "workspace-write").mayWrite);
});

const rule = (over: object) => ({ decision: "deny", reason: "not here", ...over });

test("a rule that denies its name or its command applies, whatever else is allowed", () => {
  const allow = { tool: "lookup", decision: "allow", reason: "ours" };
  assert.equal(judged(toolOf(), "workspace-write", [rule({ tool: "look*" }), allow]).decision, "deny");
  assert.equal(judged(toolOf(), "workspace-write", [rule({ prefix: ["lookup"] }), allow]).decision, "deny");
  assert.equal(judged(toolOf({ commandText: "rm -rf /" }), "workspace-write", [allow]).decision, "deny");
  assert.ok(runs(toolOf(), "workspace-write", [rule({ tool: "other" })]));
});

const leaving =
  (text: string | undefined): FakeCommand =>
  async ({ env, files, out }) => {
    await out(env["HARNESS_STATE"] ?? "none");
    if (text !== undefined) files.write(env["HARNESS_STATE_FILE"] ?? "", Buffer.from(text));
    return 0;
  };

test("a tool gets the values that it requests, and what it leaves in its file is kept", async () => {
  const kept: Record<string, unknown> = { seen: 1 };
  const values = {
    read: () => ({ ...kept }),
    change: (changes: Readonly<Record<string, unknown>>) => {
      if ("bad" in changes) return Promise.resolve("bad is no name");
      Object.assign(kept, changes);
      return Promise.resolve(undefined);
    },
  };
  const say = async (text?: string): Promise<string> =>
    (await ran(toolOf({ values }), leaving(text))).result.text;
  assert.equal(await say('{"seen":2}'), '{"seen":1}');
  assert.deepEqual(kept, { seen: 2 });
  assert.equal(await say(), '{"seen":2}');
  assert.equal(await say("[1]"), '{"seen":2}\n[its values were not kept: what it left is not a JSON object]');
  assert.equal(await say('{"bad":1}'), '{"seen":2}\n[its values were not kept: bad is no name]');
  const without = await ran(toolOf(), leaving(undefined));
  assert.equal(without.result.text, "none");
});
