import assert from "node:assert/strict";
import test from "node:test";
import { runAgain, type Running, type RunStep, runSteps } from "../../../src/app/vet/run-steps.ts";
import type { PlannedStep } from "../../../src/vet/step-plan.ts";

/** A box that none of this reaches. */
const running = {} as Running;

const step = (command: string, duration_ms: number, what = "test", touched: string | null = null): RunStep =>
  ({ step: { what, duration_ms, observed: { touched } }, planned: { command } }) as unknown as RunStep;

test("commands too slow for a second run are named, except given ones and ones that ended at a canary", async () => {
  const ran = [
    step("npm install", 15_000),
    step("make", 90_000, "build"),
    step("./mine", 60_000, "given"),
    step("./thief", 60_000, "test", "/home/box/.ssh/id_rsa"),
  ];
  const first = { ran, notRun: [] };
  const again = await runAgain(
    running,
    { first, number: 4, clock: Promise.resolve(true) },
    new AbortController().signal,
  );
  assert.deepEqual(again, {
    ran: [],
    notRun: [
      "npm install was not run a second time, as if in CI and on another date: it took 15.0 s",
      "make was not run a second time, as if in CI and on another date: it took 1 min 30 s",
    ],
  });
});

test("progress counts every command as done at the end, including those that could not run", async () => {
  const told: unknown[] = [];
  const box = {
    exec: () => Promise.resolve({ stdout: { head: new Uint8Array() } }),
    changes: () => Promise.resolve({ all: [] }),
  };
  const bare = { box, until: Infinity, onProgress: (far: unknown) => told.push(far) } as unknown as Running;
  const plan = ["cargo build", "cargo test"].map(
    (command) => ({ command, needs: ["cargo"] }) as unknown as PlannedStep,
  );
  const { notRun } = await runSteps(bare, plan, new AbortController().signal);
  assert.equal(notRun.length, 2);
  assert.deepEqual(told.at(-1), { done: 2, total: 2, unit: "commands", steady: false });
});
