// slow: it kills an update before each of its changes
import assert from "node:assert/strict";
import test from "node:test";
import { gnu as skip } from "../fixtures/index.ts";
import { killedBeforeEach } from "../kills/search-lives.ts";

test("an update killed before any of its changes leaves no row ahead of the store", { skip }, async (t) => {
  const seen = await killedBeforeEach();
  t.diagnostic(seen.join(", "));
  assert.ok(seen.includes("not whole, the store is ahead"), "no kill happened between store and catalog");
  assert.equal(seen.at(-1), "ended");
});
