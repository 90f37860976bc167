import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { fc } from "../../fixtures/property.ts";
import { creditWindow } from "../../../src/boxes/runner/runner-feed.ts";
import { encodeFields } from "../../../src/boxes/runner/runner-frames.ts";

const credit = (bytes: number): Buffer => encodeFields([["n", bytes]]);

test("no more than the window is ever on its way, and all of it arrives", async () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(pieces, async (sizes) => {
      const window = creditWindow(100);
      const count = { underWay: 0, sent: 0 };
      const sending = (async () => {
        for (const size of sizes) {
          assert.equal(await window.take(size), true);
          count.underWay += size;
          count.sent += size;
          assert.ok(count.underWay <= 100);
        }
      })();
      const all = sizes.reduce((sum, size) => sum + size, 0);
      while (count.sent < all || count.underWay > 0) {
        await Promise.resolve();
        const taken = Math.min(count.underWay, 7);
        count.underWay -= taken;
        window.give(credit(taken));
        await turn();
      }
      await sending;
    }),
    { numRuns: 30 },
  );
});

test("who waits when it is stopped is told to give up, and everybody later", async () => {
  const window = creditWindow(10);
  assert.equal(await window.take(10), true);
  const waiting = window.take(1);
  window.stop();
  assert.deepEqual([await waiting, await window.take(1)], [false, false]);
  window.give(credit(5));
  assert.equal(await window.take(1), false);
});
