import assert from "node:assert/strict";
import test from "node:test";
import {
  costOf,
  dayOf,
  NO_USAGE,
  priceOf,
  promptBytes,
  REFUSED_USAGE,
  sumUsage,
  TokenEstimator,
  usageOf,
} from "../../src/models/token-usage.ts";

const ROWS = [
  { model: "gpt", input: 1, output: 2 },
  { model: "gpt-5-mini", input: 3, output: 4 },
  { model: "gpt-5", input: 5, output: 6, cached: 0.5 },
];

const TODAY = "2026-11-23";

test("a model has the price of the longest prefix of its name", () => {
  const priced = ["gpt-5-mini-2026", "gpt-5.1", "gpt-4", "llama"].map(
    (model) => priceOf(model, ROWS, TODAY)?.input,
  );
  assert.deepEqual(priced, [3, 5, 1, undefined]);
});

test("a dated price holds from its day until a later one", () => {
  const rows = [
    { model: "gpt", input: 1, output: 1, from: "2026-03-01" },
    { model: "gpt", input: 2, output: 1 },
    { model: "gpt", input: 3, output: 1, from: "2026-06-01" },
    { model: "gpt-5", input: 4, output: 1, from: "2026-09-01" },
  ];
  const on = (day: string): number | undefined => priceOf("gpt-5", rows, day)?.input;
  assert.deepEqual(
    ["2026-02-28", "2026-03-01", "2026-05-31", "2026-06-01", "2026-09-01"].map(on),
    [2, 1, 1, 3, 4],
  );
  assert.equal(priceOf("gpt-5", rows.slice(3), "2026-08-31"), undefined);
  assert.equal(dayOf(Date.UTC(2026, 2, 1) - 1), "2026-02-28");
});

test("a cost is known where both price and counts are", () => {
  const usage = usageOf({ prompt: 1000, completion: 10, cached: 400 });
  assert.equal(costOf(usage, ROWS[2]), (600 * 5 + 400 * 0.5 + 10 * 6) / 1e6);
  assert.equal(costOf(usage, ROWS[0]), (1000 * 1 + 10 * 2) / 1e6);
  assert.equal(costOf(usage, undefined), null);
  assert.equal(costOf(usageOf({ completion: 10 }), ROWS[0]), null);
});

test("invalid counts are unknown", () => {
  assert.deepEqual(usageOf({ prompt: -1, completion: Number.NaN, cached: 1.5 }), {
    requests: 1,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    cost: null,
  });
});

test("a sum is unknown where a part is, and a refused request used nothing", () => {
  const known = { ...usageOf({ prompt: 5, completion: 6, cached: 0 }), cost: 1 };
  assert.deepEqual([NO_USAGE, REFUSED_USAGE, known].reduce(sumUsage), { ...known, requests: 2 });
  const { requests, prompt_tokens, cost } = sumUsage(known, usageOf({}));
  assert.deepEqual([requests, prompt_tokens, cost], [2, null, null]);
});

test("an estimate starts at four bytes a token and approaches the counted tokens", () => {
  const estimator = new TokenEstimator();
  assert.equal(estimator.tokens("m", 4000), 1000);
  for (let turn = 0; turn < 20; turn += 1) estimator.learn("m", 30_000, 10_000);
  assert.equal(estimator.tokens("m", 3000), 1000);
  assert.equal(estimator.tokens("other", 4000), 1000);
});

test("one odd count shifts an estimate only in part, and an impossible one not at all", () => {
  const estimator = new TokenEstimator();
  estimator.learn("m", 40_000, 10_000);
  estimator.learn("m", 40_000, 20_000);
  assert.equal(estimator.tokens("m", 40_000), 13_000);
  for (const count of [0, -5, Number.NaN, 1e9]) estimator.learn("m", 40_000, count);
  assert.equal(estimator.tokens("m", 40_000), 13_000);
});

test("a prompt that seems to have been cut does not change the estimate", () => {
  const estimator = new TokenEstimator();
  assert.equal(estimator.looksCut("m", 40_000, 4096), true);
  estimator.learn("m", 40_000, 4096);
  assert.equal(estimator.tokens("m", 40_000), 10_000);
  assert.equal(estimator.looksCut("m", 40_000, 9000), false);
  assert.equal(estimator.looksCut("m", 2000, 1), false);
});

test("everything that the model reads counts as prompt", () => {
  const empty = { messages: [], tools: [] };
  const call = { id: "a", name: "b", args: { path: "ö" } };
  assert.equal(promptBytes(empty), 0);
  assert.equal(promptBytes({ ...empty, messages: [{ role: "user", text: "ö" }] }), 2);
  assert.equal(
    promptBytes({ ...empty, messages: [{ role: "assistant", text: "", calls: [call] }] }),
    Buffer.byteLength(JSON.stringify([call])),
  );
});
