import assert from "node:assert/strict";
import test from "node:test";
import { Patience } from "../../src/agent/model-request.ts";

test("a server that breaks off within what is shown is asked again three times", () => {
  const patience = new Patience(false);
  const waits = Array.from({ length: 4 }, () => patience.after({ kind: "garbled" }, true));
  assert.deepEqual(waits, [500, 2000, 5000, undefined]);
});

test("what broke off before anything was shown has been tried often enough", () => {
  assert.equal(new Patience(true).after({ kind: "garbled" }, false), undefined);
});

test("a server that is away is waited for where it was there before", () => {
  assert.equal(new Patience(false).after({ kind: "unreachable" }, false), undefined);
  assert.equal(new Patience(true).after({ kind: "unreachable" }, false), 500);
  const brokenOff = new Patience(false);
  brokenOff.after({ kind: "garbled" }, true);
  assert.equal(brokenOff.after({ kind: "unreachable" }, false), 2000);
});

test("what cannot pass is not asked again", () => {
  for (const kind of ["unauthorised", "no_model", "out_of_memory", "refused", "timeout"] as const)
    assert.equal(new Patience(true).after({ kind }, true), undefined, kind);
});
