import assert from "node:assert/strict";
import test from "node:test";
import { otlpSettings } from "../../src/telemetry/otlp-settings.ts";

const BASE = "OTEL_EXPORTER_OTLP_ENDPOINT";

const urls = (env: Readonly<Record<string, string>>): readonly (string | undefined)[] => {
  const { traces, metrics } = otlpSettings(env);
  return [traces?.url, metrics?.url];
};

test("the paths of the signals are appended to the common address; a signal's own address is used unchanged", () => {
  assert.deepEqual(urls({ [BASE]: "http://c:4318" }), [
    "http://c:4318/v1/traces",
    "http://c:4318/v1/metrics",
  ]);
  assert.deepEqual(urls({ [BASE]: "https://c/otlp/?k=v" }), [
    "https://c/otlp/v1/traces?k=v",
    "https://c/otlp/v1/metrics?k=v",
  ]);
  assert.deepEqual(urls({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t/x" }), ["http://t/x", undefined]);
  assert.deepEqual(urls({ [BASE]: "http://c", OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://m/" }), [
    "http://c/v1/traces",
    "http://m/",
  ]);
  assert.deepEqual(urls({ [BASE]: " " }), [undefined, undefined]);
  assert.deepEqual(urls({ [BASE]: "http://c", OTEL_METRICS_EXPORTER: "none" }), [
    "http://c/v1/traces",
    undefined,
  ]);
});

test("an unusable value is reported once without being shown, and nothing is sent", () => {
  for (const [more, problem] of [
    [{ [BASE]: "localhost:4317" }, /ENDPOINT is not an http or https address/],
    [{ [BASE]: "file:///etc/passwd" }, /ENDPOINT is not an http or https address/],
    [{ [BASE]: "http://" }, /ENDPOINT is not an http or https address/],
    [{ [BASE]: "http://c", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /grpc is not supported/],
    [
      { [BASE]: "http://c", OTEL_TRACES_EXPORTER: "zipkin", OTEL_METRICS_EXPORTER: "none" },
      /TRACES_EXPORTER/,
    ],
  ] as const) {
    const { traces, metrics, problems } = otlpSettings(more);
    assert.deepEqual([traces, metrics, problems.length], [undefined, undefined, 1], JSON.stringify(problems));
    assert.match(problems[0] ?? "", problem);
  }
  const env = { [BASE]: "http://c", OTEL_EXPORTER_OTLP_HEADERS: "a=s3cret%zz,b=2,s3cret,c=x%0d%0ay" };
  const { traces, problems } = otlpSettings(env);
  assert.deepEqual(traces?.headers, { b: "2" });
  assert.deepEqual(problems, ["a part of OTEL_EXPORTER_OTLP_HEADERS is not name=value"]);
});

test("headers and attributes are percent-encoded pairs; a signal's own headers override the common ones", () => {
  const { traces, metrics, resource } = otlpSettings({
    [BASE]: "http://c",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20abc, x-team = a=b ",
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: "x-team=other",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=ci,service.name=one",
  });
  assert.deepEqual(traces?.headers, { authorization: "Bearer abc", "x-team": "a=b" });
  assert.deepEqual(metrics?.headers, { authorization: "Bearer abc", "x-team": "other" });
  assert.deepEqual(resource, { "service.name": "one", "deployment.environment.name": "ci" });
});

test("a service's name has its own variable, and defaults to harness", () => {
  assert.equal(otlpSettings({}).resource["service.name"], "harness");
  const env = { OTEL_SERVICE_NAME: "two", OTEL_RESOURCE_ATTRIBUTES: "service.name=one" };
  assert.equal(otlpSettings(env).resource["service.name"], "two");
});

test("texts of a run are exported only where that is requested", () => {
  const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
  for (const word of ["true", "SPAN_ONLY", "span_and_event", "1"])
    assert.equal(otlpSettings({ [name]: word }).content, true, word);
  for (const word of ["", "false", "no_content", "event_only", "yes please"])
    assert.equal(otlpSettings({ [name]: word }).content, false, word);
});

test("time limits, temporality and the parent trace are read if valid", () => {
  const env = {
    OTEL_EXPORTER_OTLP_TIMEOUT: "500",
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "DELTA",
    TRACEPARENT: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`,
  };
  const { timeoutMs, temporality, parent } = otlpSettings(env);
  assert.deepEqual(
    [timeoutMs, temporality, parent],
    [500, "delta", { trace: "a".repeat(32), span: "b".repeat(16) }],
  );
  for (const bad of [
    "x",
    `00-${"0".repeat(32)}-${"b".repeat(16)}-01`,
    `00-${"A".repeat(32)}-${"b".repeat(16)}-01`,
  ])
    assert.equal(otlpSettings({ TRACEPARENT: bad }).parent, undefined);
  for (const bad of ["soon", "-1", "0"])
    assert.equal(otlpSettings({ OTEL_EXPORTER_OTLP_TIMEOUT: bad }).timeoutMs, 10_000, bad);
});
