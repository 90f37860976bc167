import assert from "node:assert/strict";
import test from "node:test";
import type { AuditEntry } from "../../src/core/session.ts";
import type { EventBody } from "../../src/core/events.ts";
import { AuditTrail } from "../../src/sessions/audit-trail.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";

const ABOUT = {
  settings: { mode: { value: "workspace-write", origin: "--mode" } },
  versions: { harness: "1.0.0" },
};

/** The lines of these events; empty writes are left out. */
function linesOf(bodies: readonly EventBody[], agent?: string): readonly AuditEntry[] {
  const lines: AuditEntry[] = [];
  const audit = {
    write: (entries: readonly AuditEntry[]) => void lines.push(...entries),
    verify: () => assert.fail(),
  };
  const trail = new AuditTrail(audit, ABOUT);
  for (const event of stamped(bodies, agent)) trail.take(event);
  return lines;
}

const { "run.started": started, "call.proposed": proposed, "call.decided": decided } = EVERY_EVENT;
const ended = EVERY_EVENT["call.ended"];

test("every event leaves what may need checking later, in order", () => {
  assert.deepEqual(
    linesOf(Object.values(EVERY_EVENT)).map(({ kind }) => kind),
    [
      "run.started",
      "task",
      "plan",
      "box.ready",
      "model.failed",
      "decision",
      "call.started",
      "call.edited",
      "call.parked",
      "approval",
      "call.ended",
      "check.started",
      "check.ended",
      "connection",
      "canary",
      "hook",
      "notice",
      "compaction",
      "rolled_back",
      "files.undone",
      "run.finished",
      "closed",
    ],
  );
});

test("a run begins with its settings and their origins", () => {
  const [line] = linesOf([started]);
  assert.deepEqual([line?.["settings"], line?.["versions"]], [ABOUT.settings, ABOUT.versions]);
});

test("a decision names what was judged and where, the verdict and who gave it", () => {
  const [, decision, start] = linesOf([started, { ...proposed, tool: "bash" }, decided], "a1");
  assert.deepEqual(decision, {
    kind: "decision",
    command: "npm test",
    folder: "/code/shop",
    call: "c1",
    tool: "bash",
    decision: "ask",
    contained: true,
    rules: decided.rules,
    runs: true,
    by: "contained",
    mode: "workspace-write",
    workspace: "/code/shop",
    reads: [],
    writes: [],
    hosts: [],
    run: "r1",
    seq: 2,
    agent: "a1",
  });
  assert.deepEqual(start, { kind: "call.started", call: "c1", tool: "bash", run: "r1", seq: 2, agent: "a1" });
});

test("a refused call is decided and never started", () => {
  const lines = linesOf([started, proposed, { ...decided, runs: false, by: "nobody" }]);
  assert.deepEqual(
    lines.map(({ kind, by }) => [kind, by]),
    [
      ["run.started", undefined],
      ["decision", "nobody"],
    ],
  );
});

test("a call that wrote names its files, and one with refused connections its hosts", () => {
  const judged = { commands: [], reads: [], writes: ["/code/shop/a"], hosts: ["example.com"] };
  const begun = [started, proposed, { ...decided, judged }];
  const wrote = linesOf([...begun, { ...ended, kind: "ok", cause: null }]).at(-1);
  assert.deepEqual([wrote?.kind, wrote?.["paths"]], ["files.written", ["/code/shop/a"]]);
  const blocked = linesOf([...begun, { ...ended, kind: "failed", cause: "network" }]).at(-1);
  assert.deepEqual([blocked?.kind, blocked?.["hosts"]], ["connection.blocked", ["example.com"]]);
  assert.equal(linesOf([...begun, ended]).at(-1)?.kind, "call.ended", "neither files nor hosts");
});

test("text for the model is recorded as a hash, and the answer not at all", () => {
  const text = JSON.stringify(linesOf(Object.values(EVERY_EVENT)));
  assert.ok(!text.includes("1 test failed") && text.includes("text_sha256"));
  assert.ok(!text.includes("The loop began too late."));
});
