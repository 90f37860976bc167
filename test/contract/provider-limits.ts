import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProviderEvent } from "../../src/core/model-provider.ts";
import { answerFrom, failed, finished, type Talk } from "./provider-ask.ts";
import type { Add } from "./provider-suite.ts";

const HELLO = { type: "text", text: "Hello" } as const;
const pause = (ms: number) => ({ type: "pause", ms }) as const;

export function limitCases(add: Add): void {
  timeCases(add);
  sizeCases(add);
  cancelCases(add);
}

function timeCases(add: Add): void {
  add(
    "a slow first piece is waited for",
    { scenario: { replies: [{ parts: [pause(150), HELLO, pause(150), HELLO] }] } },
    async ({ ask }) => assert.equal(finished(await ask()).message.text, "HelloHello"),
  );

  add(
    "a missing first piece is a timeout",
    { scenario: { replies: [{ parts: [], ends: "silent" }] }, limits: { firstMs: 2000 } },
    async ({ ask, opened }) => {
      const { failure } = failed(await ask());
      assert.equal(failure.kind, "timeout");
      assert.notEqual(failure.remedy, "");
      assert.equal(opened.asked().length, 1);
      await opened.left;
    },
  );

  add(
    "a stalled stream is a timeout",
    { scenario: { replies: [{ parts: [HELLO], ends: "silent" }] }, limits: { idleMs: 500 } },
    async ({ ask, opened }) => {
      const answer = await ask();
      assert.deepEqual([failed(answer).failure.kind, answer.text], ["timeout", "Hello"]);
      await opened.left;
    },
  );
}

function sizeCases(add: Add): void {
  const bounds = { characters: 64 * 1024, events: 2000 };
  add(
    "an endless reply is cut off and is a failure",
    {
      scenario: { replies: [{ parts: [{ type: "text", text: "more and " }], ends: "endless" }] },
      limits: bounds,
    },
    async ({ ask, opened }) => {
      const answer = await ask();
      assert.equal(failed(answer).failure.kind, "cut");
      assert.ok(answer.text.length > 1000 && answer.text.length <= bounds.characters);
      await opened.left;
    },
  );

  add(
    "an endless reply with only thinking is empty",
    {
      scenario: { replies: [{ parts: [{ type: "thinking", text: "more and " }], ends: "endless" }] },
      limits: bounds,
      needs: "thinking",
    },
    async ({ ask }) => assert.equal(failed(await ask()).failure.kind, "empty"),
  );
}

function cancelCases(add: Add): void {
  add(
    "a request cancelled beforehand is never sent",
    { scenario: { replies: [{ parts: [HELLO] }] } },
    async ({ ask, opened }) => {
      const { failure, usage } = failed(await ask({}, AbortSignal.abort()));
      assert.deepEqual([failure.kind, usage.requests, opened.asked().length], ["cancelled", 0, 0]);
    },
  );

  add(
    "cancelling a running stream ends it at once and closes the connection",
    { scenario: { replies: [{ parts: [HELLO], ends: "silent" }] } },
    async (talk) => {
      const answer = await cancelled(talk, ({ type }) => type === "text");
      assert.deepEqual([failed(answer).failure.kind, answer.text], ["cancelled", "Hello"]);
      await talk.opened.left;
    },
  );

  add(
    "cancelling before the first piece ends the request at once",
    { scenario: { replies: [{ parts: [], ends: "silent" }] } },
    async (talk) => {
      const abort = new AbortController();
      void requestArrived(talk).then(() => abort.abort());
      const events: ProviderEvent[] = [];
      for await (const event of talk.stream(abort.signal)) events.push(event);
      assert.equal(failed(answerFrom(events)).failure.kind, "cancelled");
      await talk.opened.left;
    },
  );

  add(
    "cancelling while waiting for a retry ends the request at once",
    { scenario: { replies: [{ refuses: "server" }] } },
    async (talk) => {
      const answer = await cancelled(talk, ({ type }) => type === "waiting");
      assert.equal(failed(answer).failure.kind, "cancelled");
      assert.equal(talk.opened.asked().length, 1);
    },
  );
}

/** Resolves when the server has the request: a client that leaves earlier was never seen and never counts as gone. */
async function requestArrived({ opened }: Talk): Promise<void> {
  while (opened.asked().length === 0) await sleep(5);
}

/** Cancels at the first such event; otherwise the silence would end as a timeout. */
async function cancelled(talk: Talk, at: (event: ProviderEvent) => boolean) {
  const abort = new AbortController();
  const events: ProviderEvent[] = [];
  for await (const event of talk.stream(abort.signal)) {
    events.push(event);
    if (at(event)) abort.abort();
  }
  return answerFrom(events);
}
