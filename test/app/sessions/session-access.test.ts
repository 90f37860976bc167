import assert from "node:assert/strict";
import test from "node:test";
import { runId } from "../../../src/app/sessions/session-access.ts";
import type { Session, SessionRecord } from "../../../src/core/session.ts";

/** So many turns were told to their end, and this run was the last to say anything. */
const session = (ended: number, lastRun: string | undefined): Session => {
  const records = Array.from({ length: ended }, () => ({ kind: "turn" }) as SessionRecord);
  return { id: "abc", records: () => records, lastRun: () => lastRun } as unknown as Session;
};

test("every run has a unique number, even after a killed run that recorded no end", () => {
  assert.equal(runId(session(0, undefined)), "abc.1");
  assert.equal(runId(session(1, "abc.1")), "abc.2");
  assert.equal(runId(session(0, "abc.1")), "abc.2");
  assert.equal(runId(session(1, "abc.3")), "abc.4");
  // Of a fork: the records are copied, the log is not.
  assert.equal(runId(session(3, undefined)), "abc.4");
});
