import assert from "node:assert/strict";
import test from "node:test";
import type { Message, ModelFailure } from "../../../src/core/model-provider.ts";
import type { SessionRecord } from "../../../src/core/session.ts";
import { Compactor } from "../../../src/agent/context/compaction.ts";
import { History } from "../../../src/agent/context/history.ts";
import { fc } from "../../fixtures/property.ts";

const never = new AbortController().signal;
const WINDOW = 4000;
const FAILED: ModelFailure = { kind: "server", reason: "fell over", remedy: "" };

const tokens = (messages: readonly Message[]): number =>
  messages.reduce((sum, message) => sum + Math.ceil(JSON.stringify(message).length / 4), 300);

const reply = fc.oneof(
  { weight: 3, arbitrary: fc.constant<string | ModelFailure>('{"goal": "g", "decisions": ["d"]}') },
  { weight: 1, arbitrary: fc.constantFrom<string | ModelFailure>("", "{}", FAILED, "long ".repeat(2000)) },
);
const turn = fc.record({
  request: fc.nat(2000),
  work: fc.array(fc.array(fc.nat(6000), { maxLength: 3 }), { maxLength: 4 }),
  reply,
});
const session = fc.record({ known: fc.boolean(), turns: fc.array(turn, { maxLength: 12, size: "max" }) });

function assertPaired(messages: readonly Message[]): void {
  let waiting: readonly string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      assert.ok(waiting.includes(message.call), "a result without its call");
      waiting = waiting.filter((id) => id !== message.call);
    } else {
      assert.deepEqual(waiting, [], "a call without its result");
      if (message.role === "assistant") waiting = message.calls.map(({ id }) => id);
    }
  }
  assert.deepEqual(waiting, []);
}

test("compaction never deletes messages, separates a call from its result or exceeds a known window", async () => {
  let [summaries, tooLong] = [0, 0];
  await fc.assert(
    fc.asyncProperty(session, async ({ known, turns }) => {
      const records: SessionRecord[] = [];
      const history = new History((record) => void records.push(record));
      history.pin("the prompt");
      let answer: string | ModelFailure = "";
      let asked = 0;
      const summarise = (messages: readonly Message[]): Promise<string | ModelFailure> => {
        assertPaired(messages);
        assert.ok(tokens(messages) <= WINDOW);
        asked += 1;
        return Promise.resolve(answer);
      };
      const compactor = new Compactor(history, {
        window: WINDOW,
        known,
        tokens,
        summarise,
        now: () => 0,
        emit: () => undefined,
      });
      const request = async (): Promise<void> => {
        const [before, messages, seen] = [records.length, [...history.messages], [...history.view()]];
        asked = 0;
        const fitted = await compactor.fit(never);
        assert.deepEqual(history.messages, messages);
        assert.ok(records.slice(before).every(({ kind }) => kind === "compacted"));
        if (records.length === before) assert.deepEqual(history.view(), seen);
        assertPaired(history.view());
        const fits = tokens(history.view()) <= WINDOW;
        assert.equal(fitted.kind, fits || !known ? "fits" : "too_long");
        assert.ok(asked <= 8);
        if (typeof answer === "string" && answer.length > 10) summaries += asked;
        if (fitted.kind === "too_long") tooLong += 1;
      };
      for (const [at, { request: size, work, reply }] of turns.entries()) {
        answer = reply;
        history.add({ role: "user", text: `${at} ${"u".repeat(size)}` });
        await request();
        for (const [nth, sizes] of work.entries()) {
          const calls = sizes.map((_, n) => ({ id: `${at}.${nth}.${n}`, name: "bash", args: {} }));
          history.add({ role: "assistant", text: "", calls });
          for (const [n, { id }] of calls.entries())
            history.add({ role: "tool", call: id, text: "r".repeat(sizes[n] ?? 0) });
          await request();
        }
      }
      assert.deepEqual(History.from(records, () => assert.fail("a repair")).view(), history.view());
    }),
  );
  assert.ok(summaries > 50, `${summaries} summaries`);
  assert.ok(tooLong < summaries, `${tooLong} too long`);
});
