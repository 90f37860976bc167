import assert from "node:assert/strict";
import test from "node:test";
import { LazyBox } from "../../../src/app/run/lazy-box.ts";
import { BoxLost, EXIT, HarnessError } from "../../../src/core/errors.ts";
import type { OwnedBox } from "../../../src/core/ports.ts";

test("a lost box is replaced because of the type of the error, not its message", async () => {
  const lost = Promise.withResolvers<string>();
  const starts: OwnedBox[] = [];
  const start = (): Promise<OwnedBox> => {
    const box = {
      gone: starts.length === 0 ? lost.promise : new Promise<string>(() => undefined),
      mayFollow: () => true,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    } as unknown as OwnedBox;
    starts.push(box);
    return Promise.resolve(box);
  };
  await using box = new LazyBox(start, () => undefined);
  await box.box();
  lost.resolve("evicted");
  const said = "the box was lost: a program says so";
  assert.equal(await box.replacedAfter(new HarnessError(EXIT.sandbox, said)), undefined);
  assert.equal(starts.length, 1);
  assert.equal(await box.replacedAfter(new BoxLost("evicted", "start again")), "evicted");
  assert.equal(starts.length, 2);
});
