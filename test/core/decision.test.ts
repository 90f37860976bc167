import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { strictest, VERDICTS, type Verdict } from "../../src/core/decision.ts";

const TABLE: readonly (readonly [readonly Verdict[], Verdict])[] = [
  [["allow"], "allow"],
  [["ask"], "ask"],
  [["deny"], "deny"],
  [["allow", "allow"], "allow"],
  [["allow", "ask"], "ask"],
  [["ask", "allow"], "ask"],
  [["deny", "allow"], "deny"],
  [["allow", "ask", "deny"], "deny"],
  [["deny", "ask", "ask"], "deny"],
];

for (const [verdicts, answer] of TABLE)
  test(`the strictest of ${verdicts.join(", ")} is ${answer}`, () => {
    assert.equal(strictest(verdicts), answer);
  });

test("the strictest of no verdicts is deny", () => {
  assert.equal(strictest([]), "deny");
});

test("the verdicts are ordered from mild to strict", () => {
  assert.deepEqual(VERDICTS, ["allow", "ask", "deny"]);
});

test("order, repetition and grouping do not change the strictest verdict, and more verdicts never loosen it", () => {
  const some = fc.array(fc.constantFrom(...VERDICTS), { minLength: 1 });
  fc.assert(
    fc.property(some, some, (left, right) => {
      const together = strictest([...left, ...right]);
      assert.equal(together, strictest([...right, ...left]));
      assert.equal(together, strictest([strictest(left), strictest(right)]));
      assert.ok(VERDICTS.indexOf(together) >= VERDICTS.indexOf(strictest(left)));
    }),
  );
});

test("an unknown verdict never becomes allow", () => {
  const unknown = "skip" as Verdict;
  assert.deepEqual([strictest([unknown]), strictest(["allow", unknown])], ["deny", "deny"]);
});
