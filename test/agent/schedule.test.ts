import assert from "node:assert/strict";
import test from "node:test";
import { waves } from "../../src/agent/call.ts";
import { fc } from "../fixtures/property.ts";

/** r: may run in parallel with others; w: may not. */
const shape = (calls: string): string =>
  waves(calls.split("").map((kind) => ({ kind, concurrent: kind === "r" })))
    .map((wave) => wave.map(({ kind }) => kind).join(""))
    .join(" ");

test("adjacent concurrent calls share a wave, all others run alone", () => {
  assert.equal(shape(""), "");
  assert.equal(shape("r"), "r");
  assert.equal(shape("rrwrww"), "rr w r w w");
  assert.equal(shape("wrrrw"), "w rrr w");
});

test("a wave has at most eight calls", () => {
  assert.equal(shape("rrrrrrrrrrw"), "rrrrrrrr rr w");
});

test("no call is lost, added or moved, and no wave mixes kinds", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ concurrent: fc.boolean(), id: fc.nat() })), (calls) => {
      const all = waves(calls);
      assert.deepEqual(all.flat(), calls);
      for (const wave of all) {
        assert.ok(wave.length > 0 && wave.length <= 8);
        assert.ok(wave.length === 1 || wave.every(({ concurrent }) => concurrent));
      }
    }),
  );
});
