import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { PastInterrupt, recordedRequests } from "../../../src/app/sessions/recorded-conversation.ts";
import { ReplayedChat } from "../../../src/app/sessions/replay-run.ts";
import type { AgentEvent, EventBody } from "../../../src/core/events.ts";
import type { SessionRecord } from "../../../src/core/session.ts";
import { EVERY_EVENT } from "../../fixtures/events.ts";

const like = <T extends EventBody["type"]>(
  type: T,
  own: Partial<Extract<EventBody, { readonly type: T }>>,
): EventBody => ({ ...(EVERY_EVENT[type] as object), ...own, type }) as EventBody;

test("rolling back before a chat's first request is recorded in the session", async () => {
  const records: SessionRecord[] = [];
  const parts = { session: { append: (each: SessionRecord) => records.push(each) } };
  await using chat = new ReplayedChat(parts as unknown as ConstructorParameters<typeof ReplayedChat>[0]);
  chat.takeBack(2);
  chat.takeBack(0);
  assert.deepEqual(records, [{ kind: "rolled_back", to: 2 }, { kind: "cleared" }]);
});

test("a call that was cancelled after a hundred years according to the file is not ended at once", async () => {
  const call = { call: "c1", tool: "bash", args: { command: "sleep 9" } };
  const bodies = [
    like("run.started", { task: "wait" }),
    like("call.proposed", call),
    like("call.decided", { call: "c1", decision: "allow", runs: true, by: "policy" }),
    like("call.ended", { call: "c1", kind: "cancelled", text: "Cancelled.", ms: 3.2e12 }),
    like("run.finished", { status: "interrupted", exit_code: 130 }),
  ];
  const events: readonly AgentEvent[] = bodies.map((body, at) => ({ ...body, run: "s.1", seq: at + 1 }));
  const [request] = recordedRequests(events);
  assert.ok(request !== undefined);
  using past = new PastInterrupt(request);
  for (const event of events.slice(0, 3)) past.take(event);
  await sleep(50);
  assert.equal(past.signal.aborted, false);
});
