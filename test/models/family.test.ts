import assert from "node:assert/strict";
import test from "node:test";
import { familyName, ownRowOf, rowOf, TABLE } from "../../src/models/capabilities.ts";
/** A name as some server writes it, and the row that it falls under. */
const NAMES: readonly (readonly [string, string | undefined])[] = [
  ["qwen3:8b", "qwen3"],
  ["hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "qwen3"],
  ["registry.ollama.ai/library/qwen3-coder:30b", "qwen3-coder"],
  ["Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b-instruct-2507"],
  ["qwen2.5-coder:7b", "qwen2.5-coder"],
  ["Qwen-2.5-72B", "qwen2.5"],
  ["codestral:22b", "codestral"],
  ["devstral-small-2:24b", "devstral"],
  ["mistral-7b-instruct", "mistral"],
  ["Mistral-Small-3.2-24B", "mistral-small3.2"],
  ["mistral-nemo:12b", "mistral-nemo"],
  ["mixtral-8x7b", "mixtral"],
  ["openai/gpt-oss-20b", "gpt-oss"],
  ["gpt-oss:120b-cloud", "gpt-oss"],
  ["Meta-Llama-3.1-8B-Instruct", "llama3.1"],
  ["llama3:8b", "llama3"],
  ["llama-3.3-70b-versatile", "llama3.3"],
  ["meta-llama/Llama-4-Scout-17B-16E", "llama4"],
  ["google/gemma-3-27b-it", "gemma3"],
  ["gemma3:1b", "gemma3:1b"],
  ["gemma4:e4b", "gemma4"],
  ["ibm-granite/granite-4.0-h-tiny", "granite4"],
  ["granite3.3:8b", "granite3.3"],
  ["deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1"],
  ["deepseek-v3.1:671b", "deepseek-v3.1"],
  ["microsoft/Phi-4-mini-instruct", "phi4-mini"],
  ["zai-org/GLM-4.6", "glm4.6"],
  ["Kimi-K2-Thinking", "kimi-k2-thinking"],
  ["MiniMax-M2", "minimax-m2"],
  ["c4ai-command-r-plus", "command-r"],
  ["SmolLM2-1.7B", "smollm2"],
  ["claude-3-5-sonnet-20241022", "claude3"],
  ["anthropic/claude-sonnet-4.5", "claude"],
  ["gpt-4o-mini", "gpt4o"],
  ["gpt-5-mini", "gpt5"],
  ["my-own-model", undefined],
  ["", undefined],
];

for (const [name, prefix] of NAMES)
  test(`${JSON.stringify(name)} is of the family ${prefix ?? "that nobody knows"}`, () => {
    assert.equal(rowOf(name)?.prefix, prefix);
  });

test("every row is reached by its own prefix, and none stands twice", () => {
  for (const row of TABLE) assert.equal(rowOf(row.prefix), row, row.prefix);
  assert.equal(new Set(TABLE.map(({ prefix }) => prefix)).size, TABLE.length);
  for (const { prefix } of TABLE) assert.equal(familyName(prefix), prefix);
});

test("the user may write the whole name, its last part, or the family; the longest prefix counts, then the last", () => {
  const rows = ["qwen3", "hf.co/unsloth/", "Qwen3-8B", "qwen3"].map((prefix, index) => ({ prefix, index }));
  const found = (model: string): number | undefined => ownRowOf(rows, model)?.index;
  assert.deepEqual(["hf.co/unsloth/Qwen3-8B-GGUF", "qwen3:4b", "hf.co/x/Qwen3-8B", "llama3"].map(found), [
    1,
    3,
    2,
    undefined,
  ]);
});
