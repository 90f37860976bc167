import assert from "node:assert/strict";
import test from "node:test";
import { decideIntent, type IntentQuestion } from "../../../src/agent/intent/ask-intent.ts";

const never = new AbortController().signal;
const UNSURE = "how does authentication work?";
const CHANGE = { intent: "change", by: "words" };
const fails = (): Promise<string> => assert.fail("asked");
const says = (reply: string) => (): Promise<string> => Promise.resolve(reply);

test("where the words say it the model is not asked", async () => {
  assert.deepEqual(await decideIntent("hello", fails, never), { intent: "direct", by: "words" });
  assert.deepEqual(await decideIntent("fix the bug", fails, never), CHANGE);
});

test("where they do not, one request with a schema", async () => {
  const asked: IntentQuestion[] = [];
  const ask = (question: IntentQuestion): Promise<string> => {
    asked.push(question);
    return Promise.resolve('{"intent":"repo"}');
  };
  assert.deepEqual(await decideIntent(UNSURE, ask, never), { intent: "repo", by: "model" });
  assert.equal(asked.length, 1);
  assert.deepEqual(asked[0]?.schema["required"], ["intent"]);
  const [system, user] = asked[0]?.messages ?? [];
  assert.equal(system?.role, "system");
  assert.equal(user?.role === "user" ? user.text : "", UNSURE);
});

test("JSON is found among words and fences", async () => {
  for (const reply of [
    '```json\n{"intent": "direct"}\n```',
    'Sure: {"a":1} then {"intent":"direct","why":"x"}',
  ])
    assert.deepEqual(await decideIntent(UNSURE, says(reply), never), { intent: "direct", by: "model" });
});

test("a reply that cannot be read is a change", async () => {
  for (const reply of ["", "repo", '{"intent":"all"}', '{"intent":', "{}", "[]", "{intent: repo}"])
    assert.deepEqual(await decideIntent(UNSURE, says(reply), never), CHANGE, reply);
});

test("a failure is a change, thrown or rejected", async () => {
  assert.deepEqual(await decideIntent(UNSURE, () => Promise.reject(new Error("down")), never), CHANGE);
  assert.deepEqual(await decideIntent(UNSURE, fails, never), CHANGE);
});

test("a model that does not answer is not waited for once the run is cancelled, or was before", async () => {
  const user = new AbortController();
  const told: AbortSignal[] = [];
  const ask = (_: IntentQuestion, signal: AbortSignal): Promise<string> => {
    told.push(signal);
    return new Promise<string>(() => undefined);
  };
  const decided = decideIntent(UNSURE, ask, user.signal);
  user.abort();
  assert.deepEqual(await decided, CHANGE);
  assert.deepEqual(await decideIntent(UNSURE, ask, user.signal), CHANGE);
  assert.ok(told.length > 0 && told.every(({ aborted }) => aborted));
});

test("a model that is too slow is not waited for", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const decided = decideIntent(UNSURE, () => new Promise<string>(() => undefined), never);
  t.mock.timers.tick(20_000);
  assert.deepEqual(await decided, CHANGE);
});
