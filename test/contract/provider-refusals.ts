import assert from "node:assert/strict";
import type { FailureKind } from "../../src/core/model-provider.ts";
import { failed, finished } from "./provider-ask.ts";
import { KEY, type Refused } from "./provider-server.ts";
import type { Add } from "./provider-suite.ts";

const GOOD = { parts: [{ type: "text", text: "Hello" }] } as const;

/** Failures before a reply began. */
export function refusalCases(add: Add): void {
  add(
    "a busy server is asked again at the time it names",
    { scenario: { replies: [{ refuses: "rate_limited", retryAfter: 7 }, GOOD] } },
    async ({ ask }) => {
      const answer = await ask();
      assert.equal(finished(answer).message.text, "Hello");
      assert.deepEqual(
        answer.waits.map(({ ms, attempt }) => ({ ms, attempt })),
        [{ ms: 7000, attempt: 2 }],
      );
      assert.notEqual(answer.waits[0]?.reason, "");
    },
  );

  add(
    "a server that asks for a wait of an hour is given up",
    { scenario: { replies: [{ refuses: "rate_limited", retryAfter: 3600 }] } },
    async ({ ask, opened }) => {
      const { failure } = failed(await ask());
      assert.equal(failure.kind, "rate_limited");
      assert.notEqual(failure.remedy, "");
      assert.equal(opened.asked().length, 1);
    },
  );

  add(
    "a server that fails once is retried",
    { scenario: { replies: [{ refuses: "server" }, GOOD] } },
    async ({ ask }) => {
      const answer = await ask();
      assert.equal(finished(answer).message.text, "Hello");
      assert.equal(answer.waits.length, 1);
    },
  );

  add(
    "a server that keeps failing is given up",
    { scenario: { replies: [{ refuses: "server", says: "no luck today" }] } },
    async ({ ask, opened }) => {
      const { failure, usage } = failed(await ask());
      assert.equal(failure.kind, "server");
      assert.match(failure.reason, /no luck today/);
      assert.ok(opened.asked().length > 1 && opened.asked().length <= 6);
      assert.equal(usage.requests, opened.asked().length);
    },
  );

  const once = (sentence: string, refused: Refused, kind: FailureKind): void =>
    add(sentence, { scenario: { replies: [refused] } }, async ({ ask, opened }) => {
      const { failure } = failed(await ask());
      assert.equal(failure.kind, kind);
      assert.notEqual(failure.remedy, "");
      assert.equal(opened.asked().length, 1);
    });
  once("a wrong key is reported without showing it", { refuses: "unauthorised", says: KEY }, "unauthorised");
  once("a missing model is reported", { refuses: "no_model" }, "no_model");
  once("a prompt that is too long is reported", { refuses: "too_long" }, "too_long");

  add(
    "an error in place of a reply is a failure, whatever the status",
    { scenario: { replies: [{ refuses: "error_in_200", says: "the llama fell over" }] } },
    async ({ ask }) => {
      const { failure } = failed(await ask());
      assert.equal(failure.kind, "server");
      assert.match(failure.reason, /the llama fell over/);
    },
  );

  add(
    "an unreachable address is reported",
    { scenario: { replies: [{ refuses: "unreachable" }] } },
    async ({ ask }) => {
      const { failure } = failed(await ask());
      assert.equal(failure.kind, "unreachable");
      assert.notEqual(failure.remedy, "");
    },
  );
}
