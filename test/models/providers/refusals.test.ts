import assert from "node:assert/strict";
import test from "node:test";
import { BODIES } from "./refusal-bodies.ts";
import { failureOf, refusalIn, type RequestContext } from "../../../src/models/providers/api-refusals.ts";

const ASKED: RequestContext = {
  url: "http://127.0.0.1:1/v1/chat/completions",
  model: "m",
  key: "sk-secret-1234",
  keyName: "OPENAI_API_KEY",
  tools: true,
};

for (const [sentence, status, body, wanted] of BODIES)
  test(`refusals: ${sentence}`, () => {
    const refusal = refusalIn(body, status);
    assert.ok(refusal !== undefined);
    const { kind, passing, refusesTools, raw, remedy } = failureOf(refusal, ASKED);
    assert.deepEqual(
      { kind, passing, refusesTools, raw },
      { passing: false, refusesTools: false, raw: null, ...wanted },
    );
    assert.notEqual(remedy, "");
  });

test("a value without an error is no refusal", () => {
  for (const value of [{ choices: [] }, { error: null }, { error: "" }, 7, "text", null, []])
    assert.equal(refusalIn(value, 200), undefined);
});

test("a refusal of tools counts only where tools were sent", () => {
  const refusal = refusalIn({ error: "tools param requires --jinja flag" }, 500);
  assert.ok(refusal !== undefined);
  const { refusesTools, passing } = failureOf(refusal, { ...ASKED, tools: false });
  assert.deepEqual({ refusesTools, passing }, { refusesTools: false, passing: true });
});

test("the reason quotes the server and the server behind it, without the key", () => {
  const body = {
    error: {
      message: "Provider returned error for sk-secret-1234",
      metadata: { raw: "upstream: bad things" },
    },
  };
  const refusal = refusalIn(body, 502);
  assert.ok(refusal !== undefined);
  assert.equal(
    failureOf(refusal, ASKED).message,
    "HTTP 502: Provider returned error for [key]: upstream: bad things",
  );
});

test("a long message is shortened", () => {
  const refusal = refusalIn({ error: "x".repeat(100_000) }, 500);
  assert.ok(refusal !== undefined);
  assert.ok(failureOf(refusal, ASKED).message.length < 600);
});
