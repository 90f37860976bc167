import assert from "node:assert/strict";
import test from "node:test";
import { parseDuration } from "./duration.ts";

const CASES: readonly (readonly [string, number | undefined])[] = [
  ["90", 90],
  ["45s", 45],
  ["10m", 600],
  ["1h30m", 5400],
  ["1h5s", 3605],
  ["", undefined],
  ["m", undefined],
  ["1x", undefined],
  ["30m1h", undefined],
  ["-5", undefined],
];
for (const [text, seconds] of CASES) test(JSON.stringify(text), () => assert.equal(parseDuration(text), seconds));
