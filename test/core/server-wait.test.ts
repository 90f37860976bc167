import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { parseRetryAfter, delayAfter, isBusy, RETRIES, SPREAD } from "../../src/core/server-wait.ts";

const passing = { passing: true, busy: false, retryAfterMs: null };

test("waits double up to a limit, with a random part from zero", () => {
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

test("retries stop after a limit, and when they cannot help", () => {
  assert.equal(
    delayAfter(RETRIES.attempts, passing, RETRIES, () => 0),
    null,
  );
  assert.equal(
    delayAfter(1, { ...passing, passing: false, retryAfterMs: 1 }, RETRIES, () => 0),
    null,
  );
});

test("a wait requested by the server is respected, or there is no retry", () => {
  fc.assert(
    fc.property(fc.double(), fc.double({ min: 0, max: 1, noNaN: true }), (retryAfterMs, random) => {
      const ms = delayAfter(1, { ...passing, retryAfterMs }, RETRIES, () => random);
      if (retryAfterMs > RETRIES.longestMs) assert.equal(ms, null);
      else assert.ok(ms !== null && ms >= Math.max(0, retryAfterMs || 0) && ms <= RETRIES.longestMs);
    }),
  );
});

test("with a busy server half of each wait is fixed, there are more retries, and they end", () => {
  const busy = { ...passing, busy: true };
  const shortest = [1, 2, 3, 4, 5, 6].map((failures) => delayAfter(failures, busy, RETRIES, () => 0));
  assert.deepEqual(shortest, [250, 500, 1000, 2000, 4000, 8000]);
  assert.equal(
    delayAfter(RETRIES.busyAttempts, busy, RETRIES, () => 0),
    null,
  );
  assert.equal(
    delayAfter(RETRIES.attempts, passing, RETRIES, () => 0),
    null,
  );
});

test("clients that are told to wait the same time do not return together", () => {
  const asked = { passing: true, busy: true, retryAfterMs: 20_000 };
  assert.deepEqual(
    [0, 0.5, 1].map((random) => delayAfter(1, asked, { ...RETRIES, spread: SPREAD }, () => random)),
    [20_000, 21_000, 22_000],
  );
});

const NOW = Date.parse("Tue, 24 Nov 2026 12:00:00 GMT");
const HEADERS: readonly (readonly [string | undefined, number | null])[] = [
  ["7", 7000],
  [" 7 ", 7000],
  ["1.5", 1500],
  ["0", 0],
  ["Tue, 24 Nov 2026 12:00:30 GMT", 30_000],
  ["Tuesday, 24-Nov-26 12:00:30 GMT", 30_000],
  ["Tue Nov 24 12:00:30 2026", 30_000],
  ["Tue, 24 Nov 2026 11:59:30 GMT", 0],
  ["Tue, 24 Nov 2027 12:00:00 GMT", 24 * 3_600_000],
  ["99999999999", 24 * 3_600_000],
  ["-3", null],
  ["soon", null],
  ["soon 7", null],
  ["Infinity", null],
  ["0x10", null],
  ["", null],
  [undefined, null],
];
for (const [header, ms] of HEADERS)
  test(`Retry-After: ${String(header)}`, () => assert.equal(parseRetryAfter(header, NOW), ms));

test("a Retry-After date is measured by the server's clock if the answer contains its time", () => {
  const until = "Tue, 24 Nov 2026 12:00:30 GMT";
  const date = "Tue, 24 Nov 2026 12:00:10 GMT";
  for (const here of [NOW - 5 * 3_600_000, NOW, NOW + 5 * 3_600_000])
    assert.deepEqual(
      [date, "Tuesday, 24-Nov-26 12:00:10 GMT"].map((told) => parseRetryAfter(until, here, told)),
      [20_000, 20_000],
    );
  for (const none of ["yesterday", "", null, undefined])
    assert.equal(parseRetryAfter(until, NOW, none), 30_000, String(none));
});

test("429, 503 and 529 mean a busy server, others do not", () =>
  assert.deepEqual([429, 503, 529, 500, 502, 504, 401].filter(isBusy), [429, 503, 529]));
