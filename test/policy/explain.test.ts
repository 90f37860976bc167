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
  ["workspace-write", ")", ["deny text.syntax"]],
  ["workspace-write", "# nothing", ["deny text.empty"]],
] as const)
  test(`${text} is explained rule by rule in ${mode}`, () => {
    const { decision, standings } = policy.explain(text, { ...place, mode });
    assert.deepEqual(
      decision.rules.map(({ id }, at) => `${standings[at]?.verdict} ${id}`),
      told,
    );
    assert.deepEqual(decision, policy.decide(text, { ...place, mode }));
  });

test("each rule is contained or not on its own", () => {
  const { standings } = policy.explain("mkdir x; curl x; ls", { ...place, mode: "workspace-write" });
  assert.deepEqual(standings, [
    { verdict: "ask", contained: false },
    { verdict: "ask", contained: true },
    { verdict: "allow", contained: true },
  ]);
});
