import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { parseTomlDocument } from "../../src/config/toml-rules.ts";
import { CHANGE_KINDS } from "../../src/policy/effects/effect.ts";
import { DOUBTS } from "../../src/policy/judge-effects.ts";
import { failedExamples } from "../../src/policy/rules-from-commands.ts";
import { readRules, RULE_KEYS } from "../../src/policy/rule.ts";
import { AROUND, policy } from "./judged.ts";

const page = (name: string) => readFileSync(path.join(import.meta.dirname, "../../docs", name), "utf8");
const DOCS = page("policy-rules.md");

for (const [name, count] of [
  ["policy-rules.md", 5],
  ["cookbook.md", 3],
] as const)
  test(`the rules shown in ${name} are valid`, () => {
    const blocks = [...page(name).matchAll(/```toml\n([^]*?)```/g)].map(([, block = ""]) => block);
    const { value } = parseTomlDocument("docs", blocks.join("\n"), "rule");
    const { rule } = value as { readonly rule: readonly unknown[] };
    const { examples, problems } = readRules(rule, "user");
    assert.deepEqual([examples.length, problems], [count, []]);
    assert.deepEqual(failedExamples(examples, policy, AROUND.home), []);
  });

test("the documentation names every key", () => {
  assert.deepEqual(
    RULE_KEYS.filter((key) => key !== "id" && !DOCS.includes(`| \`${key}\``)),
    [],
  );
});

/** Ids that the source composes: the template text, and the ids that it can produce. */
const MADE_OF_PARTS: Readonly<Record<string, readonly string[]>> = {
  "read.${kind}": ["read.workspace", "read.temp", "read.system", "read.sink"],
  "${kind}.unknown": ["write.unknown", "delete.unknown", "permissions.unknown"],
  "${kind}.${facts.kind}": ["write", "delete", "permissions"].flatMap((kind) => [
    `${kind}.workspace`,
    `${kind}.temp`,
  ]),
  "${kind}.outside": ["write.outside", "delete.outside", "permissions.outside"],
  "repository.${change}": CHANGE_KINDS.map((change) => `repository.${change}`),
  // The ids of a user's own rules.
  "user.new-${rules.length}": [],
};

test("policy-ids.md lists every rule id of the source once, and no other", () => {
  const root = path.join(import.meta.dirname, "../../src/policy");
  const source = globSync("**/*.ts", { cwd: root })
    .filter((file) => !file.endsWith(".generated.ts"))
    .map((file) => readFileSync(path.join(root, file), "utf8"))
    .join("\n");
  const all = (pattern: RegExp): readonly string[] =>
    Array.from(source.matchAll(pattern), ([, found = ""]) => found);
  const made = [...new Set(all(/\bid: `([^`]*)`/g))];
  assert.deepEqual(made.toSorted(), Object.keys(MADE_OF_PARTS).toSorted());
  const written = [
    ...all(/\bid: "([a-z.-]+)"/g),
    ...all(/\b(?:rule|row|add)\(\s*"([a-z]+(?:\.[a-z-]+)*)",/g),
    ...all(/"(text\.[a-z]+)"/g),
  ];
  const ids = new Set([...written, ...DOUBTS, ...Object.values(MADE_OF_PARTS).flat()]);
  const listed = Array.from(page("policy-ids.md").matchAll(/^\| `([^`]+)`/gm), ([, id = ""]) => id);
  assert.deepEqual(listed.toSorted(), [...ids].toSorted());
});
