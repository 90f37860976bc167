import assert from "node:assert/strict";
import test from "node:test";
import type { AgentEvent, EventBody } from "../../src/core/events.ts";
import { RunJson } from "../../src/render/renderers.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";
import { fc } from "../fixtures/property.ts";

const SECRET = "sk-0123456789";
const mask = (text: string): string => text.replaceAll(SECRET, "***");

function linesOf(events: readonly AgentEvent[]): readonly string[] {
  const json = new RunJson(mask);
  const whole = events.map((event) => json.take(event)).join("") + json.end();
  return whole.split("\n").slice(0, -1);
}

const texts = (pieces: readonly string[]): readonly AgentEvent[] =>
  stamped(pieces.map((text) => ({ type: "text", text })));

test("every event is one line with the event's content", () => {
  const events = stamped(Object.values(EVERY_EVENT));
  assert.deepEqual(
    linesOf(events).map((line): unknown => JSON.parse(line)),
    events,
  );
});

test("a text is passed on line by line, a long line word by word, and completely before anything else", () => {
  const json = new RunJson(mask);
  const bodies: readonly EventBody[] = [
    ...["I look", ".\nThen ", "x ".repeat(200), "and on", "y".repeat(5000), "z"].map(
      (text) => ({ type: "text", text }) as const,
    ),
    EVERY_EVENT.notice,
  ];
  const taken = stamped(bodies).map((event) => json.take(event).split("\n").slice(0, -1));
  assert.deepEqual(
    taken.map((lines) => lines.map((line): unknown => JSON.parse(line))),
    [
      [],
      [{ type: "text", run: "r1", seq: 0, text: "I look.\n" }],
      [{ type: "text", run: "r1", seq: 1, text: `Then ${"x ".repeat(200)}` }],
      [],
      [{ type: "text", run: "r1", seq: 3, text: "and " }],
      [{ type: "text", run: "r1", seq: 4, text: `on${"y".repeat(5000)}z` }],
      [{ type: "notice", run: "r1", seq: 6, text: "5 turns are left" }],
    ],
  );
});

test("a secret is masked wherever it occurs, and however a stream splits it", () => {
  const [deep] = stamped([{ ...EVERY_EVENT["call.proposed"], args: { env: [{ key: `a ${SECRET} b` }] } }]);
  assert.ok(deep);
  assert.match(linesOf([deep]).join(), /"env":\[\{"key":"a \*\*\* b"\}\]/);
  const text = fc
    .constantFrom("\n", " ", "x ".repeat(250))
    .map((apart) => `${apart}the key is ${SECRET}${apart}so`);
  fc.assert(
    fc.property(text, fc.array(fc.nat(600), { maxLength: 12 }), (words, all) => {
      const cuts = all.map((at) => Math.min(at, words.length));
      const places = [0, ...cuts.toSorted((a, b) => a - b), words.length];
      const pieces = places.slice(1).map((to, index) => words.slice(places[index], to));
      const events = linesOf(texts(pieces)).map((line) => JSON.parse(line) as { text: string; seq: number });
      assert.equal(events.map(({ text }) => text).join(""), mask(words));
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map(({ seq }) => seq).toSorted((a, b) => a - b),
      );
      assert.equal(new Set(events.map(({ seq }) => seq)).size, events.length);
    }),
  );
});

test("a subagent's text is not joined with its parent's", () => {
  const [one] = texts(["parent"]);
  const [other] = stamped([{ type: "text", text: "child" }], "c9");
  assert.ok(one && other);
  assert.deepEqual(
    linesOf([one, other]).map((line): unknown => JSON.parse(line)),
    [one, other],
  );
});

test("no line contains a control character", () => {
  const [line] = linesOf(texts(["\u001B[31m\u009B\u202E\u2028\r"]));
  assert.match(line ?? "", /^[\u0020-\u007E]+$/);
});
