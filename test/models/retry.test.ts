import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { delayAfter, RETRIES } from "../../src/models/provider.ts";

const passing = { passing: true, retryAfterMs: null };

test("waits grow twofold up to a bound, and are anything from nothing on", () => {
  const longest = [1, 2, 3, 4].map((failures) => delayAfter(failures, passing, RETRIES, () => 1));
  assert.deepEqual(longest, [500, 1000, 2000, 4000]);
  assert.equal(
    delayAfter(4, passing, { ...RETRIES, capMs: 3000 }, () => 1),
    3000,
  );
  assert.equal(
    delayAfter(4, passing, RETRIES, () => 0),
    0,
  );
});

test("nothing is tried for ever, nor when it cannot help", () => {
  assert.equal(
    delayAfter(RETRIES.attempts, passing, RETRIES, () => 0),
    null,
  );
  assert.equal(
    delayAfter(1, { passing: false, retryAfterMs: 1 }, RETRIES, () => 0),
    null,
  );
});

test("what the server asks for is waited, or not at all", () => {
  fc.assert(
    fc.property(fc.double(), fc.double({ min: 0, max: 1, noNaN: true }), (retryAfterMs, random) => {
      const ms = delayAfter(1, { passing: true, retryAfterMs }, RETRIES, () => random);
      if (retryAfterMs > RETRIES.longestMs) assert.equal(ms, null);
      else assert.ok(ms !== null && ms >= Math.max(0, retryAfterMs || 0) && ms <= RETRIES.longestMs);
    }),
  );
});
