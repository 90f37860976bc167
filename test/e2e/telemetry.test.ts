import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Loopback, type Served, startLoopback } from "../fakes/loopback.ts";
import { metricsIn, said, spansIn, type WireSpan } from "../fixtures/otlp.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { finishedOf, harness, type Ran } from "./run-command.ts";
import { ROOT } from "./package.ts";

/** Telemetry of the program as it is built, against a collector on this machine. Nothing in these runs needs a box. */

const KEPT = "ghp_0123456789abcdefghijABCDEFGHIJ456789";

const MODEL = [
  { reply: [{ fail: "rate_limited", reason: "busy", passing: true, retry_after: "1ms" }] },
  {
    reply: [
      "I note it.",
      { call: "note", args: { title: "quokka", body: KEPT } },
      { usage: { prompt: 900, completion: 12 } },
    ],
  },
  { reply: ["The quokka is noted."] },
];

const home = (): Promise<Scratch> =>
  scratch({ "work/a.txt": "a\n", "model.jsonl": MODEL.map((step) => JSON.stringify(step)).join("\n") });

function asked(place: Scratch, env: Readonly<Record<string, string>>): Promise<Ran> {
  const model = ["--provider", "scripted", "--model", place.at("model.jsonl")];
  return harness(place, ["run", "--json", "--intent", "direct", ...model, `tell of a quokka ${KEPT}`], {
    env,
  });
}

/** The run is what it is without telemetry. */
function isDone(ran: Ran): void {
  const { status, answer } = finishedOf(ran);
  assert.deepEqual([ran.code, status, answer], [0, "done", "The quokka is noted."], ran.stderr);
}

const ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OK: Served = { body: "{}" };

const heardAt = ({ heard }: Loopback, below: string): readonly string[] =>
  heard.flatMap(({ path: at, text }) => (at === below ? [text] : []));
const spansAt = (collector: Loopback): readonly WireSpan[] =>
  heardAt(collector, "/v1/traces").flatMap((text) => spansIn(text));
const nameOf = (span: WireSpan): string => span.name;

test("a collector gets a run as a trace with its measurements, and none of its text", async () => {
  await using place = await home();
  await using collector = await startLoopback([OK]);
  const env = {
    [ENDPOINT]: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20abc",
    OTEL_SERVICE_NAME: "ours",
  };
  const ran = await asked(place, env);
  isDone(ran);
  const spans = spansAt(collector);
  const root = spans.find(({ parentSpanId }) => parentSpanId === undefined);
  assert.ok(root?.name === "invoke_agent harness");
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
  assert.deepEqual(spans.filter(({ parentSpanId }) => parentSpanId === root.spanId).map(nameOf), [
    "chat model.jsonl",
    "chat model.jsonl",
    "execute_tool note",
    "chat model.jsonl",
  ]);
  assert.deepEqual(
    spans.filter(({ name }) => name.startsWith("chat")).map((chat) => said(chat, "error.type")),
    ["retried", undefined, undefined],
  );
  assert.deepEqual([said(root, "harness.status"), said(root, "harness.exit_code")], ["done", "0"]);
  assert.deepEqual(
    new Set(collector.heard.map(({ headers }) => headers.authorization)),
    new Set(["Bearer abc"]),
  );
  const all = collector.heard.map(({ text }) => text).join("\n");
  assert.doesNotMatch(all, /quokka|ghp_|a\.txt/);
  assert.ok(!all.includes(place.path));
  assert.match(all, /"service.name","value":\{"stringValue":"ours"\}/);
  const metrics = heardAt(collector, "/v1/metrics").flatMap((text) => metricsIn(text));
  const tokens = metrics.find(({ name }) => name === "gen_ai.client.token.usage");
  assert.deepEqual(
    tokens?.histogram.dataPoints.map((point) => [said(point, "gen_ai.token.type"), point.sum]),
    [
      ["input", 900],
      ["output", 12],
    ],
  );
  assert.doesNotMatch(ran.stderr, /telemetry/);
});

