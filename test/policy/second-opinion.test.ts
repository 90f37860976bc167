import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { HOME, WORKSPACE } from "../fixtures/policy/corpus.ts";

const policy = new CommandPolicy();
const judged = (cmd: string): readonly [string, readonly string[]] => {
  const { decision, rules } = policy.decide(cmd, {
    mode: "workspace-write",
    workspace: WORKSPACE,
    home: HOME,
  });
  return [decision, rules.filter(({ id }) => id.startsWith("text.")).map(({ id }) => id)];
};

/** Commands that are harmless to one reader, and doubted only because of the other one. */
const DOUBTED = {
  "the readers see different words": ["echo a=~/x", "echo b={c,d}=~/x"],
  "the other reader cannot read it": ["[[ a =~ b ]]", "echo a \\"],
} as const;

for (const [why, commands] of Object.entries(DOUBTED))
  for (const cmd of commands)
    test(`${cmd} asks: ${why}`, () => assert.deepEqual(judged(cmd), ["ask", ["text.disagree"]]));

for (const cmd of ["echo 'a=~/x'", "echo b={c,d}", "[[ a == b ]]", "echo a"])
  test(`${cmd} is allowed: both readers agree`, () => assert.deepEqual(judged(cmd), ["allow", []]));
