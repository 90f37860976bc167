import assert from "node:assert/strict";
import test from "node:test";
import { type ParkedBox, parkedText, readParked } from "../../../src/docker/isolation/parked-record.ts";
import { fc, many } from "../../fixtures/property.ts";
import type { KeptJob } from "../../../src/boxes/jobs.ts";

const bytes = (text: string): string => Buffer.from(text).toString("base64");

const JOB: KeptJob = {
  name: "main/j1",
  noted: '{"begun":1}',
  folder: "/w",
  call: 3,
  ms: 12.5,
  why: null,
  stdout: { head: bytes("é\0"), tail: "" },
  stderr: { head: "", tail: bytes("x") },
  errors: bytes("x"),
  result: null,
};

const BOX: ParkedBox = {
  container: "ab".repeat(32),
  labels: { "dev.harness.uid": "7" },
  volume: null,
  named: true,
  network: null,
  files: [{ path: "/w/é", dev: "1", ino: "18446744073709551615", born: "0" }],
  runner: { key: Buffer.alloc(32, 5), next: 9, asks: [{ call: 2, payload: Buffer.from([0, 255]) }] },
  jobs: [
    JOB,
    {
      ...JOB,
      name: "main/j2",
      why: "cancelled",
      result: {
        exit_code: 137,
        cause: "user",
        reason: "cancelled",
        duration_ms: 1,
        timed_out: false,
        killed: true,
        leftovers: 0,
        blocked: ["a"],
        quarantined: [{ from: "a", to: null, takeBack: "" }],
        peak: { memory_bytes: 1, pids: 2 },
        stdout: { total: 3, lost: 0 },
        stderr: { total: 1, lost: 0 },
      },
    },
  ],
};

test("a parked box is read back as it was written", () => {
  assert.deepEqual(readParked(parkedText(BOX)), BOX);
});

test("one that was changed anywhere is none", () => {
  const text = parkedText(BOX);
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom("0", "a", "}", '"', " ", ","), (at, by) => {
      const changed = text.slice(0, at) + by + text.slice(at + 1);
      const read = readParked(changed);
      // White space alone says nothing.
      if (changed !== text) assert.deepEqual(read, JSON.stringify(safe(changed)) === text ? BOX : undefined);
    }),
    { numRuns: many(600) },
  );
  for (const none of ["", "{}", "null", text.slice(1), `${text}x`]) assert.equal(readParked(none), undefined);
});

function safe(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