test("texts are sent only on request, and without secrets", async () => {
  await using place = await home();
  await using collector = await startLoopback([OK]);
  const env = { [ENDPOINT]: collector.url, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" };
  isDone(await asked(place, env));
  const all = collector.heard.map(({ text }) => text).join("\n");
  assert.doesNotMatch(all, /ghp_/);
  const spans = spansAt(collector);
  const root = spans.find(({ parentSpanId }) => parentSpanId === undefined);
  const note = spans.find(({ name }) => name === "execute_tool note");
  assert.match(
    String(root && said(root, "gen_ai.input.messages")),
    /tell of a quokka \[secret: github token\]/,
  );
  assert.match(String(root && said(root, "gen_ai.output.messages")), /The quokka is noted\./);
  assert.match(String(note && said(note, "gen_ai.tool.call.arguments")), /"title":"quokka".*\[secret: /);
  assert.equal(note && said(note, "gen_ai.tool.call.result"), "noted: quokka");
});

const call = (name: string, args: object): object => ({ call: name, args });
const steps = (...replies: readonly object[]): string =>
  replies.map((reply) => JSON.stringify({ reply: [reply].flat() })).join("\n");

/** Each span with the one above it. */
const edgesOf = (spans: readonly WireSpan[]): readonly string[] =>
  spans
    .map(({ name, parentSpanId }) => {
      const above = spans.find(({ spanId }) => spanId === parentSpanId);
      return `${name} < ${above?.name ?? (parentSpanId === undefined ? "" : "?")}`;
    })
    .toSorted((a, b) => (a < b ? -1 : 1));

test("a subagent's spans are below the task that started it", async () => {
  await using place = await home();
  await using collector = await startLoopback([OK]);
  const note = call("note", { title: "a", body: "b" });
  const prompt = "note it";
  await place.write(
    "model.jsonl",
    steps([call("task", { prompt, description: prompt })], [note], ["Noted."], ["The quokka is noted."]),
  );
  isDone(await asked(place, { [ENDPOINT]: collector.url }));
  assert.deepEqual(edgesOf(spansAt(collector)), [
    "chat model.jsonl < invoke_agent harness",
    "chat model.jsonl < invoke_agent harness",
    "chat model.jsonl < invoke_agent subagent",
    "chat model.jsonl < invoke_agent subagent",
    "execute_tool note < invoke_agent subagent",
    "execute_tool task < invoke_agent harness",
    "invoke_agent harness < ",
    "invoke_agent subagent < execute_tool task",
  ]);
});

/** Once the diagnostics in this folder say that the second turn has started. */
async function begun(folder: string, then: () => void): Promise<void> {
  for (let looks = 0; looks < 10_000; looks += 1) {
    const names = await readdir(folder);
    const texts = await Promise.all(names.map((name) => readFile(path.join(folder, name), "utf8")));
    if (texts.join("").includes('"turn":2')) return then();
    await sleep(10);
  }
  throw new Error("there was no second turn");
}

test("an interrupted run is sent completely: open spans are ended and not marked as errors", async () => {
  await using place = await home();
  await using collector = await startLoopback([OK]);
  await place.write(
    "model.jsonl",
    steps([call("note", { title: "done", body: "b" })], [{ delay: "60s" }, "x"]),
  );
  const words = ["run", "--json", "--intent", "direct", "--provider", "scripted"];
  const notes = place.at(".local/state/harness/diagnostics");
  const ran = await harness(place, [...words, "--model", place.at("model.jsonl"), "wait"], {
    env: { [ENDPOINT]: collector.url },
    whenMade: [notes, (child) => void begun(notes, () => child.kill("SIGINT"))],
  });
  assert.deepEqual([ran.code, finishedOf(ran).status], [130, "interrupted"]);
  const spans = spansAt(collector);
  const root = spans.find(({ parentSpanId }) => parentSpanId === undefined);
  assert.deepEqual(root && [said(root, "harness.status"), root.status], ["interrupted", {}]);
  const left = spans.filter((span) => said(span, "harness.unfinished") === true);
  assert.deepEqual(
    left.map(({ name, status }) => [name, status]),
    [["chat model.jsonl", {}]],
  );
});

/** The files of the bundle that only telemetry needs, and those of them that a run has loaded. */
async function loaded(place: Scratch, env: Readonly<Record<string, string>>): Promise<number> {
  isDone(await asked(place, { ...env, NODE_V8_COVERAGE: place.at("coverage") }));
  const chunks = path.join(ROOT, "dist/chunks");
  const names = await readdir(chunks);
  const texts = await Promise.all(names.map((name) => readFile(path.join(chunks, name), "utf8")));
  const own = names.filter((_, at) => texts[at]?.includes("resourceSpans") === true);
  assert.equal(own.length, 1, own.join());
  const reports = await readdir(place.at("coverage"));
  const seen = await Promise.all(reports.map((name) => readFile(place.at(`coverage/${name}`), "utf8")));
  return own.filter((name) => seen.some((text) => text.includes(name))).length;
}

test("without an endpoint or when switched off the telemetry code is not loaded", async () => {
  await using collector = await startLoopback([OK]);
  const off = { [ENDPOINT]: collector.url, OTEL_SDK_DISABLED: "true" };
  for (const [env, files] of [
    [{}, 0],
    [{ [ENDPOINT]: "" }, 0],
    [{ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_HEADERS: "a=b" }, 0],
    [off, 0],
    [{ [ENDPOINT]: collector.url }, 1],
  ] as const) {
    await using place = await home();
    const before = collector.heard.length;
    assert.equal(await loaded(place, env), files, JSON.stringify(env));
    assert.equal(collector.heard.length > before, files === 1);
  }
});

const HOSTILE: Readonly<Record<string, readonly [Served, RegExp]>> = {
  "answers 500": [{ status: 500, body: "pw".repeat(1000) }, /answers (?:spans|metrics) with 500/],
  "says nothing": [{ body: ["{"], ends: "silent" }, /did not accept the (?:spans|metrics): not within 2 s/],
  "has no end": [{ body: ["x".repeat(1000)], ends: "endless" }, /^$/],
  "cuts the connection": [{ body: ["{"], ends: "cut" }, /^$/],
  "took a part": [{ body: '{"partialSuccess":{"rejectedSpans":"2"}}' }, /refused 2 of the spans/],
};

const notesOf = ({ stderr }: Ran): readonly string[] =>
  stderr.split("\n").filter((line) => line.includes("telemetry"));

for (const [name, [served, note]] of Object.entries(HOSTILE))
  test(`a collector that ${name} does not affect a run, and is reported at most once`, async () => {
    await using place = await home();
    await using collector = await startLoopback([served]);
    const ran = await asked(place, { [ENDPOINT]: collector.url });
    isDone(ran);
    const notes = notesOf(ran);
    assert.ok(notes.length <= 1, ran.stderr);
    assert.match(notes[0] ?? "", note);
  });

test("without a listener the run is the same", async () => {
  await using place = await home();
  const gone = await startLoopback([OK]);
  await gone.close();
  const ran = await asked(place, { [ENDPOINT]: gone.url });
  isDone(ran);
  assert.match(
    notesOf(ran).join("\n"),
    /^note: telemetry: 127\.0\.0\.1:\d+ did not accept the .*ECONNREFUSED; the run is not affected$/,
  );
});

test("redirects are not followed: neither spans nor headers go elsewhere", async () => {
  for (const status of [301, 302, 307, 308]) {
    await using place = await home();
    await using other = await startLoopback([OK]);
    await using collector = await startLoopback([
      { status, headers: { location: `${other.url}/v1/traces` } },
    ]);
    const env = { [ENDPOINT]: collector.url, OTEL_EXPORTER_OTLP_HEADERS: "api-key=abc" };
    const ran = await asked(place, env);
    isDone(ran);
    assert.deepEqual([collector.heard.length, other.heard.length], [2, 0]);
    assert.match(notesOf(ran).join("\n"), /redirects are not followed/);
    assert.doesNotMatch(ran.stderr, /abc/);
  }
});

test("project files cannot turn telemetry on", async () => {
  await using place = await home();
  await using collector = await startLoopback([OK]);
  const line = `${ENDPOINT}=${collector.url}\n`;
  await place.write("work/.env", line);
  await place.write("work/.harness/.env", line);
  await place.write("work/.harness/config.json", JSON.stringify({ telemetry: { endpoint: collector.url } }));
  const ran = await asked(place, {});
  assert.equal(collector.heard.length, 0);
  assert.doesNotMatch(ran.stderr, /telemetry:/);
});
