import assert from "node:assert/strict";
import test from "node:test";
import { whereChangesAre } from "../../../src/app/run/event-sink.ts";
import { memorySteps } from "../../fakes/steps.ts";

const CHANGES = { added: ["a"], modified: [], deleted: [], ignored: 0 };
const NONE = { call: null, turn: null, before: null, target: null };

for (const [name, kinds, said] of [
  ["with checkpoints", ["call"], "harness diff s shows them, harness undo s takes them back"],
  ["without any checkpoint", ["lost"], "no checkpoint could be saved, so harness cannot undo them"],
  [
    "whose checkpoints ended midway",
    ["call", "lost"],
    "harness undo s takes back only those before the point from which no checkpoint could be saved",
  ],
] as const)
  test(`a failed run ${name} promises no more than undo can do`, () => {
    const steps = memorySteps();
    for (const kind of kinds) steps.begin({ ...NONE, kind });
    const at = {
      flags: {},
      settings: { isolation: "bind" },
      session: { id: "s", steps },
      workspace: "/w",
    } as const;
    assert.equal(whereChangesAre(at, CHANGES), `its changes so far are in /w: ${said}`);
  });
