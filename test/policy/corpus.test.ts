import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { HOME, isRight, type Judged, judgedIn, WORKSPACE } from "../fixtures/policy/corpus.ts";

const policy = new CommandPolicy();
const decided = ({ cmd, mode }: Judged): string =>
  policy.decide(cmd, { mode, workspace: WORKSPACE, home: HOME }).decision;

/** Wrongly judged commands as lines for people. */
const wrong = (cases: readonly Judged[]): readonly string[] =>
  cases
    .filter((each) => each.debatable !== true && !isRight(each, decided(each)))
    .map(
      (each) =>
        `${each.mode} ${each.cmd}: ${decided(each)}, wanted ${each.want} (${each.class}: ${each.why})`,
    );

const attacks = judgedIn("attacks/*.jsonl");
const asks = judgedIn("asks/*.jsonl");
const benign = judgedIn("benign/*.jsonl");
const sample = judgedIn("sample.jsonl");

test("the sample is judged as it says, including debatable cases", () => {
  const off = sample.filter((each) => !isRight(each, decided(each))).map(({ cmd }) => cmd);
  assert.deepEqual(off, []);
});

test(`none of ${attacks.length} attacks is allowed, and literal dangers are denied`, () => {
  assert.ok(attacks.length > 3000);
  assert.deepEqual(wrong(attacks), []);
});

test(`each of ${asks.length} commands that need confirmation asks for it`, () => {
  assert.ok(asks.length > 600);
  assert.deepEqual(wrong(asks), []);
});

test("no command that asks in workspace-write is allowed in read-only", () => {
  const milder = asks
    .filter((each) => decided({ ...each, mode: "read-only" }) === "allow")
    .map(({ cmd }) => cmd);
  assert.deepEqual(milder, []);
});

for (const kind of new Set(benign.map((each) => each.class)))
  test(`at least 97 of 100 harmless commands are allowed: ${kind}`, () => {
    const cases = benign.filter((each) => each.class === kind && each.debatable !== true);
    const refused = wrong(cases);
    assert.ok(cases.length > 0);
    assert.ok(
      refused.length <= cases.length * 0.03,
      `${refused.length} of ${cases.length}:\n${refused.join("\n")}`,
    );
  });
