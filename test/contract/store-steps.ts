import assert from "node:assert/strict";
import { ABOUT } from "./store-words.ts";
import type { Add } from "./store-suite.ts";

const CALL = { kind: "call", call: "c1", turn: 2, before: "s.1", target: null } as const;

export function stepCases(add: Add): void {
  add("steps are returned in order, separately for each session", ({ store }) => {
    const [one, two] = [store.create(ABOUT), store.create(ABOUT)];
    const lost = { kind: "lost", call: null, turn: null, before: null, target: null } as const;
    assert.deepEqual([one.steps.begin(CALL), one.steps.begin(lost), two.steps.begin(CALL)], [1, 2, 1]);
    const known = store.open(one.id).steps.all();
    assert.deepEqual(
      known.map(({ step, kind, call, turn, before, after }) => [step, kind, call, turn, before, after]),
      [
        [1, "call", "c1", 2, "s.1", null],
        [2, "lost", null, null, null, null],
      ],
    );
  });

  add("a finished step states the states before and after it", ({ store }) => {
    const { steps } = store.create(ABOUT);
    const step = steps.begin(CALL);
    steps.begin({ ...CALL, kind: "undo", target: 0 });
    steps.end(step, { before: "s.2", after: "s.3" });
    assert.deepEqual(
      steps.all().map(({ before, after, target }) => [before, after, target]),
      [
        ["s.2", "s.3", null],
        ["s.1", null, 0],
      ],
    );
  });

  add("parallel steps record which ended first, even at the same moment", ({ store }) => {
    const { steps } = store.create(ABOUT);
    const [one, two, three] = [steps.begin(CALL), steps.begin(CALL), steps.begin(CALL)];
    for (const step of [two, one]) steps.end(step, { before: "s.1", after: "s.2" });
    const [first, second, third] = steps.all();
    assert.ok((second?.ended ?? 0) < (first?.ended ?? 0));
    assert.deepEqual([third?.step, third?.ended], [three, null]);
  });
}
