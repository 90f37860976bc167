import assert from "node:assert/strict";
import test from "node:test";
import type { EventBody } from "../../src/core/events.ts";
import { reportPage } from "../../src/render/html-page.ts";
import { requestRows } from "../../src/render/report-form.ts";
import { EVERY_EVENT } from "../fixtures/events.ts";
import { finished, reportFrom, said, started } from "../fixtures/report.ts";

const UNCOUNTED = {
  requests: 1,
  prompt_tokens: null,
  completion_tokens: null,
  cached_tokens: null,
  cost: null,
};

const bodies: readonly EventBody[] = [
  started("do it"),
  EVERY_EVENT["turn.started"],
  EVERY_EVENT["model.aside"],
  EVERY_EVENT["model.finished"],
  { ...EVERY_EVENT["turn.started"], turn: 2 },
  { ...EVERY_EVENT["model.finished"], usage: UNCOUNTED },
  finished(),
];

const requestsIn = (events: readonly EventBody[]) =>
  reportFrom(events).runs.flatMap(({ requests }) => requests);

test("each request has its row, compactions are named, and uncounted tokens are marked", () => {
  assert.deepEqual(requestRows(requestsIn(bodies)), [
    "            first token   total  built in  tokens in      out",
    "compaction       300 ms  900 ms         –     ~1,800  unknown",
    "  system 300 · tools 400 · requests 50 · replies 150 · results 900",
    "turn 1           240 ms  812 ms      2 ms        900       12",
    "  system 330 · instructions 50 · tools 460 · requests 60",
    "turn 2           240 ms  812 ms      2 ms       ~900  unknown",
    "  system 330 · instructions 50 · tools 460 · requests 60",
  ]);
});

test("a reply that arrived at once has no first-token time, rather than zero", () => {
  const { first_token_ms: _, ...whole } = EVERY_EVENT["model.finished"];
  const [request] = requestsIn([started("x"), EVERY_EVENT["turn.started"], whole]);
  assert.equal(request?.first_token_ms, null);
  assert.match(requestRows(request === undefined ? [] : [request])[1] ?? "", /^turn 1 +– +812 ms/);
});

test("sessions of older versions have no table of requests", () => {
  const old = [started("x"), said("Hm."), finished()];
  assert.deepEqual(requestRows(requestsIn(old)), []);
  assert.doesNotMatch(reportPage(reportFrom(old)), /Requests \(/);
});

test("the page has a bar for each request, scaled to the largest", () => {
  const page = reportPage(reportFrom(bodies));
  assert.match(page, /<h2>Requests \(3\)<\/h2>/);
  assert.match(page, /compaction: ~1,800 in, unknown out, 900 ms in total, first token after 300 ms/);
  assert.match(page, /<span class="part-results" style="width:50\.0%">/);
  assert.match(page, /<span class="part-tools" style="width:25\.6%">/);
});

test("the first of many requests are shown and the rest is counted", () => {
  const many = Array.from({ length: 130 }, () => EVERY_EVENT["model.finished"]);
  const rows = requestRows(requestsIn([started("x"), EVERY_EVENT["turn.started"], ...many]));
  assert.equal(rows.at(-1), "and 30 more: --json");
  assert.match(reportPage(reportFrom([started("x"), ...many])), /and 30 more: harness report --json/);
});
