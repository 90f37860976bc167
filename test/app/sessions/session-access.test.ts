import assert from "node:assert/strict";
import test from "node:test";
import { diffOfSession } from "../../../src/app/sessions/checkpoint-access.ts";
import type { Host } from "../../../src/app/host.ts";
import { scratch } from "../../fixtures/scratch.ts";
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

test("a session whose checkpoints are gone is not said to have changed nothing", async () => {
  await using place = await scratch();
  const host = { places: { state: place.at("state") } } as unknown as Host;
  const of = (all: readonly unknown[]): Session =>
    ({
      id: "abc",
      info: () => ({ workspace: place.at("work") }),
      steps: { all: () => all },
    }) as unknown as Session;
  assert.deepEqual((await diffOfSession(host, of([]), 0)).files, []);
  await assert.rejects(diffOfSession(host, of([{ step: 1, kind: "call" }]), 0), /checkpoints .* are gone/);
});
