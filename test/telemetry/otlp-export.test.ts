import assert from "node:assert/strict";
import test from "node:test";
import type { TraceSpan } from "../../src/telemetry/genai-spans.ts";
import { OtlpExport, type Post, type Posted } from "../../src/telemetry/otlp-export.ts";
import { otlpSettings } from "../../src/telemetry/otlp-settings.ts";
import { metricsIn, spansIn, tracesForm } from "../fixtures/otlp.ts";

const NOW = 1_790_000_000_000;
const OK: Posted = { status: 200, retryAfter: undefined, body: "{}" };

const span = (id: number): TraceSpan => ({
  id: id.toString(16).padStart(16, "0"),
  parent: null,
  name: "chat m",
  kind: "client",
  start: NOW,
  end: NOW,
  attributes: {},
  events: [],
  failed: false,
});

interface Sent {
  readonly posts: (readonly [url: string, json: string])[];
  readonly warned: string[];
  readonly exporter: OtlpExport;
}

function exporting(
  answer: (nth: number, signal: AbortSignal) => Promise<Posted>,
  env = {},
  now = (): number => NOW,
): Sent {
  const posts: (readonly [string, string])[] = [];
  const warned: string[] = [];
  const post: Post = ({ url }, json, signal) => {
    posts.push([url, json]);
    return answer(posts.length, signal);
  };
  const exporter = new OtlpExport({
    settings: otlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:pw@c:4318", ...env }),
    version: "1",
    instance: "one",
    warn: (text) => void warned.push(text),
    post,
    now,
    newTrace: () => "f".repeat(32),
  });
  return { posts, warned, exporter };
}

const yes = (): Promise<Posted> => Promise.resolve(OK);

test("spans and metrics are sent at the end, each to its own address, with the sender's name", async () => {
  const { posts, warned, exporter } = exporting(yes);
  const take = exporter.trace();
  take(span(1));
  take(span(2));
  exporter.measure("gen_ai.execute_tool.duration", 1, {});
  assert.equal(posts.length, 0);
  await exporter[Symbol.asyncDispose]();
  assert.deepEqual(
    posts.map(([url]) => new URL(url).pathname),
    ["/v1/traces", "/v1/metrics"],
  );
  const [traces = "", metrics = ""] = posts.map(([, json]) => json);
  assert.deepEqual(
    spansIn(traces).map(({ traceId }) => traceId),
    ["f".repeat(32), "f".repeat(32)],
  );
  assert.equal(metricsIn(metrics).length, 1);
  const { resource } = tracesForm.parse(JSON.parse(traces)).resourceSpans[0] ?? {
    resource: { attributes: [] },
  };
  assert.deepEqual(
    resource.attributes.map(({ key }) => key),
    ["service.version", "service.instance.id", "service.name"],
  );
  assert.deepEqual(warned, []);
});

test("a run within another trace becomes part of it", async () => {
  const TRACEPARENT = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const { posts, exporter } = exporting(yes, { TRACEPARENT });
  exporter.trace()(span(1));
  await exporter[Symbol.asyncDispose]();
  const [told] = spansIn(posts[0]?.[1] ?? "");
  assert.deepEqual([told?.traceId, told?.parentSpanId], ["a".repeat(32), "b".repeat(16)]);
});

test("without spans or metrics nothing is sent", async () => {
  const { posts, exporter } = exporting(yes);
  await exporter[Symbol.asyncDispose]();
  assert.deepEqual(posts, []);
});

const HOSTILE: Readonly<Record<string, readonly [(signal: AbortSignal) => Promise<Posted>, RegExp]>> = {
  "is down": [() => Promise.reject(Object.assign(new Error("no"), { code: "ECONNREFUSED" })), /ECONNREFUSED/],
  "answers 500": [() => Promise.resolve({ ...OK, status: 500 }), /with 500/],
  "answers 400": [() => Promise.resolve({ ...OK, status: 400 }), /with 400/],
  "answers 503 with a delay of an hour": [
    () => Promise.resolve({ status: 503, retryAfter: "3600", body: "" }),
    /with 503/,
  ],
  redirects: [() => Promise.resolve({ ...OK, status: 307 }), /redirects are not followed/],
  "accepts only a part": [
    () => Promise.resolve({ ...OK, body: '{"partialSuccess":{"rejectedSpans":"7","errorMessage":"pw"}}' }),
    /refused 7 of the spans/,
  ],
  "never answers and ignores its signal": [
    () => new Promise(() => undefined),
    /did not accept the spans: not within 2 s/,
  ],
};

for (const [name, [answer, said]] of Object.entries(HOSTILE))
  test(`an endpoint that ${name} does not affect the run, and one warning is shown`, async () => {
    const { posts, warned, exporter } = exporting((_, signal) => answer(signal));
    const take = exporter.trace();
    for (let at = 0; at < 600; at += 1) take(span(at));
    exporter.measure("gen_ai.execute_tool.duration", 1, {});
    await exporter[Symbol.asyncDispose]();
    assert.equal(warned.length, 1, JSON.stringify(warned));
    assert.match(warned[0] ?? "", said);
    assert.doesNotMatch(warned[0] ?? "", /pw|user/);
    assert.ok(posts.length <= 5, `${posts.length}`);
  });

test("the queue is bounded, and what exceeds it is dropped and counted", async () => {
  const held = Promise.withResolvers<Posted>();
  const { posts, warned, exporter } = exporting((nth) => (nth === 1 ? held.promise : yes()));
  const take = exporter.trace();
  for (let at = 0; at < 5000; at += 1) take(span(at));
  held.resolve(OK);
  await exporter[Symbol.asyncDispose]();
  const sent = posts.flatMap(([, json]) => spansIn(json)).length;
  assert.equal(sent, 2048 + 256);
  assert.match(warned[0] ?? "", new RegExp(`${5000 - sent} spans were not delivered`));
});

test("spans refused by a busy endpoint are sent once more, and none twice", async () => {
  const { posts, warned, exporter } = exporting((nth) =>
    Promise.resolve(nth === 1 ? { ...OK, status: 429 } : OK),
  );
  const take = exporter.trace();
  for (let at = 0; at < 300; at += 1) take(span(at));
  await exporter[Symbol.asyncDispose]();
  const ids = posts.slice(1).flatMap(([, json]) => spansIn(json).map(({ spanId }) => spanId));
  assert.deepEqual([ids.length, new Set(ids).size], [300, 300]);
  assert.equal(warned.length, 1);
});

test("a delta refused by a busy endpoint is sent again unchanged, before later measurements", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  let time = NOW;
  const { posts, exporter } = exporting(
    (nth) => Promise.resolve(nth === 1 ? { ...OK, status: 503 } : OK),
    { OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "delta" },
    () => time,
  );
  exporter.measure("gen_ai.execute_tool.duration", 1, {});
  time += 3_600_000;
  context.mock.timers.tick(60_000);
  exporter.measure("gen_ai.execute_tool.duration", 5, {});
  await exporter[Symbol.asyncDispose]();
  const [first, again, ...others] = posts.map(([, json]) => json);
  assert.equal(again, first);
  assert.deepEqual(
    [first, ...others].map((json = "") => /"sum":([\d.]+)/.exec(json)?.[1]),
    ["1", "5"],
  );
});

test("an unusable variable is reported once, at the start", () => {
  const { warned } = exporting(yes, { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" });
  assert.deepEqual(warned, [
    "telemetry: the OTLP protocol grpc is not supported: set http/json; the run is not affected",
  ]);
});
