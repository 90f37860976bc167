import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { parseTomlDocument } from "../../src/config/toml-rules.ts";
import { failedExamples } from "../../src/policy/rule-examples.ts";
import { RULE_KEYS } from "../../src/policy/rule.ts";
import { readRules } from "../../src/policy/rule-reader.ts";
import { AROUND, policy } from "./judged.ts";

const DOCS = readFileSync(path.join(import.meta.dirname, "../../docs/policy-rules.md"), "utf8");
const [, example = ""] = /```toml\n([^]*?)```/.exec(DOCS) ?? [];

test("the rules shown in the documentation are good ones", () => {
  const { value } = parseTomlDocument("docs", example, "rule");
  const { rule } = value as { readonly rule: readonly unknown[] };
  const { examples, problems } = readRules(rule, "user");
  assert.deepEqual([examples.length, problems], [5, []]);
  assert.deepEqual(failedExamples(examples, policy, AROUND.home), []);
});

test("the documentation names every key", () => {
  assert.deepEqual(
    RULE_KEYS.filter((key) => key !== "id" && !DOCS.includes(`| \`${key}\``)),
    [],
  );
});
