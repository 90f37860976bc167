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
  "direct <- repo: why do we sleep?",
  "repo <- change: can you tell me which tests are slow according to test/timings.json?",
  "web <- change: who won the football match today, look it up online",
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

/** Those of which another way of writing is guessed as something else. */
const otherwise = (rewrite: (text: string) => string, wanted: readonly string[]): readonly string[] =>
  requests
    .filter(({ text }) => wanted.includes(guessIntent(text)))
    .filter(({ text }) => guessIntent(rewrite(text)) !== guessIntent(text))
    .map(({ text }) => rewrite(text));

test("blanks around a request and curly apostrophes in it change nothing", () => {
  const all = ["direct", "repo", "web", "change", "unsure"];
  assert.deepEqual(
    otherwise((text) => `  ${text}\n\n`, all),
    [],
  );
  assert.deepEqual(
    otherwise((text) => text.replaceAll("'", "’"), all),
    [],
  );
});

test("a greeting before a task or a question, and thanks behind it, change nothing", () => {
  const wanted = ["repo", "change", "web"];
  assert.deepEqual(
    otherwise((text) => `Hello! ${text}`, wanted),
    [],
  );
  assert.deepEqual(
    otherwise((text) => `${text}\nThanks!`, wanted),
    [],
  );
});

test("a task stays a task whatever question stands before it", () => {
  assert.deepEqual(
    otherwise((text) => `What is a closure? ${text}`, ["change"]),
    [],
  );
});
