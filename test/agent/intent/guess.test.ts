import assert from "node:assert/strict";
import test from "node:test";
import { guessIntent } from "../../../src/agent/intent/guess.ts";
import { judgedRequests, type JudgedRequest } from "../../fixtures/intents/judged.ts";

const requests = judgedRequests("*.jsonl");
const wrong = requests.filter(({ text, want }) => guessIntent(text) !== want);
const asText = ({ text, want }: JudgedRequest): string => `${want} <- ${guessIntent(text)}: ${text}`;

/** Known and left: what would set them right would set others wrong. */
const MISSES: readonly string[] = [
  "direct <- unsure: is water wet?",
  "direct <- unsure: Which sorting algorithms are stable?",
  "repo <- change: Can you list the responsibilities of each module and explain them to me?",
  "direct <- unsure: How does public key encryption work?",
  "unsure <- repo: what does it mean?",
];

test(`of ${requests.length} requests all are guessed as judged, but for those that are listed`, () => {
  assert.ok(requests.length > 700);
  assert.deepEqual(wrong.map(asText).toSorted(), MISSES.toSorted());
});

test("of all that is wrong nothing is a task that would be left undone", () => {
  assert.deepEqual(wrong.filter(({ want }) => want === "change").map(asText), []);
});

test("few requests are left to the model", () => {
  const unsure = requests.filter(({ text }) => guessIntent(text) === "unsure");
  assert.ok(unsure.length < 0.06 * requests.length, String(unsure.length));
});

test("no request is judged twice", () => {
  const texts = requests.map(({ text }) => text);
  assert.deepEqual(
    texts.filter((text, at) => texts.indexOf(text) !== at),
    [],
  );
});

test("words are looked at for long only when the request is short", () => {
  const story = `${"The build fails and nobody knows. ".repeat(30)}What is a closure?`;
  assert.equal(guessIntent(story), "change");
  assert.equal(guessIntent("What is a closure?"), "direct");
});

test("nothing at all, and what is no language, is a task", () => {
  for (const text of ["", "  \n ", "...", "👍", "\u0000", "```\ncode\n```"])
    assert.equal(guessIntent(text), "change", text);
});

test("a request of any length and form is guessed in steps that its length bounds", () => {
  const longs = [
    "a/",
    "what is a ",
    "(",
    "if so, ",
    "ok ",
    "hi ",
    "`",
    "_a",
    "please ",
    "can you ",
    ", and ",
    "1+",
    "is the x ",
  ];
  for (const piece of longs) assert.ok(guessIntent(piece.repeat(40_000).slice(0, 100_000)));
});
