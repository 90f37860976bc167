import assert from "node:assert/strict";
import test from "node:test";
import { capabilitiesOf, NOT_REPORTED, parametersFromUser } from "../../src/models/capabilities.ts";
import { billions, hasFewParameters, isSmallWindow } from "../../src/models/model-kinds.ts";

test("a model has few parameters by the size in its name", () => {
  for (const model of [
    "qwen2.5-coder:1.5b",
    "llama3.2:3b-instruct-q4",
    "smollm2:135m",
    "gemma3:270M",
    "phi-3.8b",
    "Qwen/Qwen3-4B",
  ])
    assert.equal(hasFewParameters(model), true, model);
  for (const model of [
    "qwen3:8b",
    "qwen3:14b",
    "gpt-4o-mini",
    "claude-3b-like:70b",
    "llama3.1:405b",
    "mixtral:8x7b",
    "q4b",
    "gpt-oss:120b",
    "llama3.2",
  ])
    assert.equal(hasFewParameters(model), false, model);
});

test("where a name says nothing its server counts, and nowhere else", () => {
  assert.equal(hasFewParameters("llama3.2", 3.2), true);
  assert.equal(hasFewParameters("mine", 4), true);
  assert.equal(hasFewParameters("mine", 4.3), false);
  assert.equal(hasFewParameters("qwen3:8b", 1.5), false);
  assert.equal(hasFewParameters("mine:1.5b", 70), true);
});

test("a count is told in billions as sizes are; what is no model of language has none", () => {
  assert.deepEqual(
    [1_543_714_304, 4_022_468_096, 134_515_008, 30_532_122_624].map(billions),
    [1.5, 4, 0.1, 30.5],
  );
  assert.deepEqual([null, undefined, 0, 1000, 9_999_999].map(billions), [null, null, null, null, null]);
});

test("a window is small where it is known to be", () => {
  assert.equal(isSmallWindow({ tokens: 8192, known: true }), true);
  assert.equal(isSmallWindow({ tokens: 8192, known: false }), false);
  assert.equal(isSmallWindow({ tokens: 32_768, known: true }), false);
});

test("the user's word goes before a name and a server's count", () => {
  assert.equal(hasFewParameters("mine", undefined, 3), true);
  assert.equal(hasFewParameters("mine", 70, 3), true);
  assert.equal(hasFewParameters("qwen3:8b", undefined, 3), true);
  assert.equal(hasFewParameters("coder:1b", 1, 70), false);
  const user = [
    { prefix: "mine", parameters: 70_000_000_000 },
    { prefix: "mine-small", parameters: 3_100_000_000 },
  ];
  assert.deepEqual(
    ["mine-small-q4", "mine", "other"].map((name) => parametersFromUser(name, user)),
    [3.1, 70, undefined],
  );
  const { parameters } = capabilitiesOf("mine-small", {
    user,
    maxContext: null,
    probe: null,
    server: { ...NOT_REPORTED, parameters: 8 },
  });
  assert.equal(parameters, 3.1);
});
