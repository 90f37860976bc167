import assert from "node:assert/strict";
import test from "node:test";
import { boxChanges, lazyBox } from "../../../src/app/run/lazy-box.ts";

const checkpoints = { unchanged: (): never => assert.fail("nothing is compared") };

test(
  "a cancelled run waits for no box that is not there yet: nothing has run in it",
  { timeout: 20_000 },
  async () => {
    const never = Promise.withResolvers<never>();
    const box = lazyBox(
      () => never.promise,
      () => undefined,
    );
    const opening = box.box();
    opening.catch(() => undefined);
    const outcome = await boxChanges(box, checkpoints, AbortSignal.abort(), true);
    assert.deepEqual(outcome, { changes: null, handoff: [] });
    never.reject(new Error("it was ended"));
    await assert.rejects(opening, /it was ended/);
  },
);
