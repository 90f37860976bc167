import assert from "node:assert/strict";
import test from "node:test";

import { LazyBox } from "../../../src/app/run/lazy-box.ts";
import { BoxLost } from "../../../src/core/errors.ts";
import type { OwnedBox } from "../../../src/core/ports.ts";
import { until } from "../../fixtures/until.ts";

const checkpoints = { unchanged: (): never => assert.fail("nothing is compared") };

test("a cancelled run does not wait for a box that has not started", { timeout: 20_000 }, async () => {
  const never = Promise.withResolvers<never>();
  const box = new LazyBox(
    () => never.promise,
    () => undefined,
  );
  const opening = box.box();
  opening.catch(() => undefined);
  const outcome = await box.changes(checkpoints, AbortSignal.abort(), true);
  assert.deepEqual(outcome, { changes: null, handoff: [] });
  never.reject(new Error("it was ended"));
  await assert.rejects(opening, /it was ended/);
});

test(
  "a cancelled run does not wait for a replacement box, and reports what the lost one had returned",
  { timeout: 20_000 },
  async () => {
    const lost = Promise.withResolvers<string>();
    const never = Promise.withResolvers<never>();
    const first = {
      gone: lost.promise,
      mayFollow: () => true,
      home: { changes: () => [{ what: "added", kind: "file", mode: 0o644, path: "a.txt" }] },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    } as unknown as OwnedBox;
    let starts = 0;
    const box = new LazyBox(
      () => {
        starts += 1;
        return starts === 1 ? Promise.resolve(first) : never.promise;
      },
      () => undefined,
    );
    await box.box();
    lost.resolve("evicted");
    const following = box.replacedAfter(new BoxLost("evicted", "start again"));
    following.catch(() => undefined);
    await until(() => starts === 2);
    const { changes } = await box.changes(checkpoints, AbortSignal.abort(), true);
    assert.deepEqual([changes?.added, changes?.incomplete], [["a.txt"], true]);
    never.reject(new Error("it was ended"));
    await following.catch(() => undefined);
  },
);
