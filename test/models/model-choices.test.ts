import assert from "node:assert/strict";
import test from "node:test";
import {
  downloadOf,
  fittingModels,
  LONGEST_FIRST_SECONDS,
  MODEL_CHOICES,
  type ModelMachine,
  secondsToFirstWord,
  tokensPerSecond,
} from "../../src/models/model-kinds.ts";
import { rowOf } from "../../src/models/capabilities.ts";
import { textOf } from "../house/docs-lines.ts";

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
  test(`${memory} GiB and ${cores} processors${gpu ? " beside a graphics card" : ""} are offered ${name ?? "nothing"} first`, () => {
    assert.equal(best({ memory: memory * GiB, cores, gpu }), name);
  });

test("what is offered fits, and no rate is promised that the measured one does not give", () => {
  const machine = { memory: 64 * GiB, cores: 2, gpu: false };
  for (const choice of fittingModels(machine)) {
    assert.ok(choice.memory <= machine.memory);
    assert.ok(secondsToFirstWord(choice, machine) <= LONGEST_FIRST_SECONDS);
  }
  const measured = { name: "measured", download: 1.1e9, memory: 3 * GiB, active: 1.5 };
  assert.ok(Math.abs(1550 / secondsToFirstWord(measured, machine) - 35) < 1);
  assert.ok(Math.abs(tokensPerSecond(measured, machine) - 10) < 1);
});

test("every model of the list is one that calls tools, loads less than it takes, and is known by its size", () => {
  for (const { name, download, memory } of MODEL_CHOICES) {
    assert.ok(rowOf(name)?.tools === true, name);
    assert.ok(memory > download + GiB, name);
    assert.equal(downloadOf(name), download);
  }
  assert.equal(downloadOf("nomic-embed-text:latest"), downloadOf("nomic-embed-text"));
  assert.equal(downloadOf("own/coder:7b"), null);
});

/** The last cell of a model's row: what it takes on so many processors alone. */
function paceOn(cores: number, choice: (typeof MODEL_CHOICES)[number]): string {
  const machine = { memory: 64 * GiB, cores, gpu: false };
  const seconds = secondsToFirstWord(choice, machine);
  const rate = tokensPerSecond(choice, machine);
  return seconds > LONGEST_FIRST_SECONDS
    ? "too slow"
    : `${seconds.toFixed(0)} s, ${rate.toFixed(rate < 10 ? 1 : 0)}`;
}

test("docs/models.md shows the models that are offered, with what is reckoned for them", () => {
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
