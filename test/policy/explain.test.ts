import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";

const policy = new CommandPolicy();
const place = { workspace: "/home/dev/project", home: "/home/dev" };

for (const [mode, text, told] of [
  [
    "workspace-write",
    "ls; mkdir x; sudo ls",
    ["deny privilege", "ask write.workspace", "allow read.workspace", "allow read.workspace"],
  ],
  ["read-only", "ls; npm test", ["ask code.check", "allow read.workspace"]],
  ["danger-full-access", "curl x", ["allow network"]],
  ["workspace-write", "echo", ["allow harmless"]],
] as const)
  test(`${text} is explained rule by rule in ${mode}`, () => {
    const { decision, verdicts } = policy.explain(text, { ...place, mode });
    assert.deepEqual(
      decision.rules.map(({ id }, at) => `${verdicts[at]} ${id}`),
      told,
    );
    assert.deepEqual(decision, policy.decide(text, { ...place, mode }));
  });
