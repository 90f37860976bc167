import assert from "node:assert/strict";
import test from "node:test";
import { repetitionIn, Repetitions, withoutRepetition } from "../../src/core/model-provider.ts";
import { fc } from "../fixtures/property.ts";

const goesRound = (...pieces: readonly string[]): boolean => {
  const circles = new Repetitions();
  return pieces.map((piece) => circles.push(piece)).includes(true);
};

test("a text repeats when its end consists of the same words over and over", () => {
  assert.ok(goesRound("head ", "a".repeat(1500)));
  assert.ok(goesRound("I will look at the file now.\n".repeat(60)));
  assert.ok(goesRound(...Array<string>(2000).fill("ab")));
  assert.ok(!goesRound("a".repeat(1400)), "a row of characters may be intended");
  assert.ok(!goesRound(Array.from({ length: 400 }, (_, at) => `line ${at}\n`).join("")));
  assert.ok(!goesRound(`${"x".repeat(800)}y${"x".repeat(800)}`));
});

/** A list of so many calls, which is longer than a line and no paragraph. */
const list = (count: number): string =>
  Array.from(
    { length: count },
    (_, at) => `{"name":"read_file","arguments":{"path":"file-${at}.go"}}\n`,
  ).join("");

test("a long list repeated four times is a repetition, and one repeated twice may be intended", () => {
  assert.ok(goesRound("I will read them.\n", list(24).repeat(4)));
  assert.ok(!goesRound("I will read them.\n", list(24).repeat(2)));
  assert.ok(!goesRound(list(200)));
});

test("the first round of a repetition is kept", () => {
  const round = list(24);
  const text = `I will read them: ${round.repeat(4)}{"name":"read`;
  assert.deepEqual(repetitionIn(text), { from: 18, period: round.length });
  assert.equal(withoutRepetition(text), `I will read them: ${round}…`);
  assert.equal(withoutRepetition("all is well"), "all is well");
  assert.equal(withoutRepetition("ab".repeat(5000)), "ab…");
});

test("any text repeated often enough is found with its shortest period, and nothing else is", () => {
  const words = fc.string({ minLength: 1, maxLength: 400 });
  fc.assert(
    fc.property(words, words, (head, round) => {
      const text = head + round.repeat(Math.ceil(6000 / round.length));
      const circle = repetitionIn(text);
      assert.ok(circle !== undefined && circle.period <= round.length && circle.from <= head.length);
      const { from, period } = circle;
      assert.equal(text.slice(from, -period), text.slice(from + period), "it is one");
    }),
  );
  fc.assert(
    fc.property(fc.string({ maxLength: 3000 }), (text) => {
      const circle = repetitionIn(text);
      if (circle !== undefined)
        assert.equal(text.slice(circle.from, -circle.period), text.slice(circle.from + circle.period));
    }),
  );
});
