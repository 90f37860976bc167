import assert from "node:assert/strict";
import test from "node:test";
import { boundJobs, thisMachine } from "../../../src/app/batch/batch-run.ts";

const GiB = 2 ** 30;
const BOX = { memory: 2 * GiB, cpus: null, servesModel: false };
const LARGE = { memory: 64 * GiB, processors: 16 };

test("the requested number of rows runs in parallel where the machine has room, without a note", () => {
  assert.deepEqual(boundJobs(4, BOX, LARGE), { jobs: 4 });
  assert.deepEqual(boundJobs(1, BOX, { memory: GiB / 2, processors: 1 }), { jobs: 1 });
});

for (const [wanted, by, machine, jobs, why] of [
  [
    8,
    BOX,
    { memory: 10 * GiB, processors: 16 },
    4,
    /lowered to 4: 10\S* ?GiB of memory is free, and a box may take 2/,
  ],
  [8, { ...BOX, memory: 8 * GiB }, { memory: 10 * GiB, processors: 16 }, 1, /memory/],
  [8, { ...BOX, memory: 8 * GiB }, { memory: GiB, processors: 16 }, 1, /memory/],
  [8, BOX, { ...LARGE, processors: 2 }, 4, /2 processors, for 2 runs each/],
  [8, BOX, { ...LARGE, processors: 1 }, 2, /there is 1 processor/],
  [40, { ...BOX, cpus: 4 }, { ...LARGE, memory: 900 * GiB }, 8, /16 processors/],
  [
    8,
    { ...BOX, servesModel: true },
    { ...LARGE, processors: 2 },
    3,
    /counting the model server on this machine as one run/,
  ],
  [8, { ...BOX, servesModel: true }, { memory: 10 * GiB, processors: 16 }, 3, /memory.*as one run/],
] as const)
  test(`--jobs ${wanted} on ${machine.processors} processors with ${machine.memory / GiB} GiB is ${jobs}`, () => {
    const bound = boundJobs(wanted, by, machine);
    assert.equal(bound.jobs, jobs);
    assert.match(bound.why ?? "", why);
  });

test("the memory and processors of this machine are known", () => {
  const { memory, processors } = thisMachine();
  assert.ok(memory > 0 && processors >= 1);
});
