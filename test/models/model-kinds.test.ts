import assert from "node:assert/strict";
import test from "node:test";
import {
  billions,
  downloadOf,
  fittingModels,
  hasFewParameters,
  isSmallWindow,
  kindOf,
  MAX_FIRST_SECONDS,
  MODEL_CHOICES,
  type ModelMachine,
  secondsToFirstWord,
  tokensPerSecond,
} from "../../src/models/model-kinds.ts";
import { capabilitiesOf, NOT_REPORTED, parametersFromUser, rowOf } from "../../src/models/capabilities.ts";
import { textOf } from "../house/docs-lines.ts";

test("the capabilities that a server reports decide what a model is for", () => {
  assert.equal(kindOf("nomic-embed-text", ["completion", "tools"]), "chat");
  assert.equal(kindOf("qwen3:8b", ["embedding"]), "embedding");
  assert.equal(kindOf("qwen3:8b", ["image"]), "other");
});

for (const name of [
  "nomic-embed-text:latest",
  "all-minilm:22m",
  "all-MiniLM-L6-v2",
  "mxbai-embed-large",
  "snowflake-arctic-embed2:568m",
  "bge-m3",
  "BAAI/bge-small-en",
  "qwen3-embedding:0.6b",
  "embeddinggemma:300m",
  "text-embedding-3-small",
  "intfloat/e5-mistral-7b-instruct",
  "hf.co/gte-large",
  "bge-reranker-v2",
])
  test(`${name} counts as an embedder by name, where the server reports nothing`, () => {
    for (const silent of [null, []]) assert.equal(kindOf(name, silent), "embedding");
  });

for (const name of [
  "qwen3:8b",
  "gpt-oss:20b",
  "gpt-4o",
  "llama3.1:8b",
  "gemma3n:e4b",
  "some/model",
  "minimax-m2",
])
  test(`${name} counts as a chat model`, () => {
    for (const silent of [null, []]) assert.equal(kindOf(name, silent), "chat");
  });

test("a model has few parameters according to the size in its name", () => {
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

test("the server's count decides only where the name has no size", () => {
  assert.equal(hasFewParameters("llama3.2", 3.2), true);
  assert.equal(hasFewParameters("mine", 4), true);
  assert.equal(hasFewParameters("mine", 4.3), false);
  assert.equal(hasFewParameters("qwen3:8b", 1.5), false);
  assert.equal(hasFewParameters("mine:1.5b", 70), true);
});

test("a count is given in billions like sizes; a count too small for a language model is ignored", () => {
  assert.deepEqual(
    [1_543_714_304, 4_022_468_096, 134_515_008, 30_532_122_624].map(billions),
    [1.5, 4, 0.1, 30.5],
  );
  assert.deepEqual([null, undefined, 0, 1000, 9_999_999].map(billions), [null, null, null, null, null]);
});

test("a window is small only where its size is known", () => {
  assert.equal(isSmallWindow({ tokens: 8192, known: true }), true);
  assert.equal(isSmallWindow({ tokens: 8192, known: false }), false);
  assert.equal(isSmallWindow({ tokens: 32_768, known: true }), false);
});

test("the user's setting takes precedence over a name and a server's count", () => {
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

const GiB = 2 ** 30;
const best = (machine: ModelMachine): string | undefined => fittingModels(machine)[0]?.name;

for (const [memory, cores, gpu, name] of [
  [3, 8, true, undefined],
  [4.5, 2, false, "qwen3:1.7b"],
  [6, 2, false, "qwen3:4b"],
  [12, 2, false, "qwen3:4b"],
  [12, 4, false, "qwen3:8b"],
  [12, 2, true, "qwen3:8b"],
  [18, 2, false, "gpt-oss:20b"],
  [24, 4, false, "qwen3-coder:30b"],
  [24, 1, false, "qwen3:1.7b"],
  [128, 64, true, "qwen3-coder:30b"],
] as const)
  test(`on ${memory} GiB and ${cores} processors${gpu ? " with a graphics card" : ""}, ${name ?? "nothing"} is offered first`, () => {
    assert.equal(best({ memory: memory * GiB, cores, gpu }), name);
  });

test("offered models fit the machine, and the estimated speed agrees with a measured one", () => {
  const machine = { memory: 64 * GiB, cores: 2, gpu: false };
  for (const choice of fittingModels(machine)) {
    assert.ok(choice.memory <= machine.memory);
    assert.ok(secondsToFirstWord(choice, machine) <= MAX_FIRST_SECONDS);
  }
  const measured = { name: "measured", download: 1.1e9, memory: 3 * GiB, active: 1.5 };
  assert.ok(Math.abs(1550 / secondsToFirstWord(measured, machine) - 35) < 1);
  assert.ok(Math.abs(tokensPerSecond(measured, machine) - 10) < 1);
});

test("every offered model calls tools, needs more memory than its download, and has a known size", () => {
  for (const { name, download, memory } of MODEL_CHOICES) {
    assert.ok(rowOf(name)?.tools === true, name);
    assert.ok(memory > download + GiB, name);
    assert.equal(downloadOf(name), download);
  }
  assert.equal(downloadOf("nomic-embed-text:latest"), downloadOf("nomic-embed-text"));
  assert.equal(downloadOf("own/coder:7b"), null);
});

/** The last cell of a model's row: its speed on this many processors without a graphics card. */
function paceOn(cores: number, choice: (typeof MODEL_CHOICES)[number]): string {
  const machine = { memory: 64 * GiB, cores, gpu: false };
  const seconds = secondsToFirstWord(choice, machine);
  const rate = tokensPerSecond(choice, machine);
  return seconds > MAX_FIRST_SECONDS
    ? "too slow"
    : `${seconds.toFixed(0)} s, ${rate.toFixed(rate < 10 ? 1 : 0)}`;
}

test("docs/models.md shows the offered models with their computed figures", () => {
  const shown = [
    ...textOf("docs/models.md").matchAll(/^\| `(\S+)` +\| ([\d.]+) GB +\| ([\d.]+) GiB +\| (.*?) +\|$/gm),
  ];
  assert.deepEqual(
    shown.map(([, ...cells]) => cells),
    MODEL_CHOICES.map((choice) => [
      choice.name,
      String(choice.download / 1e9),
      String(choice.memory / GiB),
      `${paceOn(2, choice)} / ${paceOn(8, choice)}`,
    ]),
  );
});
