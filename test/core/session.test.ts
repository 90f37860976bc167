import assert from "node:assert/strict";
import test from "node:test";
import { isSameQuestion, parkedIn, type SessionRecord, settledIn } from "../../src/core/session.ts";
import { answered, message, parked, question, turn } from "../contract/store-words.ts";

const textIn = (records: readonly SessionRecord[]): string | undefined => parkedIn(records)?.question.text;

const cases: readonly (readonly [string, readonly SessionRecord[], string | undefined])[] = [
  ["nothing was asked", [message("a"), turn("done")], undefined],
  ["it was asked last", [message("a"), parked("x"), turn("parked")], "x"],
  ["a kill came before the turn's end", [message("a"), parked("x")], "x"],
  ["it is answered", [parked("x"), turn("parked"), answered("x", "once")], undefined],
  ["it is given up", [parked("x"), answered("x", "never")], undefined],
  ["it parks again", [parked("x"), answered("x", "once"), message("a"), parked("y")], "y"],
  ["the conversation went on", [parked("x"), message("a")], undefined],
  ["it was taken back", [message("a"), parked("x"), { kind: "rolled_back", to: 0 }], undefined],
  ["it was cleared", [parked("x"), { kind: "cleared" }], undefined],
];
for (const [what, records, waits] of cases)
  test(`the waiting call when ${what}`, () => assert.equal(textIn(records), waits));

test("only the answers session and always settle a question for the session", () => {
  const words = ["once", "session", "always", "deny", "never"] as const;
  const records = words.map((word) => answered(word, word));
  assert.deepEqual(
    settledIn(records).map(({ text }) => text),
    ["session", "always"],
  );
});

test("a question that was stored and read back is equal to the original", () => {
  const read = JSON.parse(JSON.stringify(question("x"))) as ReturnType<typeof question>;
  assert.ok(isSameQuestion(read, question("x")) && isSameQuestion(read, { ...question("x"), call: "c9" }));
  assert.ok(!isSameQuestion(read, question("y")));
});
