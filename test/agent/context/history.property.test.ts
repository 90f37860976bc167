import assert from "node:assert/strict";
import test from "node:test";
import type { Message } from "../../../src/core/model-provider.ts";
import type { SessionRecord } from "../../../src/core/session.ts";
import { History, openCalls } from "../../../src/agent/context/history.ts";
import { fc } from "../../fixtures/property.ts";

type Step =
  | { readonly kind: "ask" }
  | { readonly kind: "undo" }
  | { readonly kind: "clear" }
  | { readonly kind: "result" }
  | { readonly kind: "pin" }
  | { readonly kind: "reply"; readonly calls: number }
  | { readonly kind: "back"; readonly to: number }
  | { readonly kind: "compact"; readonly keep: number; readonly prune: number };

/** Doubles would nearly all be tiny. */
const part = fc.nat(1000).map((thousandths) => thousandths / 1000);
const bare = (kind: "ask" | "undo" | "clear" | "result" | "pin"): fc.Arbitrary<Step> => fc.constant({ kind });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: bare("result") },
  { weight: 3, arbitrary: bare("ask") },
  { weight: 1, arbitrary: fc.oneof(bare("undo"), bare("clear"), bare("pin")) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("reply"), calls: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("back"), to: part }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("compact"), keep: part, prune: part }) },
);
const steps = fc.array(step, { maxLength: 60, size: "max" });

/** Does a step; texts are never the same twice. */
function take(history: History, step: Step, at: number): void {
  const { count, compaction } = history;
  switch (step.kind) {
    case "pin":
      return history.pin(`pin ${at}`);
    case "ask":
      return history.add({ role: "user", text: `ask ${at}` });
    case "undo":
      return void history.undo();
    case "clear":
      return history.clear();
    case "back":
      return history.rollBack(Math.floor(step.to * (count + 1)));
    case "result": {
      const [call] = openCalls(history.messages);
      const text = `${at} ${"x".repeat((at % 2) * 500)}`;
      return call === undefined ? undefined : history.add({ role: "tool", call: call.id, text });
    }
    case "reply": {
      const calls = Array.from({ length: step.calls }, (_, n) => ({
        id: `${at}.${n}`,
        name: "bash",
        args: {},
      }));
      return history.add({ role: "assistant", text: `reply ${at}`, calls });
    }
    case "compact":
      return history.compact({
        at: count,
        keepFrom: Math.max(compaction?.keepFrom ?? 0, Math.floor(step.keep * count)),
        pruneBefore: Math.max(compaction?.pruneBefore ?? 0, Math.floor(step.prune * count)),
        artifact: `artifact ${at}`,
      });
  }
}

const walk = (
  taken: readonly Step[],
  check: (history: History, step: Step, records: readonly SessionRecord[]) => void,
): void => {
  const records: SessionRecord[] = [];
  const history = new History((record) => void records.push(record));
  history.pin("the prompt");
  for (const [at, step] of taken.entries()) {
    take(history, step, at);
    check(history, step, records);
  }
};

test("the system prompt is always shown first and only once", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      walk(taken, (history) => {
        const [first, ...others] = history.view();
        assert.deepEqual(first, { role: "system", text: "the prompt" });
        assert.ok(others.every(({ role }) => role !== "system"));
      });
    }),
  );
});

function assertPaired(view: readonly Message[], open: readonly string[]): void {
  let waiting: string[] = [];
  for (const message of view) {
    if (message.role === "tool") {
      assert.ok(waiting.includes(message.call), `no call of ${message.call}`);
      waiting = waiting.filter((id) => id !== message.call);
    } else {
      assert.deepEqual(waiting, [], "calls without their results");
      if (message.role === "assistant") waiting = message.calls.map(({ id }) => id);
    }
  }
  assert.deepEqual(waiting, open);
}

test("every result is shown with its call, and every call with its result unless it still waits", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      walk(taken, (history) =>
        assertPaired(
          history.view(),
          openCalls(history.messages).map(({ id }) => id),
        ),
      );
    }),
  );
});

test("rolling back to a count restores the exact view and transcript of that time, and the right count", () => {
  let compared = 0;
  fc.assert(
    fc.property(steps, (taken) => {
      const seen = new Map<number, string>([[0, JSON.stringify([{ role: "system", text: "the prompt" }])]]);
      walk(taken, (history, { kind }) => {
        const now = JSON.stringify([...history.view()]);
        const before = seen.get(history.count);
        if ((kind === "back" || kind === "undo") && before !== undefined) {
          assert.equal(now, before);
          compared += 1;
        }
        assert.equal(history.count, history.messages.length);
        if (kind === "clear") seen.clear();
        for (const count of seen.keys()) if (count > history.count) seen.delete(count);
        seen.set(history.count, now);
      });
    }),
  );
  assert.ok(compared > 100, `${compared} were compared`);
});

test("between compactions a view only grows at the end", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      let before: readonly Message[] = [];
      walk(taken, (history, { kind }) => {
        const now = history.view();
        if (kind === "ask" || kind === "reply" || kind === "result")
          assert.deepEqual(now.slice(0, before.length), before);
        before = now;
      });
    }),
  );
});

test("replaying the records restores the same view and count, and repairs only open calls", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      walk(taken, (history, _, records) => {
        const open = openCalls(history.messages).length;
        const repairs: SessionRecord[] = [];
        const again = History.from(records, (record) => void repairs.push(record));
        assert.equal(repairs.length, open);
        assert.equal(again.count, history.count + open);
        assert.deepEqual(again.messages.slice(0, history.count), history.messages);
        assert.deepEqual(again.view().slice(0, history.view().length), history.view());
        assert.deepEqual([again.compaction, again.pinned], [history.compaction, history.pinned]);
      });
    }),
  );
});
