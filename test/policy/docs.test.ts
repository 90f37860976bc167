import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { parseTomlDocument } from "../../src/config/toml-rules.ts";
import { failedExamples } from "../../src/policy/rule-examples.ts";
import { RULE_KEYS } from "../../src/policy/rule.ts";
import { readRules } from "../../src/policy/rule-reader.ts";
import { AROUND, policy } from "./judged.ts";

const page = (name: string) => readFileSync(path.join(import.meta.dirname, "../../docs", name), "utf8");
const DOCS = page("policy-rules.md");

for (const [name, count] of [
  ["policy-rules.md", 5],
  ["cookbook.md", 3],
] as const)
  test(`the rules shown in ${name} are good ones`, () => {
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
