import assert from "node:assert/strict";
import test from "node:test";
import { Histograms, INSTRUMENTS, type SentSpan, spansJson } from "../../src/telemetry/otlp-export.ts";
import { metricsIn, said, spansIn } from "../fixtures/otlp.ts";
import { anyText, fc } from "../fixtures/property.ts";

const NOW = 1_790_000_000_000;
const ABOUT = { resource: { "service.name": "harness" }, version: "1" };

const span = (over: Partial<SentSpan> = {}): SentSpan => ({
  trace: "a".repeat(32),
  id: "b".repeat(16),
  parent: null,
  name: "chat m",
  kind: "client",
  start: NOW,
  end: NOW + 1.25,
  attributes: {},
  events: [],
  failed: false,
  ...over,
});

test("a span follows the protocol: numbers as text, doubles as doubles, a status only for an error", () => {
  const attributes = {
    n: 3,
    half: 0.5,
    yes: true,
    list: ["a", "b"],
    "gen_ai.response.time_to_first_chunk": 2,
  };
  const [one, two] = spansIn(
    spansJson([span({ attributes }), span({ failed: true, parent: "c".repeat(16) })], ABOUT),
  );
  assert.deepEqual(one?.attributes, [
    { key: "n", value: { intValue: "3" } },
    { key: "half", value: { doubleValue: 0.5 } },
    { key: "yes", value: { boolValue: true } },
    { key: "list", value: { arrayValue: { values: [{ stringValue: "a" }, { stringValue: "b" }] } } },
    { key: "gen_ai.response.time_to_first_chunk", value: { doubleValue: 2 } },
  ]);
  assert.deepEqual(
    [one?.startTimeUnixNano, one?.endTimeUnixNano, one?.kind, one?.status],
    ["1790000000000000000", "1790000000001250000", 3, {}],
  );
  assert.deepEqual([two?.status, two?.parentSpanId], [{ code: 2 }, "c".repeat(16)]);
});

test("a receiver can read any texts and numbers", () => {
  const value = fc.oneof(anyText(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
  fc.assert(
    fc.property(anyText({ minLength: 1 }), value, (name, each) => {
      const [told] = spansIn(spansJson([span({ name, attributes: { each } })], ABOUT));
      assert.ok(told !== undefined);
      if (typeof each === "boolean") assert.equal(said(told, "each"), each);
    }),
  );
});

test("a lone surrogate is replaced, not sent", () => {
  const [told] = spansIn(spansJson([span({ attributes: { a: "x\uD800" } })], ABOUT));
  assert.equal(told && said(told, "a"), "x\uFFFD");
});

test("measurements are counted in the convention's buckets", () => {
  const all = new Histograms(NOW);
  for (const tokens of [1, 4, 5, 900, 10 ** 9])
    all.add("gen_ai.client.token.usage", tokens, { "gen_ai.token.type": "input" });
  all.add("gen_ai.client.token.usage", 7, { "gen_ai.token.type": "output" });
  const [metric] = metricsIn(all.json(ABOUT, NOW + 1000, "cumulative"));
  const [point, output] = metric?.histogram.dataPoints ?? [];
  assert.deepEqual([metric?.unit, metric?.histogram.aggregationTemporality], ["{token}", 2]);
  assert.deepEqual(point?.explicitBounds, INSTRUMENTS["gen_ai.client.token.usage"].bounds);
  assert.deepEqual([point?.explicitBounds[0], point?.explicitBounds.at(-1)], [1, 67_108_864]);
  assert.deepEqual([point?.count, point?.sum, point?.min, point?.max], ["5", 1_000_000_910, 1, 10 ** 9]);
  assert.deepEqual(
    point?.bucketCounts.flatMap((count, at) => (count === "0" ? [] : [[at, count]])),
    [
      [0, "1"],
      [1, "1"],
      [2, "1"],
      [5, "1"],
      [14, "1"],
    ],
  );
  assert.equal(output?.count, "1");
});

test("the bucket limits of durations are exactly those of the convention", () => {
  assert.deepEqual(
    INSTRUMENTS["gen_ai.client.operation.duration"].bounds,
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  );
});

test("a delta repeats nothing; series are bounded, and the excess is still counted", () => {
  const all = new Histograms(NOW);
  for (let at = 0; at < 700; at += 1)
    all.add("gen_ai.execute_tool.duration", 1, { "gen_ai.tool.name": `t${at}` });
  const [metric] = metricsIn(all.json(ABOUT, NOW + 1, "delta"));
  const points = metric?.histogram.dataPoints ?? [];
  assert.deepEqual([points.length, points.at(-1)?.count], [501, "200"]);
  assert.equal(points.at(-1) && said(points.at(-1) ?? { attributes: [] }, "otel.metric.overflow"), true);
  all.reset(NOW + 2);
  assert.equal(all.empty, true);
});
